//! Faults of the system and of the files: few descriptors, no room on the disk, a clock that was set back, an edit that is
//! nonsense, a hundred servers that do not work.

use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::json;

use super::Outcome;
use crate::support::command::through;
use crate::support::script::{answer, exit, hang, result};
use crate::support::{Client, Server, Setup, until};

pub(super) const OUTCOMES: &[Outcome] = &[
    Outcome {
        fault: "40 descriptors at most, and 30 servers",
        gets: "those that could be started work; the others: `did not start: cannot run … Too many open files`",
        after: "at once",
        then: "those that run continue",
    },
    Outcome {
        fault: "nothing can be written: the disk is full",
        gets: "search and calls work; a result that would be stored is answered whole",
        after: "at once",
        then: "the next start has no data of earlier runs",
    },
    Outcome {
        fault: "the clock was set back by a year",
        gets: "search from the cache, calls, and lists that are fetched again",
        after: "at once",
        then: "",
    },
    Outcome {
        fault: "the configuration is replaced by an invalid one",
        gets: "the previous configuration stays in use; the log says so",
        after: "at once",
        then: "the next valid edit is used",
    },
    Outcome {
        fault: "200 servers, half of which end at their start or never answer, and 1,000 descriptors at most",
        gets: "the tools of the other hundred, found and called",
        after: "a few seconds; those that never answer: the call's limit",
        then: "`mcpzip__status` has a reason for each",
    },
];

#[track_caller]
fn has_no_fault(client: &Client) {
    let stderr = client.stderr();
    assert!(!stderr.contains("a fault inside"), "{stderr}");
}

/// Starts `mcpzip serve` under limits that a shell sets first.
fn start_under(setup: &Setup, limits: &str) -> Client {
    setup.save();
    let plain = setup.command(&["serve"]);
    let mut command = through("sh", &plain);
    command
        .args(["-c", &format!("{limits}; exec \"$0\" \"$@\"")])
        .arg(plain.get_program())
        .args(plain.get_args())
        .current_dir(plain.get_current_dir().unwrap_or(Path::new("/")));
    let mut client = setup.start_command(command);
    client.shake_hands("2025-11-25");
    client
}

fn works() -> Server {
    Server::new().tool("work", [answer("done")])
}

#[test]
fn few_descriptors_cost_only_what_they_do_not_suffice_for() {
    let setup = (0..30).fold(Setup::new(), |setup, number| {
        setup.server(&format!("s{number}"), works())
    });
    let mut client = start_under(&setup, "ulimit -n 40");
    let (mut good, mut refused) = (0, 0);
    for number in 0..30 {
        let got = client.execute(&format!("s{number}__work"));
        if got.is_tool_error() {
            assert!(
                got.text().contains("Too many open files") || got.text().contains("not known"),
                "{}",
                got.text()
            );
            refused += 1;
        } else {
            assert_eq!(got.text(), "done");
            good += 1;
        }
    }
    // A server whose first definitions cannot be looked up is held back, so it may be one alone.
    assert!(good > 0 && refused > 2, "{good} work and {refused} do not");
    has_no_fault(&client);
    client.close_stdin();
    client.wait();
}

#[test]
fn a_full_disk_says_which_calls_may_have_acted() {
    let setup = Setup::new()
        .alone()
        .server("a", works())
        .setting("audit", json!({}));
    // 16 KiB for each file.
    let mut client = start_under(&setup, "ulimit -f 32; trap '' XFSZ");
    let mut answers = (0..500).map(|_| client.execute("a__work"));
    let first = answers.find(|answer| answer.is_tool_error()).unwrap();
    let later = answers.next().unwrap();
    let reached = setup.home().count("a", "tools/call");
    let (first, later) = (first.text(), later.text());
    assert!(first.contains("may have acted"), "{first}");
    assert!(
        later.contains("`a__work` was not called") && !later.contains("acted"),
        "{later}"
    );
    drop(answers);
    let _ = client.execute("a__work").tool_error();
    assert_eq!(setup.home().count("a", "tools/call"), reached);
    client.close_stdin();
    client.wait();
}

#[test]
fn a_full_disk_costs_only_what_was_to_be_kept() {
    let setup = Setup::new()
        .server("a", works())
        .setting("results", json!({ "budget": 10 }));
    let mut client = start_under(&setup, "ulimit -f 0; trap '' XFSZ");
    until("the tool", || {
        client.search("does work").contains("a__work").then_some(())
    });
    assert_eq!(client.execute("a__work").text(), "done");
    client.call("proxy_refresh", "{}").text();
    assert_eq!(client.execute("a__work").text(), "done");
    has_no_fault(&client);
    client.close_stdin();
    client.wait();
}

#[test]
fn a_full_disk_costs_nothing_of_a_large_result() {
    let large = format!("{}the very end", "x ".repeat(20_000));
    let list: Vec<u32> = (0..20_000).collect();
    let data = json!({ "content": [], "structuredContent": { "list": list } }).to_string();
    let server = Server::new()
        .tool("large", [answer(&large)])
        .tool("list", [result(&data)]);
    let setup = Setup::new().server("a", server);
    let mut client = start_under(&setup, "ulimit -f 0; trap '' XFSZ");
    until("the tools", || {
        client.search("large").contains("a__large").then_some(())
    });
    assert_eq!(client.execute("a__large").text(), large);
    let mut select = |tool: &str, filter: &str| {
        client.call(
            "execute_tool",
            &json!({ "name": tool, "select": filter }).to_string(),
        )
    };
    let told = select("a__large", ".items").tool_error();
    assert!(
        told.contains("The call was made") && told.ends_with("the very end"),
        "{told}"
    );
    let told = select("a__list", "error").tool_error();
    assert!(
        told.contains("The call was made") && told.contains(",19999]"),
        "{told}"
    );
    let told = select("a__list", ".list").text();
    assert!(
        told.contains(",19999]") && told.contains("could not be stored"),
        "{told}"
    );
    let told = select("a__list", ".list[7]").text();
    assert!(
        told.starts_with("7\n") && told.contains("could not be stored"),
        "{told}"
    );
    client.close_stdin();
    client.wait();
}

#[test]
fn a_clock_that_was_set_back_costs_nothing() {
    let setup = Setup::new().server("a", works());
    let mut client = setup.connect();
    until("the tool", || {
        client.search("does work").contains("a__work").then_some(())
    });
    client.finish();
    // What was written before is of next year then.
    let next_year = SystemTime::now() + Duration::from_secs(365 * 24 * 3600);
    for directory in [setup.cache_path(), setup.home().path("state")] {
        set_time(&directory, next_year);
    }
    let setup = setup.server("b", Server::new().tool("play", [answer("played")]));
    let mut client = setup.connect();
    assert!(client.search("does work").contains("a__work"));
    until("the new tool", || {
        client.search("does play").contains("b__play").then_some(())
    });
    assert_eq!(client.execute("a__work").text(), "done");
    // A list from another time is as old as can be; its server runs, and so is asked again.
    until("another list", || {
        client.search("does work");
        let status = client.call("proxy_status", "{}").text();
        (!status.contains("kept from before")).then_some(())
    });
    has_no_fault(&client);
    client.finish();
}

fn set_time(path: &Path, time: SystemTime) {
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            set_time(&entry.path(), time);
        } else if let Ok(file) = std::fs::File::options().append(true).open(entry.path()) {
            file.set_modified(time).unwrap();
        }
    }
}

#[test]
fn a_configuration_that_becomes_nonsense_changes_nothing() {
    let setup = Setup::new().server("a", works());
    let mut client = setup.connect();
    assert_eq!(client.execute("a__work").text(), "done");
    for (number, nonsense) in ["{", "\0\0\0\0", "mcpServers: {}"].into_iter().enumerate() {
        setup.save_text(nonsense);
        until("the edit to be refused", || {
            (client
                .stderr()
                .matches("the edited configuration is not used")
                .count()
                > number)
                .then_some(())
        });
        assert_eq!(client.execute("a__work").text(), "done", "{nonsense:?}");
    }
    setup.server("b", works()).save();
    until("the good edit", || {
        client.search("does work").contains("b__work").then_some(())
    });
    client.finish();
}

#[test]
fn of_two_hundred_servers_the_good_half_works() {
    let mut setup = Setup::new().log_level("error");
    for number in 0..200 {
        let server = match number % 4 {
            0 => Server::new().at_start([exit(1)]),
            2 => Server::new().on("initialize", [hang()]),
            _ => works(),
        };
        setup = setup.server(&format!("s{number}"), server);
    }
    let mut client = start_under(&setup, "ulimit -n 1000");
    for number in [1, 99, 101, 199] {
        // Starting a hundred processes takes its time on a busy machine.
        let call = json!({ "name": format!("s{number}__work"), "timeout": 10 }).to_string();
        let works = (0..12).any(|_| !client.call("execute_tool", &call).is_tool_error());
        assert!(works, "{number} never worked");
    }
    until("a good one to be found", || {
        client.search("does work").contains("__work").then_some(())
    });
    let status = (0..1800).find_map(|_| {
        std::thread::sleep(Duration::from_millis(100));
        let status = client.call("proxy_status", "{}").text();
        (status.matches("ended during the handshake").count() == 50).then_some(status)
    });
    let status = status.expect("each of them has its reason in the end");
    assert!(status.contains("200 servers"), "{status}");
    client.close_stdin();
    client.wait();
}

#[test]
fn servers_that_never_answer_do_not_keep_others_from_being_listed() {
    let hang = |setup: Setup, number| {
        setup.server(
            &format!("a{number}"),
            Server::new().on("initialize", [hang()]),
        )
    };
    let setup = (0..20)
        .fold(Setup::new().log_level("warn"), hang)
        .server("z", works());
    let mut client = start_under(&setup, "true");
    until("the last of them to be found", || {
        client.search("does work").contains("z__work").then_some(())
    });
    assert_eq!(
        client.stderr().matches("tools not listed").count(),
        0,
        "the others had their whole time first"
    );
    client.close_stdin();
    client.wait();
}
