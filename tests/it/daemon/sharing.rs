//! Which sessions of one daemon share a server's process, and what is each session's own.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::Shared;
use crate::support::script::{answer, answer_with, ask, line, result, sleep, surroundings};
use crate::support::{Client, Server, Setup, command, until};

/// A home with the directories `one` and `two`, and a server `a` whose tool tells what it notices.
fn shared(members: Value) -> Shared {
    let setup = Setup::new().server_with("a", Server::new().tool("t", [surroundings()]), members);
    for name in ["one", "two"] {
        std::fs::create_dir(setup.home().path(name)).unwrap();
    }
    Shared::new(setup)
}

/// Where a session is started, and with which variables.
struct At<'a> {
    directory: &'a str,
    variables: &'a [(&'a str, &'a str)],
}

impl At<'_> {
    fn start(&self, setup: &Shared) -> Client {
        let mut command = setup.0.command(&["serve"]);
        command
            .current_dir(setup.home().path(self.directory))
            .envs(self.variables.iter().copied());
        let mut client = setup.0.start_command(command);
        client.shake_hands("2025-11-25");
        client
    }
}

fn at<'a>(directory: &'a str, variables: &'a [(&'a str, &'a str)]) -> At<'a> {
    At {
        directory,
        variables,
    }
}

/// What the server notices that a session reaches.
fn noticed(client: &mut Client) -> Value {
    let text = client.execute("a__t").text();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn directory(setup: &Shared, name: &str) -> Value {
    json!(std::fs::canonicalize(setup.home().path(name)).unwrap())
}

/// `PATH` with one more directory, which is made.
fn path_with(setup: &Shared, name: &str) -> String {
    let own: PathBuf = setup.home().path(name);
    std::fs::create_dir_all(&own).unwrap();
    format!("{}:/usr/bin:/bin", own.display())
}

#[test]
fn sessions_in_two_directories_get_their_own_directory_variable_and_path() {
    let setup = shared(json!({ "env": { "VALUE": "${VALUE}" } }));
    let paths = [path_with(&setup, "bin1"), path_with(&setup, "bin2")];
    let mut clients = [
        at("one", &[("VALUE", "first"), ("PATH", &paths[0])]).start(&setup),
        at("two", &[("VALUE", "second"), ("PATH", &paths[1])]).start(&setup),
    ];
    assert_eq!(setup.sessions(), 2);
    let seen: Vec<Value> = clients.iter_mut().map(noticed).collect();
    for (index, (name, value)) in [("one", "first"), ("two", "second")].iter().enumerate() {
        assert_eq!(seen[index]["directory"], directory(&setup, name));
        assert_eq!(seen[index]["variables"]["VALUE"], *value);
        assert_eq!(seen[index]["variables"]["PATH"], *paths[index]);
    }
    assert_ne!(seen[0]["process"], seen[1]["process"]);
}

#[test]
fn sessions_of_one_directory_share_a_process_unless_it_could_tell_them_apart() {
    let setup = shared(json!({ "env": { "VALUE": "${VALUE:-}" } }));
    let mut first = at("one", &[]).start(&setup);
    let process = noticed(&mut first)["process"].clone();
    let other_path = path_with(&setup, "bin");
    for (variables, shares) in [
        (&[][..], true),
        (&[("TERM", "other")], true),
        (&[("UNRELATED", "1")], true),
        // The command is a path, so that `PATH` leads to no other program.
        (&[("PATH", other_path.as_str())], true),
        (&[("VALUE", "another")], false),
        (&[("HTTPS_PROXY", "http://127.0.0.1:9")], false),
        (&[("SSL_CERT_FILE", "/nowhere")], false),
        (&[("LANG", "de_DE.UTF-8")], false),
    ] {
        let mut other = at("one", variables).start(&setup);
        let is_same = noticed(&mut other)["process"] == process;
        assert_eq!(is_same, shares, "{variables:?}");
    }
    let mut with_forms = setup.0.command(&["serve"]);
    with_forms.current_dir(setup.home().path("one"));
    let mut with_forms = setup.0.start_command(with_forms);
    with_forms.shake_hands_as("2025-11-25", r#"{"elicitation":{}}"#);
    assert_ne!(noticed(&mut with_forms)["process"], process);
}

/// A session whose client declares these capabilities.
fn that_can(setup: &Shared, capabilities: &str) -> Client {
    let mut command = setup.0.command(&["serve"]);
    command.current_dir(setup.home().path("one"));
    let mut client = setup.0.start_command(command);
    client.shake_hands_as("2025-11-25", capabilities);
    client
}

/// The number of processes for clients that can be asked different things.
fn processes(setup: &Shared) -> usize {
    let kinds = [
        "{}",
        r#"{"elicitation":{}}"#,
        r#"{"sampling":{},"roots":{}}"#,
    ];
    let mut clients: Vec<Client> = kinds.map(|kind| that_can(setup, kind)).into();
    let seen = clients
        .iter_mut()
        .map(|client| noticed(client)["process"].as_u64().unwrap());
    seen.collect::<std::collections::BTreeSet<_>>().len()
}

#[test]
fn clients_that_can_be_asked_different_things_share_a_process_that_asks_nothing() {
    for (members, expected) in [
        (json!({}), 3),
        (json!({ "client_capabilities": false }), 1),
        (json!({ "share": "all" }), 1),
        (json!({ "share": "all", "client_capabilities": true }), 3),
        (
            json!({ "share": "session", "client_capabilities": false }),
            3,
        ),
    ] {
        let setup = shared(members.clone());
        assert_eq!(processes(&setup), expected, "{members}");
    }
}

#[test]
fn a_package_with_one_file_has_one_process_for_all_clients_and_one_call_at_a_time() {
    let server = Server::new()
        .tool("t", [surroundings()])
        .tool("slow", [sleep(400), answer("done")]);
    let setup = Setup::new().server("a", server);
    std::fs::create_dir(setup.home().path("one")).unwrap();
    let setup = Shared::new(setup);
    let script = setup.home().path("a.script.json");
    // `npx` of the session leads to the fake server, which gets the name of the package.
    let path = path_with(&setup, "bin");
    let npx = format!(
        "#!/bin/sh\nexec '{}' '{}' '{}'\n",
        crate::support::program::fake_server().display(),
        script.display(),
        setup.home().path("b.log").display()
    );
    let program = setup.home().path("bin/npx");
    std::fs::write(&program, npx).unwrap();
    std::fs::set_permissions(
        &program,
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let entry = json!({ "command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory@1.0"], "env": { "PATH": path } });
    let setup = Shared(setup.0.clone().entry("a", &entry.to_string()));
    setup.0.save();
    assert_eq!(processes(&setup), 1);
    let mut clients =
        ["{}", r#"{"elicitation":{}}"#, r#"{"roots":{}}"#].map(|kind| that_can(&setup, kind));
    let start = std::time::Instant::now();
    let calls = clients
        .each_mut()
        .map(|client| client.begin_execute("a__slow"));
    for (client, call) in clients.iter_mut().zip(calls) {
        assert_eq!(client.answer(call).text(), "done");
    }
    assert!(
        start.elapsed().as_millis() >= 1_200,
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn a_server_that_is_not_to_ask_declares_nothing_and_its_questions_are_refused() {
    let form = r#"{"message":"?","requestedSchema":{"type":"object","properties":{}}}"#;
    let tool = [
        ask("q", "elicitation/create", form),
        answer_with(r#""structuredContent":{"answer":$answer}"#),
    ];
    let server = Server::new().tool("t", tool);
    let members = json!({ "client_capabilities": false });
    let setup = Setup::new().server_with("a", server, members);
    std::fs::create_dir(setup.home().path("one")).unwrap();
    let setup = Shared::new(setup);
    let mut client = that_can(&setup, r#"{"elicitation":{}}"#);
    let text = client.execute("a__t").as_str().to_owned();
    assert!(text.contains("no client declares support"), "{text}");
    let log = setup.home().log("a");
    assert!(log.contains(r#""capabilities":{},"#), "{log}");
}

#[test]
fn a_modern_server_that_is_still_starting_is_not_started_again_for_other_capabilities() {
    let slow = Server::new()
        .modern()
        .at_start([sleep(1_000)])
        .tool("t", [surroundings()]);
    let setup = Setup::new().server("a", slow);
    std::fs::create_dir(setup.home().path("one")).unwrap();
    let broken = setup.home().path("broken");
    let start = format!("test -e '{}' && exit 1; exec \"$@\"", broken.display());
    let entry = json!({
        "command": "/bin/sh",
        "args": ["-c", start, "sh", crate::support::program::fake_server(),
            setup.home().path("a.script.json"), setup.home().path("a.log")],
        "era": "modern",
    });
    let setup = Shared::new(setup.entry("a", &entry.to_string()));
    let mut clients = ["{}", r#"{"elicitation":{}}"#].map(|kind| that_can(&setup, kind));
    noticed(&mut clients[0]);
    // After a failed start nothing is known of its era but what the entry says.
    std::fs::write(&broken, "").unwrap();
    let _ = command::run(setup.command(&["daemon", "stop", "a"]), "").code(0);
    let _ = clients[0].execute("a__t");
    std::fs::remove_file(&broken).unwrap();
    let calls = clients
        .map(|mut client| std::thread::spawn(move || noticed(&mut client)["process"].clone()));
    let seen = calls.map(|call| call.join().unwrap());
    assert_eq!(seen[0], seen[1]);
}

#[test]
fn a_program_is_found_on_the_path_of_its_own_session() {
    let setup = shared(json!({}));
    let server = setup.home().path("a.script.json");
    let mut found = Vec::new();
    for name in ["one", "two"] {
        let path = path_with(&setup, &format!("{name}/bin"));
        let program = setup.home().path(&format!("{name}/bin/tool"));
        std::os::unix::fs::symlink(crate::support::program::fake_server(), program).unwrap();
        found.push(path);
    }
    let log = setup.home().path("b.log");
    let setup = Shared(setup.0.clone().entry(
        "a",
        &json!({ "command": "tool", "args": [server, log], "share": "all" }).to_string(),
    ));
    setup.0.save();
    let processes: Vec<Value> = found
        .iter()
        .map(|path| noticed(&mut at("one", &[("PATH", path)]).start(&setup))["process"].clone())
        .collect();
    assert_ne!(processes[0], processes[1]);
}

#[test]
fn a_server_for_all_has_the_values_of_its_first_session_and_a_later_one_keeps_it_warm() {
    let setup = shared(json!({ "share": "all" }));
    let mut first = at("one", &[]).start(&setup);
    let before = noticed(&mut first);
    let mut second = at("two", &[]).start(&setup);
    first.finish();
    let after = noticed(&mut second);
    assert_eq!(before["process"], after["process"]);
    assert_eq!(after["directory"], directory(&setup, "one"));
    let status = second.execute("mcpzip__status").as_str().to_owned();
    assert!(
        status.contains("all (its entry says so), 1 session; it runs in")
            && status.contains("with the variables of its first session"),
        "{status}"
    );
    // It outlives its last session, for the next one.
    second.finish();
    until("no session is left", || {
        (setup.sessions() == 0).then_some(())
    });
    let mut third = at("two", &[]).start(&setup);
    assert_eq!(noticed(&mut third)["process"], before["process"]);
}

#[test]
fn a_server_of_the_session_is_its_own_and_ends_with_it() {
    let setup = shared(json!({ "share": "session" }));
    let mut clients = [at("one", &[]).start(&setup), at("one", &[]).start(&setup)];
    let seen: Vec<u64> = clients
        .iter_mut()
        .map(|client| noticed(client)["process"].as_u64().unwrap())
        .collect();
    assert_ne!(seen[0], seen[1]);
    let [first, mut second] = clients;
    first.finish();
    let ended = u32::try_from(seen[0]).unwrap();
    until("its server has ended", || {
        super::is_gone(ended).then_some(())
    });
    assert_eq!(noticed(&mut second)["process"], seen[1]);
}

#[test]
fn a_value_that_ages_comes_from_the_newest_session_at_each_start() {
    let members = json!({ "share": "all", "env": { "SSH_AUTH_SOCK": "${SSH_AUTH_SOCK}" } });
    let setup = shared(members);
    let mut first = at("one", &[("SSH_AUTH_SOCK", "/old")]).start(&setup);
    let before = noticed(&mut first);
    assert_eq!(before["variables"]["SSH_AUTH_SOCK"], "/old");
    let mut second = at("two", &[("SSH_AUTH_SOCK", "/new")]).start(&setup);
    assert_eq!(noticed(&mut second)["process"], before["process"]);
    let process = u32::try_from(before["process"].as_u64().unwrap()).unwrap();
    crate::support::process::signal(process, rustix::process::Signal::KILL);
    until("it has ended", || super::is_gone(process).then_some(()));
    let after = until("it was started again", || {
        let text = first.execute("a__t").text();
        serde_json::from_str::<Value>(&text).ok()
    });
    assert_eq!(after["variables"]["SSH_AUTH_SOCK"], "/new");
    assert_eq!(after["directory"], directory(&setup, "one"));
}

#[test]
fn a_server_of_several_sessions_that_asks_for_roots_is_told_their_directory() {
    let setup = Setup::new().server(
        "a",
        Server::new().tool(
            "t",
            [
                ask("r", "roots/list", "{}"),
                answer_with(r#""structuredContent":$answer"#),
            ],
        ),
    );
    std::fs::create_dir(setup.home().path("one")).unwrap();
    let setup = Shared::new(setup);
    let start = |directory: &str| {
        let mut command = setup.0.command(&["serve"]);
        command.current_dir(setup.home().path(directory));
        let mut client = setup.0.start_command(command);
        client.shake_hands_as("2025-11-25", r#"{"roots":{}}"#);
        client
    };
    let (mut client, _other) = (start("one"), start("one"));
    let text = client.execute("a__t").as_str().to_owned();
    let expected = directory(&setup, "one");
    assert!(
        text.contains(&format!("file://{}", expected.as_str().unwrap())),
        "{text}"
    );
    let remembered = std::fs::read_dir(setup.home().path("state/sharing"))
        .unwrap()
        .count();
    assert_eq!(remembered, 1, "that it asked is remembered with its entry");
    // The home directory is where programs with windows start their servers.
    let (mut client, _other) = (start("home"), start("home"));
    let text = client.execute("a__t").as_str().to_owned();
    assert!(
        text.contains(r#"\"roots\":[]"#) || text.contains(r#""roots":[]"#),
        "{text}"
    );
}

/// Sessions in the same directory that have found `query` as `tool`.
fn that_found(setup: &Shared, count: usize, query: &str, tool: &str) -> Vec<Client> {
    let mut clients: Vec<Client> = (0..count).map(|_| setup.connect()).collect();
    for client in &mut clients {
        until("the tool is found", || {
            client.search(query).contains(tool).then_some(())
        });
    }
    clients
}

#[test]
fn sessions_that_want_a_list_at_the_same_time_get_one_listing() {
    let tools =
        r#"{"tools":[{"name":"change","description":"Repairs bicycles.","inputSchema":{}}]}"#;
    let said = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let server = Server::new()
        .hidden("change", [line(said), answer("changed")])
        .on("tools/list", [sleep(1_000), result(tools)]);
    let setup = Shared::new(Setup::new().server("a", server));
    let mut clients = that_found(&setup, 6, "repair bicycles", "a__change");
    // The session that listed the tools does not list them again for a moment.
    std::thread::sleep(std::time::Duration::from_millis(600));
    let before = setup.home().count("a", "tools/list");
    assert_eq!(clients[0].execute("a__change").text(), "changed");
    // The list that is under way may be older than the change.
    let count = || setup.home().count("a", "tools/list") - before;
    until("all sessions have a new list", || {
        (count() == 2).then_some(())
    });
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    assert_eq!(count(), 2, "listings for 6 sessions");
}

#[test]
fn sessions_of_one_daemon_hold_a_list_once_and_each_finds_the_tools_of_its_own_project() {
    let setup = Setup::new();
    for name in ["one", "two"] {
        std::fs::create_dir(setup.home().path(name)).unwrap();
    }
    let of_one = json!({ "projects": [setup.home().path("one")] });
    let setup = setup
        .server("a", Server::new().tool("bake", [answer("done")]))
        .server_with("b", Server::new().tool("paint", [answer("done")]), of_one);
    let setup = Shared::new(setup);
    let find = |client: &mut Client, query: &str, tool: &str| {
        until("the tool is found", || {
            client.search(query).contains(tool).then_some(())
        });
    };
    let mut first = at("one", &[]).start(&setup);
    find(&mut first, "bake", "a__bake");
    find(&mut first, "paint", "b__paint");
    let mut clients: Vec<Client> = ["one", "one", "two"]
        .into_iter()
        .map(|name| at(name, &[]).start(&setup))
        .collect();
    for client in &mut clients {
        find(client, "bake", "a__bake");
    }
    let [.., of_one, of_two] = &mut clients[..] else {
        unreachable!("there are three")
    };
    find(of_one, "paint", "b__paint");
    assert!(!of_two.search("paint").contains("b__paint"));
    let files = std::fs::read_dir(format!("/proc/{}/fd", setup.process())).unwrap();
    let lists: Vec<PathBuf> = files
        .filter_map(|file| std::fs::read_link(file.unwrap().path()).ok())
        .filter(|path| path.extension().is_some_and(|end| end == "tools"))
        .collect();
    assert_eq!(lists.len(), 2, "a list of each server is open: {lists:?}");
}
