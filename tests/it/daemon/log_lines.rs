//! Log lines reach the stderr of the sessions that they concern, and no other.

use serde_json::json;

use super::Shared;
use crate::support::script::{answer, exit};
use crate::support::{Client, Server, Setup, until};

/// Two directories, of which only `one` has a server that fails.
fn shared() -> Shared {
    let failing = Server::new().at_start([exit(3)]);
    let setup = Setup::new();
    let one = setup.home().path("one");
    for name in ["one", "two"] {
        std::fs::create_dir(setup.home().path(name)).unwrap();
    }
    Shared::new(
        setup
            .server("good", Server::new().tool("t", [answer("done")]))
            .server_with("broken", failing, json!({ "projects": [one] }))
            .log_level("warn"),
    )
}

fn client(setup: &Shared, directory: &str, level: &str) -> Client {
    let mut command = setup.command(&["serve"]);
    command.current_dir(setup.home().path(directory));
    command.env("MCPZIP_LOG", level);
    let mut client = setup.start_command(command);
    client.shake_hands("2025-11-25");
    client
}

#[test]
fn a_failure_of_a_server_is_said_on_the_stderr_of_its_sessions_alone() {
    let setup = shared();
    let [mut first, mut second] = ["one", "one"].map(|name| client(&setup, name, "warn"));
    let mut other = client(&setup, "two", "warn");
    let mut quiet = client(&setup, "one", "off");
    for client in [&mut first, &mut second, &mut quiet] {
        client.execute("broken__t");
    }
    for client in [&first, &second] {
        client.wait_for_stderr("no connection server=broken");
    }
    assert_eq!(other.execute("good__t").text(), "done");
    assert_eq!(
        (other.stderr(), quiet.stderr()),
        (String::new(), String::new())
    );
}

#[test]
fn a_fault_of_an_edited_configuration_is_said_on_the_stderr_of_each_session() {
    let setup = shared();
    let clients = ["one", "two"].map(|name| client(&setup, name, "warn"));
    setup.save_text(r#"{"mcpServers": 1}"#);
    for client in &clients {
        client.wait_for_stderr("the edited configuration is not used");
    }
    setup.save();
}

#[test]
fn a_session_gets_the_lines_of_the_level_that_it_asks_for() {
    let setup = shared();
    let mut warned = client(&setup, "two", "warn");
    let mut curious = client(&setup, "two", "debug");
    assert_eq!(curious.execute("good__t").text(), "done");
    assert_eq!(warned.execute("good__t").text(), "done");
    until("its own request", || {
        curious.stderr().contains("DEBUG").then_some(())
    });
    assert_eq!(warned.stderr(), "");
}
