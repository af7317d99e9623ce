//! The end of each process ends what it must, and nothing else.

use rustix::process::Signal;

use super::{Shared, Way, each_way, is_gone};
use crate::support::script::{answer, hang, sleep};
use crate::support::{Server, Setup, until};
use crate::support::{command, process};

fn one(shared: Way) -> Shared {
    let server = Server::new()
        .tool("t", [answer("done")])
        .tool("slow", [hang()]);
    shared(Setup::new().server("a", server))
}

fn the_end_of_input_ends_the_session_and_its_process_in_good_order(shared: Way) {
    let setup = one(shared);
    let mut client = setup.connect();
    let id = client.begin_execute("a__t");
    client.close_stdin();
    assert!(client.answer(id).text().contains("done"));
    assert!(client.wait().success());
    until("the session is gone", || {
        (setup.sessions() == 0).then_some(())
    });
}

fn a_session_that_has_ended_leaves_no_surface_behind(shared: Way) {
    let setup = one(shared);
    let (client, killed) = (setup.connect(), setup.connect());
    let kept = || {
        let directory = setup.home().path("state/surfaces/sessions");
        std::fs::read_dir(directory).unwrap().count()
    };
    assert_eq!(kept(), 2);
    client.finish();
    killed.signal(Signal::KILL);
    until("both surfaces are removed", || (kept() == 0).then_some(()));
}

fn a_signal_to_the_attaching_process_ends_its_session_in_good_order(shared: Way) {
    let setup = one(shared);
    let (mut client, mut other) = (setup.connect(), setup.connect());
    client.execute("a__t");
    client.signal(Signal::TERM);
    assert!(client.wait().success());
    until("the session is gone", || {
        (setup.sessions() == 1).then_some(())
    });
    other.execute("a__t");
}

fn a_killed_attaching_process_ends_its_session_and_its_client_notices(shared: Way) {
    let setup = one(shared);
    let (mut client, mut other) = (setup.connect(), setup.connect());
    client.begin_execute("a__slow");
    setup.home().wait_for("a", "slow");
    client.signal(Signal::KILL);
    // It returns once the client's end of stdout has ended: nothing else holds the pipe.
    client.wait();
    until("the session is gone", || {
        (setup.sessions() == 1).then_some(())
    });
    other.execute("a__t");
}

fn a_daemon_that_gets_a_signal_to_end_does_so_without_a_fault(shared: Way) {
    let setup = one(shared);
    for _ in 0..8 {
        let mut client = setup.connect();
        let daemon = setup.process();
        process::signal(daemon, Signal::TERM);
        until("the daemon is gone", || is_gone(daemon).then_some(()));
        assert!(client.execute("a__t").text().contains("done"));
        client.finish();
    }
    let log = setup.log();
    assert!(!log.contains("fault inside"), "{log}");
    assert_eq!(log.matches("the daemon ends").count(), 8, "{log}");
}

fn a_killed_daemon_leaves_no_process_and_its_sessions_go_on(shared: Way) {
    let setup = one(shared);
    let mut clients = [setup.connect(), setup.connect(), setup.connect()];
    for client in &mut clients {
        client.execute("a__t");
    }
    let before: Vec<u32> = servers(&setup);
    assert!(!before.is_empty());
    setup.kill_daemon();
    until("its servers are gone", || {
        before.iter().all(|server| is_gone(*server)).then_some(())
    });
    for client in &mut clients {
        assert!(client.execute("a__t").text().contains("done"));
    }
    assert_eq!(setup.sessions(), 3);
    for client in clients {
        client.finish();
    }
}

/// The processes of the server `a` that were started.
fn servers(setup: &Setup) -> Vec<u32> {
    let log = setup.home().log("a");
    let starts = log.lines().filter_map(|line| line.strip_prefix("start "));
    starts.map(|id| id.trim().parse().unwrap()).collect()
}

fn a_stopped_daemon_leaves_its_sessions_to_their_own_processes(shared: Way) {
    let setup = one(shared);
    let mut client = setup.connect();
    client.execute("a__t");
    let daemon = setup.process();
    let stopped = setup.run(&["daemon", "stop"]).code(0);
    assert_eq!(stopped.json()["stopped"], true);
    until("the daemon is gone", || is_gone(daemon).then_some(()));
    assert!(client.execute("a__t").text().contains("done"));
    assert_eq!(setup.status()["running"], false);
    let status = setup.status();
    assert!(
        status["alone"][0]["reason"]
            .as_str()
            .unwrap()
            .contains("stopped"),
        "{status}"
    );
    client.finish();
}

fn sessions_outlive_a_configuration_that_cannot_be_used(shared: Way) {
    let setup = one(shared);
    let mut client = setup.connect();
    client.execute("a__t");
    let (path, daemon) = (setup.config_path(), setup.process());
    let good = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{good} broken")).unwrap();
    // A command that would need the configuration says that it is broken, and changes nothing.
    for words in [["daemon", "restart"], ["daemon", "reload"]] {
        let refused = command::run(setup.command(&words), "").code(3);
        assert!(
            refused.stderr.contains("more than one JSON value"),
            "{refused}"
        );
    }
    assert_eq!(setup.process(), daemon);
    assert!(client.execute("a__t").text().contains("done"));
    setup.kill_daemon();
    let lost = client.execute("a__t").tool_error();
    assert!(lost.contains("a__t"), "{lost}");
    std::fs::write(&path, good).unwrap();
    until("the server is back", || {
        let answer = client.execute("a__t");
        (!answer.is_tool_error()).then_some(())
    });
    client.finish();
}

fn sessions_outlive_a_stop_with_a_configuration_that_cannot_be_used(shared: Way) {
    let setup = one(shared);
    let mut client = setup.connect();
    client.execute("a__t");
    let (path, daemon) = (setup.config_path(), setup.process());
    let good = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{good} broken")).unwrap();
    let _ = command::run(setup.command(&["daemon", "stop"]), "").code(0);
    until("the daemon is gone", || is_gone(daemon).then_some(()));
    let lost = client.execute("a__t").tool_error();
    assert!(lost.contains("a__t"), "{lost}");
    std::fs::write(&path, good).unwrap();
    until("the server is back", || {
        let answer = client.execute("a__t");
        (!answer.is_tool_error()).then_some(())
    });
    client.finish();
}

fn a_restarted_daemon_has_the_same_sessions(shared: Way) {
    let setup = one(shared);
    let mut clients = [setup.connect(), setup.connect()];
    let before = setup.process();
    let restarted = setup.run(&["daemon", "restart"]).code(0);
    assert_eq!(restarted.json()["restarted"], true);
    until("the daemon is gone", || is_gone(before).then_some(()));
    for client in &mut clients {
        assert!(client.execute("a__t").text().contains("done"));
    }
    assert_eq!(setup.sessions(), 2);
    assert_ne!(setup.process(), before);
}

fn a_restart_lets_calls_under_way_end_and_leaves_later_ones_to_the_new_daemon(shared: Way) {
    let server = Server::new()
        .tool("slow", [sleep(1500), answer("slow done")])
        .tool("t", [answer("done")]);
    let setup = shared(Setup::new().server("a", server));
    let mut client = setup.connect();
    let id = client.begin_execute("a__slow");
    setup.home().wait_for("a", "slow");
    let before = setup.process();
    let restarted = setup.run(&["daemon", "restart"]).code(0);
    assert_eq!(restarted.json()["restarted"], true);
    let later = client.begin_execute("a__t");
    assert!(client.answer(id).text().contains("slow done"));
    assert!(client.answer(later).text().contains("done"));
    assert_ne!(setup.process(), before);
    assert_eq!(setup.home().count("a", r#""tools/call""#), 2);
}

fn a_client_that_does_not_read_delays_no_other(shared: Way) {
    let large = "x".repeat(1_000_000);
    let server = Server::new()
        .tool("t", [answer("done")])
        .tool("large", [answer(&large)]);
    let setup = shared(
        Setup::new()
            .server("a", server)
            .setting("results", serde_json::json!({ "budget": 0 })),
    );
    let (mut stalled, mut other) = (setup.connect(), setup.connect());
    stalled.stop_reading();
    for _ in 0..40 {
        stalled.begin_execute("a__large");
    }
    until("the server has many calls", || {
        (setup.home().count("a", "large") >= 20).then_some(())
    });
    for _ in 0..20 {
        assert!(other.execute("a__t").text().contains("done"));
    }
    process::signal(stalled.process(), Signal::KILL);
}

each_way! {
    the_end_of_input_ends_the_session_and_its_process_in_good_order,
    a_session_that_has_ended_leaves_no_surface_behind,
    a_signal_to_the_attaching_process_ends_its_session_in_good_order,
    a_killed_attaching_process_ends_its_session_and_its_client_notices,
    a_daemon_that_gets_a_signal_to_end_does_so_without_a_fault,
    a_killed_daemon_leaves_no_process_and_its_sessions_go_on,
    a_stopped_daemon_leaves_its_sessions_to_their_own_processes,
    sessions_outlive_a_configuration_that_cannot_be_used,
    sessions_outlive_a_stop_with_a_configuration_that_cannot_be_used,
    a_restarted_daemon_has_the_same_sessions,
    a_restart_lets_calls_under_way_end_and_leaves_later_ones_to_the_new_daemon,
    a_client_that_does_not_read_delays_no_other,
}
