//! Starting, stopping, states and events.

use std::time::Duration;

use mcpzip::{ErrorKind, Event, Runner, Server, State};
use serde_json::json;

use crate::support::one_tool;
#[cfg(target_os = "linux")]
use crate::support::until;

#[tokio::test]
async fn servers_start_stop_and_restart_and_say_so() {
    let home = tempfile::tempdir().unwrap();
    let runner = Runner::builder()
        .server("good", one_tool(home.path(), "note", &json!(["echo"])))
        .server("bad", Server::stdio("/no/such/program"))
        .build()
        .await
        .unwrap();
    let state = |server: &str| runner.status(server).unwrap().state;
    assert_eq!((state("good"), state("bad")), (State::Idle, State::Idle));
    let mut outcomes = runner.start_all().await.into_iter();
    let (name, outcome) = outcomes.next().unwrap();
    assert_eq!(
        (name.as_str(), outcome.unwrap_err().kind()),
        ("bad", ErrorKind::Unavailable)
    );
    let (name, outcome) = outcomes.next().unwrap();
    assert!(name == "good" && outcome.is_ok());
    assert_eq!((state("good"), state("bad")), (State::Ready, State::Failed));
    assert_eq!(runner.status("good").unwrap().tools, 1);
    let reason = runner.status("bad").unwrap().reason.unwrap();
    assert!(reason.contains("/no/such/program"), "{reason}");

    assert!(runner.stop("good").await.unwrap());
    assert!(!runner.stop("good").await.unwrap(), "it is stopped already");
    assert_eq!(state("good"), State::Idle);
    runner.restart("good").await.unwrap();
    assert_eq!(state("good"), State::Ready);
    runner.stop_all().await;
    assert_eq!(state("good"), State::Idle);

    let mut events = runner.events();
    runner.shutdown().await;
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        seen.push(event);
    }
    let good = |event: &&Event| matches!(event, Event::Starting { server } | Event::Ready { server } | Event::Stopped { server } if server == "good");
    let kinds: Vec<&Event> = seen.iter().filter(good).collect();
    let server = "good".to_owned();
    let (starting, ready, stopped) = (
        Event::Starting {
            server: server.clone(),
        },
        Event::Ready {
            server: server.clone(),
        },
        Event::Stopped { server },
    );
    let round = [&starting, &ready, &stopped];
    assert_eq!(kinds, [round, round].concat(), "{seen:?}");
    assert!(
        seen.iter()
            .any(|event| matches!(event, Event::Failed { server, .. } if server == "bad")),
        "{seen:?}"
    );
}

#[tokio::test]
async fn events_tell_of_changed_tools() {
    let home = tempfile::tempdir().unwrap();
    let other = crate::support::tool("other", "Another tool");
    let steps = json!([{ "change_tools": [other] }, { "result": { "content": [] } }]);
    let runner = Runner::builder()
        .server("x", one_tool(home.path(), "change", &steps))
        .build()
        .await
        .unwrap();
    runner.start("x").await.unwrap();
    let mut events = runner.events();
    runner.execute("x__change", json!({})).await.unwrap();
    let changed = async {
        while let Some(event) = events.next().await {
            if matches!(&event, Event::ToolsChanged { server } if server == "x")
                && runner.describe("x__other").await.is_ok()
            {
                return;
            }
        }
        panic!("the events ended");
    };
    tokio::time::timeout(Duration::from_secs(20), changed)
        .await
        .unwrap();
}

/// The process id of the server `x`, as it reports it.
#[cfg(target_os = "linux")]
async fn process(runner: &Runner) -> std::path::PathBuf {
    let answer = runner.execute("x__show", json!({})).await.unwrap();
    let surroundings: serde_json::Value = answer.parse().unwrap();
    std::path::PathBuf::from(format!("/proc/{}", surroundings["process"]))
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_dropped_runner_ends_its_servers_and_starts_no_copy_of_the_program() {
    let home = tempfile::tempdir().unwrap();
    let server = one_tool(home.path(), "show", &json!(["surroundings"]));
    let runner = Runner::builder().server("x", server).build().await.unwrap();
    let process = process(&runner).await;
    assert!(process.exists());
    let own = std::fs::read_link("/proc/self/exe").unwrap();
    let children = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let path = entry.ok()?.path();
        let parent = std::fs::read_to_string(path.join("status")).ok()?;
        let is_child = parent.contains(&format!("PPid:\t{}\n", std::process::id()));
        is_child.then(|| std::fs::read_link(path.join("exe")).ok())?
    });
    assert!(children.into_iter().all(|program| program != own));
    drop(runner);
    until("the server outlived its runner", || !process.exists()).await;
}

#[cfg(target_os = "linux")]
#[test]
fn the_end_of_a_runtime_ends_the_servers_too() {
    let home = tempfile::tempdir().unwrap();
    for is_multi in [true, false] {
        let mut builder = match is_multi {
            true => tokio::runtime::Builder::new_multi_thread(),
            false => tokio::runtime::Builder::new_current_thread(),
        };
        let runtime = builder.enable_all().build().unwrap();
        let process = runtime.block_on(async {
            let server = one_tool(home.path(), "show", &json!(["surroundings"]));
            let runner = Runner::builder().server("x", server).build().await.unwrap();
            process(&runner).await
        });
        drop(runtime);
        let end = std::time::Instant::now() + Duration::from_secs(20);
        while process.exists() {
            assert!(
                std::time::Instant::now() < end,
                "multi-threaded: {is_multi}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn after_the_end_of_its_runtime_a_runner_has_ended_and_nothing_waits() {
    let home = tempfile::tempdir().unwrap();
    let own = tokio::runtime::Runtime::new().unwrap();
    let other = tokio::runtime::Runtime::new().unwrap();
    let runner = own.block_on(async {
        let server = one_tool(home.path(), "show", &json!(["hang"]));
        let runner = Runner::builder().server("x", server).build().await.unwrap();
        runner.start("x").await.unwrap();
        runner
    });
    let start = std::time::Instant::now();
    let runner = std::sync::Arc::new(runner);
    let calling = runner.clone();
    let calling = other.spawn(async move { calling.execute("x__show", json!({})).await });
    std::thread::sleep(Duration::from_millis(300));
    drop(own);
    other.block_on(async {
        let kinds = [
            calling.await.unwrap().unwrap_err().kind(),
            runner
                .execute("x__show", json!({}))
                .await
                .unwrap_err()
                .kind(),
            runner.start("x").await.unwrap_err().kind(),
            runner.restart("x").await.unwrap_err().kind(),
            runner.search("show", 1).await.unwrap_err().kind(),
            runner
                .client("x")
                .unwrap()
                .list_tools()
                .await
                .unwrap_err()
                .kind(),
        ];
        assert_eq!(kinds, [ErrorKind::Ended; 6]);
        let mut events = runner.events();
        while events.next().await.is_some() {}
        runner.stop("x").await.unwrap();
        runner.stop_all().await;
        runner.shutdown().await;
    });
    drop(runner);
    assert!(
        start.elapsed() < Duration::from_secs(4),
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn a_runner_needs_a_runtime_and_says_so() {
    let built = futures_util::FutureExt::now_or_never(Runner::builder().build());
    let error = built.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("runtime"), "{error}");
}

#[tokio::test]
async fn a_call_that_a_stop_ends_is_not_repeated() {
    let home = tempfile::tempdir().unwrap();
    let mut reading = crate::support::tool("read", "Reads");
    reading["annotations"] = json!({ "readOnlyHint": true });
    let script = json!({ "tools": [reading], "calls": { "read": ["hang"] } });
    let server = crate::support::scripted(home.path(), "x", &script);
    let runner = Runner::builder().server("x", server).build().await.unwrap();
    let received = |what: &str| crate::support::log(home.path(), "x").matches(what).count();
    let (called, ()) = tokio::join!(runner.execute("x__read", json!({})), async {
        crate::support::until("the call did not come", || received("tools/call") == 1).await;
        assert!(runner.stop("x").await.unwrap());
    });
    assert_eq!(called.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(runner.status("x").unwrap().state, State::Idle);
    assert_eq!(received("\"initialize\""), 1);
}
