//! Faults of a daemon with several sessions.

use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType};

use super::{Shared, is_gone};
use crate::support::script::answer;
use crate::support::{Client, Server, Setup, until};

fn shared() -> Shared {
    let server = Server::new().tool("t", [answer("done")]);
    Shared::new(Setup::new().server("a", server))
}

impl Shared {
    /// A session that has a fault of this kind when the file `fault` appears in the home.
    fn connect_with(&self, fault: &str) -> Client {
        let fault = format!("{fault}:{}", self.home().path("fault").display());
        let mut command = self.command(&["serve"]);
        command.env("MCPZIP_TEST_FAULT", fault);
        let mut client = self.start_command(command);
        client.shake_hands("2025-11-25");
        client
    }

    fn begin_fault(&self) {
        std::fs::write(self.home().path("fault"), "").unwrap();
    }
}

/// The time that the daemon `process` takes to end.
fn time_to_end(process: u32) -> Duration {
    let start = Instant::now();
    while !is_gone(process) {
        assert!(start.elapsed() < Duration::from_secs(25), "it does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
    start.elapsed()
}

#[test]
fn a_daemon_in_an_endless_loop_ends_and_its_sessions_go_on() {
    let setup = shared();
    let mut clients = [setup.connect_with("loop"), setup.connect()];
    for client in &mut clients {
        client.execute("a__t");
    }
    let daemon = setup.process();
    setup.begin_fault();
    let time = time_to_end(daemon);
    // Ten seconds, and time for a busy machine.
    assert!(time < Duration::from_secs(13), "{time:?}");
    for client in &mut clients {
        assert!(client.execute("a__t").text().contains("done"));
    }
    assert_eq!(setup.sessions(), 2);
    assert!(setup.log().contains("the daemon is stuck"));
}

#[test]
fn a_pipe_in_the_place_of_its_log_delays_no_daemon() {
    let setup = shared();
    let mut client = setup.connect();
    client.execute("a__t");
    let daemon = setup.process();
    // A pipe without a reader would block the process that opens it to write.
    let log = setup.home().path("state/logs/mcpzip.log");
    std::fs::remove_file(&log).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(CWD, &log, FileType::Fifo, mode, 0).unwrap();
    // A log is opened anew after a moment. The daemon logs each order.
    std::thread::sleep(Duration::from_secs(2));
    let start = Instant::now();
    let _ = setup.run(&["daemon", "reload"]).code(0);
    assert!(client.execute("a__t").text().contains("done"));
    let time = start.elapsed();
    assert!(time < Duration::from_secs(5), "{time:?}");
    assert_eq!(setup.process(), daemon);
}

#[test]
fn a_panic_in_one_session_delays_no_other_and_ends_no_session() {
    let setup = shared();
    let (mut struck, mut other) = (setup.connect_with("panic"), setup.connect());
    struck.execute("a__t");
    other.execute("a__t");
    let daemon = setup.process();
    setup.begin_fault();
    until("the fault has happened", || {
        (!setup.home().path("fault").exists()).then_some(())
    });
    for _ in 0..5 {
        let start = Instant::now();
        assert!(other.execute("a__t").text().contains("done"));
        let time = start.elapsed();
        assert!(time < Duration::from_secs(2), "{time:?}");
    }
    assert!(struck.execute("a__t").text().contains("done"));
    assert_eq!(setup.process(), daemon);
    assert_eq!(setup.sessions(), 2);
    assert_eq!(setup.home().starts("a"), 1, "the shared server went on");
    let config = setup.home().path("config.json");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text + "\n").unwrap();
    let readers = || setup.log().matches("configuration read again").count();
    until("both sessions have read it", || {
        (readers() >= 2).then_some(())
    });
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(readers(), 2, "nothing is left of the part that panicked");
    for client in [struck, other] {
        client.finish();
    }
}
