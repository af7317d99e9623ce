//! Whatever ends `mcpzip`, nothing of it stays: no server, nothing that a server started, no guard, no zombie.
#![cfg(target_os = "linux")]

use std::io::Write as _;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::support::command::through;
use crate::support::process::Process;
use crate::support::program::mcpzip;
use crate::support::script::{answer, exit, fork, hang, result};
use crate::support::{Client, Server, Setup, until};

/// Nothing of what is waited for takes a tenth of this on a machine that has nothing else to do.
const PATIENCE: Duration = Duration::from_secs(20);

/// Servers that ignore everything have four seconds where nobody is in a hurry, and 180 ms where we are told to go: one of
/// three attempts has to be below this, whatever else the machine does. Each attempt prints its figure, which is to be
/// below 300 ms: a client sends KILL half a second after its first signal.
const HURRIED: Duration = Duration::from_secs(2);
const ATTEMPTS: usize = 3;

/// A good server, one that ignores all but KILL, and one whose child does.
fn three_kinds() -> Setup {
    Setup::new()
        .alone()
        .server(
            "good",
            Server::new()
                .tool("t", [answer("done")])
                .tool("hang", [hang()]),
        )
        .server(
            "stubborn",
            Server::new().stubborn().tool("t", [answer("done")]),
        )
        .server(
            "parent",
            Server::new().at_start([fork()]).tool("t", [answer("done")]),
        )
}

/// Starts all three with a call under way; returns the processes there are.
fn all_running(setup: &Setup) -> (Client, Vec<Process>) {
    let mut client = setup.connect();
    for server in ["good", "stubborn", "parent"] {
        assert_eq!(client.execute(&format!("{server}__t")).text(), "done");
    }
    client.begin_execute("good__hang");
    until("the call to arrive", || {
        (setup.home().count("good", r#""name":"hang""#) == 1).then_some(())
    });
    // `mcpzip`, its guard, three servers, and the child with its `sleep`.
    let processes = until("all processes", || {
        Some(setup.home().mark.processes()).filter(|known| known.len() >= 7)
    });
    (client, processes)
}

/// Waits until all of `processes` are gone, and no other is there; how long after `start` that was. A child of `reaper`
/// that ended may not be a zombie either; who takes care of the orphans is up to the system.
#[track_caller]
fn all_gone(setup: &Setup, processes: &[Process], reaper: Option<u32>, start: Instant) -> Duration {
    let is_left = |then: &&Process| {
        let now = Process::read(then.id);
        now.is_some_and(|now| {
            if now.state == 'Z' {
                reaper == Some(then.parent)
            } else {
                now.command == then.command
            }
        })
    };
    loop {
        let mut left: Vec<Process> = processes.iter().filter(is_left).cloned().collect();
        left.extend(setup.home().mark.processes());
        if left.is_empty() {
            return start.elapsed();
        }
        assert!(
            start.elapsed() < PATIENCE,
            "still there after {:?}: {left:#?}",
            start.elapsed()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn the_end_of_input_leaves_nothing() {
    let setup = three_kinds();
    let (mut client, processes) = all_running(&setup);
    let start = Instant::now();
    client.close_stdin();
    assert!(client.wait().success());
    // A call that hangs has the drain time, five seconds.
    all_gone(&setup, &processes, Some(client.process()), start);
}

#[test]
fn the_end_of_input_without_a_call_is_the_end() {
    let setup = Setup::new()
        .alone()
        .server("good", Server::new().tool("t", [answer("done")]));
    let mut client = setup.connect();
    client.execute("good__t");
    let processes = setup.home().mark.processes();
    let start = Instant::now();
    client.close_stdin();
    assert!(client.wait().success());
    // Short of the five seconds that a drain would take, and of what a busy machine adds.
    println!("{:?} after the end of input", start.elapsed());
    all_gone(&setup, &processes, Some(client.process()), start);
}

#[track_caller]
fn check_signal(signal: Signal) {
    let attempts = (0..ATTEMPTS).map(|_| {
        let setup = three_kinds();
        let (mut client, processes) = all_running(&setup);
        let start = Instant::now();
        client.signal(signal);
        client.wait();
        let took = all_gone(&setup, &processes, Some(client.process()), start);
        // For whoever looks on; nothing is lost where nobody does.
        let _ = writeln!(
            std::io::stderr().lock(),
            "all gone {took:?} after {signal:?}"
        );
        took
    });
    let mut seen = Vec::new();
    let in_time = attempts
        .inspect(|took| seen.push(*took))
        .any(|took| took < HURRIED);
    assert!(
        in_time,
        "{signal:?}: {seen:?}, as if nobody were in a hurry"
    );
}

#[test]
fn sigterm_leaves_nothing() {
    check_signal(Signal::TERM);
}

#[test]
fn sigint_leaves_nothing() {
    check_signal(Signal::INT);
}

#[test]
fn sighup_leaves_nothing() {
    check_signal(Signal::HUP);
}

#[test]
fn sigkill_leaves_nothing() {
    let setup = three_kinds();
    let (mut client, processes) = all_running(&setup);
    let start = Instant::now();
    client.signal(Signal::KILL);
    client.wait();
    all_gone(&setup, &processes, None, start);
}

#[test]
fn the_signals_that_a_client_sends_in_turn_leave_nothing() {
    let setup = three_kinds();
    let (mut client, processes) = all_running(&setup);
    let start = Instant::now();
    client.close_stdin();
    for (signal, after) in [(Signal::INT, 0), (Signal::TERM, 100), (Signal::KILL, 500)] {
        // The client's own schedule.
        std::thread::sleep(Duration::from_millis(after).saturating_sub(start.elapsed()));
        client.try_signal(signal);
    }
    client.wait();
    all_gone(&setup, &processes, None, start);
}

#[test]
fn without_its_guard_mcpzip_still_ends_its_servers() {
    let setup = three_kinds();
    let (mut client, processes) = all_running(&setup);
    let guard = processes
        .iter()
        .find(|process| process.command.contains("__guard"))
        .expect("there is a guard");
    crate::support::process::signal(guard.id, Signal::KILL);
    assert_eq!(client.execute("good__t").text(), "done");
    let start = Instant::now();
    client.signal(Signal::TERM);
    client.wait();
    all_gone(&setup, &processes, None, start);
}

#[test]
fn an_upgrade_under_a_running_serve_costs_neither_filters_nor_the_guard() {
    for replace in [true, false] {
        let setup = Setup::new().alone();
        setup.save();
        let program = setup.home().path("mcpzip");
        std::fs::copy(mcpzip(), &program).unwrap();
        let plain = setup.command(&["serve"]);
        let mut command = through(&program, &plain);
        command.args(plain.get_args());
        let mut client = setup.start_command(command);
        client.shake_hands("2025-11-25");
        if replace {
            let new = setup.home().path("mcpzip.new");
            std::fs::write(&new, "#!/bin/sh\nexit 9\n").unwrap();
            std::fs::set_permissions(&new, std::os::unix::fs::PermissionsExt::from_mode(0o755))
                .unwrap();
            std::fs::rename(new, &program).unwrap();
        } else {
            std::fs::remove_file(&program).unwrap();
        }
        // The first server is started by the upgraded program's predecessor, and with it the guard.
        let data = json!({ "content": [], "structuredContent": { "a": 7 } }).to_string();
        let server = Server::new().stubborn().tool("t", [result(&data)]);
        setup.clone().server("late", server).save();
        until("the server to be known", || {
            client.search("t").contains("late__t").then_some(())
        });
        let call = json!({ "name": "late__t", "select": ".a" }).to_string();
        assert_eq!(client.call("execute_tool", &call).text(), "7");
        let processes = setup.home().mark.processes();
        assert!(
            processes
                .iter()
                .any(|process| process.command.contains("__guard"))
        );
        let start = Instant::now();
        client.signal(Signal::KILL);
        client.wait();
        all_gone(&setup, &processes, None, start);
    }
}

#[test]
fn a_client_that_stops_reading_and_goes_leaves_nothing() {
    let setup = three_kinds();
    let (client, processes) = all_running(&setup);
    let start = Instant::now();
    drop(client);
    all_gone(&setup, &processes, None, start);
}

#[test]
fn an_ended_server_leaves_no_zombie_while_mcpzip_runs() {
    let setup = Setup::new()
        .alone()
        .server(
            "parent",
            Server::new().at_start([fork()]).tool("t", [exit(1)]),
        )
        .server("other", Server::new().tool("t", [answer("done")]));
    let mut client = setup.connect();
    client.execute("other__t");
    for _ in 0..3 {
        assert!(client.execute("parent__t").is_tool_error());
    }
    let parent = client.process();
    until("the children of ended servers to go", || {
        let processes = setup.home().mark.processes();
        let orphans = processes
            .iter()
            .filter(|process| process.command.contains("sleep"))
            .count();
        let zombies = Process::children_of(parent)
            .into_iter()
            .filter(|process| process.state == 'Z')
            .count();
        (orphans == 0 && zombies == 0).then_some(())
    });
    client.finish();
}

#[test]
fn a_signal_while_a_server_starts_leaves_nothing() {
    for signal in [Signal::KILL, Signal::TERM] {
        for _ in 0..5 {
            let setup = Setup::new()
                .alone()
                .server("stubborn", Server::new().stubborn().at_start([hang()]));
            let mut client = setup.connect();
            client.begin_execute("stubborn__t");
            until("the server's start", || {
                (setup.home().starts("stubborn") == 1).then_some(())
            });
            let start = Instant::now();
            client.signal(signal);
            client.wait();
            all_gone(&setup, &[], None, start);
        }
    }
}

#[test]
fn an_interrupted_command_leaves_nothing() {
    let setup = three_kinds();
    setup.save();
    let mut command = setup.command(&["call", "good__hang"]).spawn().unwrap();
    until("the call to arrive", || {
        (setup.home().count("good", r#""name":"hang""#) == 1).then_some(())
    });
    let start = Instant::now();
    crate::support::process::signal(command.id(), Signal::INT);
    let status = command.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    all_gone(&setup, &[], None, start);
}

#[test]
fn a_command_leaves_nothing() {
    let setup = three_kinds();
    for arguments in [&["call", "stubborn__t"][..], &["servers"]] {
        let outcome = setup.run(arguments);
        assert_eq!(outcome.code, Some(0), "{outcome}");
    }
    assert!(
        setup.home().mark.processes().is_empty(),
        "{:#?}",
        setup.home().mark.processes()
    );
}
