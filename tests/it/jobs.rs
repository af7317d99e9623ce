//! On Windows too, whatever ends `mcpzip` or a server, nothing stays of what a server started; and package runners are found there.
//!
//! What is started holds a lock until it ends, so no process has to be looked for.
#![cfg(windows)]

use std::fs::File;
use std::path::PathBuf;

use serde_json::json;

use crate::support::script::{answer, exit, fork, hang, up_to};
use crate::support::{Client, Server, Setup, program, until};

/// A server that neither ends with its stdin nor alone.
fn parent() -> Setup {
    // Once: what another start of the server started would hold the lock as well.
    let server = Server::new()
        .at_start([up_to(1, "start ", [fork()], [])])
        .at_end([hang()]);
    Setup::new().server(
        "parent",
        server.tool("t", [answer("done")]).tool("exit", [exit(1)]),
    )
}

fn running(setup: &Setup) -> Client {
    let mut client = setup.connect();
    assert_eq!(client.execute("parent__t").text(), "done");
    until("what the server starts", || {
        (setup.home().count("parent", "lingering") == 1).then_some(())
    });
    let alive = lock(setup);
    assert!(alive.try_lock().is_err(), "it is not there");
    client
}

fn lock(setup: &Setup) -> File {
    File::options()
        .write(true)
        .open(setup.home().path("parent.log.alive"))
        .unwrap()
}

#[track_caller]
fn it_ends(setup: &Setup) {
    let alive = lock(setup);
    until("the end of what the server started", || {
        alive.try_lock().ok()
    });
}

#[test]
fn a_hard_end_leaves_nothing() {
    let setup = parent();
    let mut client = running(&setup);
    client.kill();
    it_ends(&setup);
    client.wait();
}

#[test]
fn the_end_of_input_leaves_nothing() {
    let setup = parent();
    let mut client = running(&setup);
    client.close_stdin();
    assert!(client.wait().success());
    it_ends(&setup);
}

#[test]
fn a_server_takes_with_it_what_it_started() {
    let setup = parent();
    let mut client = running(&setup);
    assert!(client.execute("parent__exit").is_tool_error());
    it_ends(&setup);
    client.finish();
}

#[test]
fn a_command_is_found_without_its_ending() {
    let setup = Setup::new().server("real", Server::new().tool("t", [answer("done")]));
    let directory = setup.home().path("with spaces");
    std::fs::create_dir(&directory).unwrap();
    // As npm does it: a script for other shells, and one for this system.
    std::fs::write(directory.join("runner"), "#!/bin/sh\n").unwrap();
    let script = format!("@\"{}\" %*\r\n", program::fake_server().display());
    std::fs::write(directory.join("runner.cmd"), script).unwrap();
    let home = setup.home().path("");
    let file = |name: &str| -> PathBuf { home.join(name) };
    let entry = json!({ "command": "runner", "args": [file("real.script.json"), file("run by a script.log")],
        "env": { "PATH": directory } });
    let mut client = setup.entry("runner", &entry.to_string()).connect();
    assert_eq!(client.execute("runner__t").text(), "done");
    client.finish();
}
