//! `mcpzip tray` on a real bus, with a stand-in for the panel.

use std::process::{Child, Command, Stdio};

use crate::support::command;
use crate::support::gateway::Gateway;
use crate::support::keyring::Keyring;
use crate::support::notifications::Notifications;
use crate::support::process;
use crate::support::{Setup, until};
use serde_json::json;

const WATCHER: &str = "org.kde.StatusNotifierWatcher";

/// The item of a running `mcpzip tray`, as a panel uses it. The program ends with this.
struct Item {
    panel: Notifications,
    setup: Setup,
    program: Child,
    /// Its name on the bus.
    name: String,
}

/// A line of a menu.
#[derive(Debug)]
struct Line {
    id: String,
    label: String,
    is_enabled: bool,
}

impl Item {
    /// `None` if the test is skipped.
    #[track_caller]
    fn show(setup: &Setup) -> Option<Self> {
        let panel = Notifications::start_as(WATCHER)?;
        let setup = panel.around(setup).variable("MCPZIP_CREDENTIALS", "file");
        let mut command = setup.command(&["tray"]);
        command.stdout(Stdio::null()).stdin(Stdio::null());
        let mut program = command.spawn().unwrap();
        let name = until("the item is registered", || {
            let ended = program.try_wait().unwrap();
            assert!(ended.is_none(), "the tray has ended: {ended:?}");
            let registered = panel.shown().into_iter();
            let mut names = registered.map(|[name, _]| name);
            names.find(|name| name.starts_with("org.kde.StatusNotifierItem-"))
        });
        Some(Self {
            panel,
            setup,
            program,
            name,
        })
    }

    /// Calls the item; `words` are the path, the method and its arguments.
    fn send(&self, words: &[&str]) -> String {
        let mut call = Command::new("dbus-send");
        call.arg(format!("--bus=unix:path={}", self.panel.socket()))
            .args(["--print-reply", &format!("--dest={}", self.name)])
            .args(words);
        let outcome = call.output().unwrap();
        assert!(outcome.status.success(), "{call:?}: {outcome:?}");
        String::from_utf8(outcome.stdout).unwrap()
    }

    fn property(&self, name: &str) -> String {
        self.send(&[
            "/StatusNotifierItem",
            "org.freedesktop.DBus.Properties.Get",
            "string:org.kde.StatusNotifierItem",
            &format!("string:{name}"),
        ])
    }

    fn menu(&self) -> Vec<Line> {
        let layout = self.send(&[
            "/MenuBar",
            "com.canonical.dbusmenu.GetLayout",
            "int32:0",
            "int32:-1",
            "array:string:",
        ]);
        let mut lines: Vec<Line> = Vec::new();
        let mut key = "";
        for part in layout.lines().map(str::trim) {
            let value = part.strip_prefix("variant").map(str::trim);
            if let Some(id) = part.strip_prefix("int32 ") {
                let (id, label) = (id.to_owned(), String::new());
                lines.push(Line {
                    id,
                    label,
                    is_enabled: true,
                });
            }
            match (value, lines.last_mut()) {
                (Some(value), Some(line)) if key == "string \"label\"" => {
                    let label = value
                        .strip_prefix("string \"")
                        .unwrap()
                        .trim_end_matches('"');
                    label.clone_into(&mut line.label);
                }
                (Some("boolean false"), Some(line)) if key == "string \"enabled\"" => {
                    line.is_enabled = false;
                }
                _ => {}
            }
            key = part;
        }
        lines.retain(|line| !line.label.is_empty());
        lines
    }

    /// The labels of the menu, once one of them is this word, or begins with these words.
    #[track_caller]
    fn shows(&self, label: &str) -> Vec<String> {
        until(label, || {
            let labels: Vec<String> = self.menu().into_iter().map(|line| line.label).collect();
            let is_it =
                |one: &String| one == label || label.contains(' ') && one.starts_with(label);
            let is_there = labels.iter().any(is_it);
            is_there.then_some(labels)
        })
    }

    /// Chooses a line of the menu.
    #[track_caller]
    fn choose(&self, label: &str) {
        let line = until(label, || {
            let mut lines = self.menu().into_iter();
            lines.find(|line| line.label == label)
        });
        assert!(line.is_enabled, "{line:?}");
        self.send(&[
            "/MenuBar",
            "com.canonical.dbusmenu.Event",
            &format!("int32:{}", line.id),
            "string:clicked",
            "variant:string:",
            "uint32:0",
        ]);
    }

    fn ends(&mut self) -> Option<i32> {
        until("the end of the tray", || self.program.try_wait().unwrap()).code()
    }
}

impl Drop for Item {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
        let _ = command::run(self.setup.command(&["daemon", "stop"]), "");
    }
}

/// A home whose sessions share a daemon, with the notes of the demo, which ask before they write.
fn notes() -> Setup {
    let setup = Setup::new().daemon_as_configured();
    let store = setup.home().path("store");
    let entry = json!({
        "command": crate::support::program::mcpzip(),
        "args": ["__demo-server", "notes", store],
    });
    let setup = setup
        .entry("notes", &entry.to_string())
        .setting("tools", json!({ "ask": ["create_note"] }))
        .setting("approvals", json!({ "wait": "60s" }))
        .setting("daemon", json!({ "mode": "auto", "idle": "60s" }));
    setup.save();
    setup
}

fn daemon(setup: &Setup) -> serde_json::Value {
    let status = command::run(setup.command(&["daemon", "status", "--json"]), "");
    status.code(0).json()["daemon"].clone()
}

#[test]
fn the_item_shows_the_state_and_what_waits_and_pauses_and_resumes() {
    let setup = notes();
    let Some(mut item) = Item::show(&setup) else {
        return;
    };
    item.shows("No daemon runs");
    let mut client = item.setup.connect();
    item.shows("1 server · 1 session");
    assert!(item.property("Status").contains("\"Active\""));
    let before = item.property("IconPixmap");
    let call = json!({ "name": "notes__create_note", "arguments": { "title": "one" } });
    client.begin("execute_tool", &call.to_string());
    item.shows("1 call waits for approval");
    assert!(item.property("Status").contains("\"NeedsAttention\""));
    assert!(
        item.property("ToolTip")
            .contains("1 call waits for approval")
    );
    assert_ne!(item.property("IconPixmap"), before);
    let list = json!({ "name": "notes__list_notes", "arguments": {} }).to_string();
    item.choose("Pause");
    item.shows("Paused: no new call reaches a server");
    assert!(item.setup.home().path("state/paused").exists());
    let held = client.call("execute_tool", &list).tool_error();
    assert!(held.contains("the user paused mcpzip"), "{held}");
    item.choose("Resume");
    let labels = item.shows("Pause");
    assert!(
        !labels.iter().any(|label| label.starts_with("Paused")),
        "{labels:?}"
    );
    assert!(!item.setup.home().path("state/paused").exists());
    client.call("execute_tool", &list).text();
    // Another process pauses.
    let switched = command::run(item.setup.command(&["daemon", "pause"]), "");
    assert_eq!(switched.code, Some(0), "{switched}");
    item.shows("Resume");
    let switched = command::run(item.setup.command(&["daemon", "resume"]), "");
    assert_eq!(switched.code, Some(0), "{switched}");
    item.shows("Pause");
    // Quitting ends the item and nothing else.
    let process = daemon(&item.setup)["process"].clone();
    item.choose("Quit the tray");
    assert_eq!(item.ends(), Some(0));
    assert_eq!(daemon(&item.setup)["process"], process);
    drop(client);
}

#[test]
fn the_window_opens_by_a_link_that_works_once_and_the_item_survives_its_daemon() {
    let setup = notes();
    let browser = setup.home().path("browser.sh");
    let opened = setup.home().path("opened");
    let script = format!(
        "#!/bin/sh\nprintf %s \"$1\" > '{0}.new' && mv '{0}.new' '{0}'\n",
        opened.display()
    );
    std::fs::write(&browser, script).unwrap();
    let setup = setup.variable("MCPZIP_BROWSER", &format!("sh {}", browser.display()));
    let Some(item) = Item::show(&setup) else {
        return;
    };
    item.shows("No daemon runs");
    // It starts the daemon.
    item.choose("Open the window");
    let link = until("the browser has a link", || {
        std::fs::read_to_string(&opened).ok()
    });
    item.shows("0 servers · 0 sessions");
    let (address, path) = link.split_at(link.find("/enter?key=").expect("a link"));
    let gateway = Gateway::at(&format!("{address}/mcp"));
    assert_eq!(gateway.call("GET", path).send().status, 303);
    assert_eq!(gateway.call("GET", path).send().status, 403);
    let status = daemon(&item.setup);
    assert_eq!(status["windows"], 1, "{status}");
    let first = u32::try_from(status["process"].as_u64().unwrap()).unwrap();
    process::signal(first, rustix::process::Signal::KILL);
    until("the daemon is gone", || {
        // The tray started it, and may not have noticed its end.
        let stat = std::fs::read_to_string(format!("/proc/{first}/stat"));
        stat.map_or(true, |stat| stat.contains(") Z "))
            .then_some(())
    });
    item.shows("No daemon runs");
    let client = item.setup.connect();
    item.shows("1 server · 1 session");
    client.finish();
}

#[test]
fn a_daemon_that_is_switched_off_is_not_started_and_the_item_says_so() {
    let setup = notes().alone();
    let Some(item) = Item::show(&setup) else {
        return;
    };
    item.shows("The daemon is switched off in the configuration");
    item.choose("Open the window");
    item.shows("the window is served by the daemon, which is switched off here");
    assert!(daemon(&item.setup).is_null());
    // The pause needs none.
    item.choose("Pause");
    item.shows("Resume");
    assert!(item.setup.home().path("state/paused").exists());
}

#[test]
fn a_desktop_without_a_panel_or_a_bus_is_named() {
    let setup = notes();
    let Some(bus) = Keyring::without_daemon() else {
        return;
    };
    let run = |setup: &Setup| command::run(setup.command(&["tray"]), "").code(1).stderr;
    let without_panel = run(&bus.around(&setup));
    assert!(
        without_panel.contains("no panel of this desktop"),
        "{without_panel}"
    );
    let nowhere = setup.variable("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere/bus");
    let without_bus = run(&nowhere);
    assert!(
        without_bus.contains("in a session of a desktop"),
        "{without_bus}"
    );
}
