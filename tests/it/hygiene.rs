//! Whatever ends `mcpzip`, nothing of it stays: no server, nothing that a server started, no guard, no zombie.
#![cfg(target_os = "linux")]

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::process::Process;
use crate::support::script::{answer, exit, fork, hang};
use crate::support::{Client, Server, Setup, until};

/// A good server, one that ignores all but KILL, and one whose child does.
fn three_kinds() -> Setup {
    Setup::new()
        .server("good", Server::new().tool("t", [answer("done")]).tool("hang", [hang()]))
        .server("stubborn", Server::new().stubborn().tool("t", [answer("done")]))
        .server("parent", Server::new().at_start([fork()]).tool("t", [answer("done")]))
}

/// Starts all three with a call under way; returns the processes there are.
fn all_running(setup: &Setup) -> (Client, Vec<Process>) {
    let mut client = setup.connect();
    for server in ["good", "stubborn", "parent"] {
        assert_eq!(client.execute(&format!("{server}__t")).text(), "done");
    }
    client.begin_execute("good__hang");
    until("the call to arrive", || (setup.home().count("good", r#""name":"hang""#) == 1).then_some(()));
    // `mcpzip`, its guard, three servers, and the child with its `sleep`.
    let processes = until("all processes", || Some(setup.home().mark.processes()).filter(|known| known.len() >= 7));
    (client, processes)
}

/// Fails unless all of `processes` are gone within `limit` of `start`, and no other came.
#[track_caller]
fn all_gone(setup: &Setup, processes: &[Process], start: Instant, limit: Duration, may_be_zombies: bool) {
    let left = || -> Vec<Process> {
        let known = processes.iter().filter_map(|process| Process::read(process.id));
        let same = known.filter(|now| {
            now.state != 'Z' && processes.iter().any(|then| then.id == now.id && then.command == now.command)
                || now.state == 'Z' && !may_be_zombies
        });
        same.chain(setup.home().mark.processes()).collect()
    };
    loop {
        let left = left();
        if left.is_empty() {
            return;
        }
        assert!(start.elapsed() < limit, "still there after {:?}: {left:#?}", start.elapsed());
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
    // A call that hangs has the drain time.
    all_gone(&setup, &processes, start, Duration::from_secs(8), true);
}

#[test]
fn the_end_of_input_without_a_call_is_the_end() {
    let setup = Setup::new().server("good", Server::new().tool("t", [answer("done")]));
    let mut client = setup.connect();
    client.execute("good__t");
    let processes = setup.home().mark.processes();
    let start = Instant::now();
    client.close_stdin();
    assert!(client.wait().success());
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    all_gone(&setup, &processes, start, Duration::from_secs(2), true);
}

#[track_caller]
fn check_signal(signal: Signal) {
    let setup = three_kinds();
    let (mut client, processes) = all_running(&setup);
    let start = Instant::now();
    client.signal(signal);
    client.wait();
    assert!(start.elapsed() < Duration::from_millis(1000), "{signal:?}: {:?}", start.elapsed());
    all_gone(&setup, &processes, start, Duration::from_millis(1000), true);
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
    all_gone(&setup, &processes, start, Duration::from_secs(2), true);
}

#[test]
fn a_client_that_stops_reading_and_goes_leaves_nothing() {
    let setup = three_kinds();
    let (client, processes) = all_running(&setup);
    let start = Instant::now();
    drop(client);
    all_gone(&setup, &processes, start, Duration::from_secs(2), true);
}

#[test]
fn an_ended_server_leaves_no_zombie_while_mcpzip_runs() {
    let setup = Setup::new()
        .server("parent", Server::new().at_start([fork()]).tool("t", [exit(1)]))
        .server("other", Server::new().tool("t", [answer("done")]));
    let mut client = setup.connect();
    client.execute("other__t");
    for _ in 0..3 {
        assert!(client.execute("parent__t").is_tool_error());
    }
    let parent = client.process();
    until("the children of ended servers to go", || {
        let processes = setup.home().mark.processes();
        let orphans = processes.iter().filter(|process| process.command.contains("sleep")).count();
        let zombies = Process::children_of(parent).into_iter().filter(|process| process.state == 'Z').count();
        (orphans == 0 && zombies == 0).then_some(())
    });
    client.finish();
}

#[test]
fn a_command_leaves_nothing() {
    let setup = three_kinds();
    setup.run(&["call", "stubborn__t"]).code(0);
    setup.run(&["servers"]).code(0);
    assert!(setup.home().mark.processes().is_empty(), "{:#?}", setup.home().mark.processes());
}
