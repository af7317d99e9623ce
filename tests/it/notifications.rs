//! Desktop notifications about what waits for the user.

use std::time::Duration;

use serde_json::json;

use super::pins::{listed_twice, turning};
use crate::daemon::Shared;
use crate::support::notifications::Notifications;
use crate::support::script::echo;
use crate::support::{Server, Setup, until};

const CALL: &str = "mcpzip: a call waits for you";
const SERVER: &str = "mcpzip: a server waits for you";

/// What a desktop could show instead of the name.
const WORDS: &str = "<b>Your password has expired</b>";

fn asking() -> Setup {
    let server = Server::new().tool("write", [echo()]).tool(WORDS, [echo()]);
    Setup::new()
        .server("files", server)
        .setting("tools", json!({ "ask": ["*"] }))
        .setting("approvals", json!({ "wait": "1s" }))
}

/// Waits until there are `count` notifications, and for a while whether there are more.
#[track_caller]
fn exactly(desktop: &Notifications, count: usize) -> Vec<[String; 2]> {
    until("the notifications", || {
        (desktop.shown().len() >= count).then_some(())
    });
    std::thread::sleep(Duration::from_millis(500));
    let shown = desktop.shown();
    assert_eq!(shown.len(), count, "{shown:?}");
    shown
}

#[test]
fn a_call_that_waits_is_on_the_desktop_once_and_without_a_word_of_its_server() {
    let Some(desktop) = Notifications::start() else {
        return;
    };
    let setup = desktop.around(&asking().setting("notify", json!(true)));
    let mut client = setup.connect();
    for _ in 0..2 {
        client.execute("files__write").tool_error();
    }
    let text = "An agent asks to call write of files. Run: mcpzip approvals list";
    assert_eq!(exactly(&desktop, 1), [[CALL.to_owned(), text.to_owned()]]);
    // A second one within ten seconds comes after them.
    let name = json!({ "name": format!("files__{WORDS}"), "arguments": {} });
    client.call("execute_tool", &name.to_string()).tool_error();
    let shown = exactly(&desktop, 2);
    let text = "An agent asks to call a tool of files. Run: mcpzip approvals list";
    assert_eq!(shown[1], [CALL, text]);
    client.finish();
}

#[test]
fn nothing_is_on_the_desktop_unless_the_user_asks_for_it() {
    let Some(desktop) = Notifications::start() else {
        return;
    };
    let setup = desktop.around(&asking());
    let mut client = setup.connect();
    client.execute("files__write").tool_error();
    exactly(&desktop, 0);
    client.finish();
}

#[test]
fn without_a_notification_service_a_call_waits_all_the_same_and_doctor_says_why() {
    let setup = asking().setting("notify", json!(true));
    for address in ["", "unix:path=/nowhere/bus", "nonsense"] {
        let setup = setup.clone().variable("DBUS_SESSION_BUS_ADDRESS", address);
        let mut client = setup.connect();
        let refused = client.execute("files__write").tool_error();
        assert!(refused.contains("waits for approval"), "{refused}");
        client.finish();
        let report = setup.run(&["doctor", "--json"]).json();
        let findings = report["findings"].as_array().unwrap();
        let found = findings
            .iter()
            .find(|it| it["code"] == "notify-unavailable");
        let what = found.unwrap_or_else(|| panic!("{report}"))["what"].to_string();
        assert!(what.contains("D-Bus"), "{what}");
    }
}

#[test]
fn a_server_that_waits_is_on_the_desktop_once_for_all_sessions_of_the_daemon() {
    let Some(desktop) = Notifications::start() else {
        return;
    };
    let setup = Setup::new()
        .server_with("web", turning(), json!({ "trust": "pin" }))
        .setting("notify", json!(true));
    let shared = Shared::new(desktop.around(&setup));
    let mut one = listed_twice(&shared);
    let mut two = listed_twice(&shared);
    assert_eq!(shared.sessions(), 2);
    let text = "New or changed texts of web are held back. Run: mcpzip approve web";
    assert_eq!(exactly(&desktop, 1), [[SERVER.to_owned(), text.to_owned()]]);
    for client in [&mut one, &mut two] {
        client.execute("web__read").tool_error();
    }
    one.finish();
    two.finish();
    // A session that runs alone finds the same, which has been shown.
    let alone = shared.clone().alone();
    listed_twice(&alone).finish();
    exactly(&desktop, 1);
}

#[test]
fn a_server_that_an_agent_added_is_on_the_desktop() {
    let Some(desktop) = Notifications::start() else {
        return;
    };
    let setup = Setup::new()
        .server("files", Server::new().tool("write", [echo()]))
        .setting("management", json!("full"))
        .setting("notify", json!(true));
    let setup = desktop.around(&setup);
    let mut client = setup.connect();
    let servers =
        json!({ "operation": "add", "servers": { "extra": { "command": "some-program" } } });
    client
        .execute_with("mcpzip__servers", &servers.to_string())
        .text();
    let text =
        "An agent added or redirected extra, which is not started. Run: mcpzip approve extra";
    assert_eq!(exactly(&desktop, 1), [[SERVER.to_owned(), text.to_owned()]]);
    client.finish();
}
