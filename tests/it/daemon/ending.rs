//! A daemon that no process can find or needs ends.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use super::{Shared, is_gone};
use crate::support::script::answer;
use crate::support::{Server, Setup, until};

fn shared() -> Shared {
    Shared::new(Setup::new().server("a", Server::new().tool("t", [answer("done")])))
}

/// The socket of the daemon.
fn socket(setup: &Setup) -> PathBuf {
    let entries = std::fs::read_dir(setup.home().path("state/run")).unwrap();
    let mut paths = entries.map(|entry| entry.unwrap().path());
    paths
        .find(|path| path.extension().is_some_and(|end| end == "sock"))
        .expect("there is a socket")
}

#[test]
fn a_daemon_whose_home_was_deleted_ends_at_once() {
    let setup = shared();
    setup.connect().finish();
    let daemon = setup.process();
    std::fs::remove_dir_all(setup.home().path("state")).unwrap();
    until("the daemon is gone", || is_gone(daemon).then_some(()));
    std::fs::create_dir(setup.home().path("state")).unwrap();
}

#[test]
fn a_daemon_without_its_socket_serves_its_sessions_and_ends_with_the_last() {
    let setup = shared();
    let mut client = setup.connect();
    let daemon = setup.process();
    std::fs::remove_file(socket(&setup)).unwrap();
    let mut next = setup.connect();
    let other = setup.process();
    assert_ne!(other, daemon, "a daemon without a socket was found");
    assert!(client.execute("a__t").text().contains("done"));
    client.finish();
    until("the daemon is gone", || is_gone(daemon).then_some(()));
    assert!(next.execute("a__t").text().contains("done"));
    assert_eq!(setup.process(), other, "the other daemon lost its socket");
}

#[test]
fn a_connection_that_stays_open_does_not_keep_a_daemon_that_was_stopped() {
    let setup = shared();
    setup.connect().finish();
    let daemon = setup.process();
    let mut control = UnixStream::connect(socket(&setup)).unwrap();
    let hello = br#""control""#;
    let length = u32::try_from(hello.len()).unwrap().to_le_bytes();
    let ask = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"daemon.status\"}\n";
    control
        .write_all(&[&length[..], hello, ask].concat())
        .unwrap();
    let mut line = String::new();
    BufReader::new(&control).read_line(&mut line).unwrap();
    assert!(line.contains(r#""id":1,"result""#), "{line}");
    let _ = setup.run(&["daemon", "stop"]).code(0);
    until("the daemon is gone", || is_gone(daemon).then_some(()));
}
