//! The window of a gateway: two people with two roles, each way across; and who gets in at all.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use super::{heard, json_of};
use crate::support::command;
use crate::support::gateway::{Answer, Call, Gateway, Incoming};
use crate::support::script::{answer, echo};
use crate::support::{Server, Setup, until};

/// The time within which a revoked token must have ended everything.
const LIMIT: Duration = Duration::from_secs(10);

/// Methods and actions that only a role with `manage` gives, and those that no one has here.
const MANAGED_METHODS: [&str; 5] = [
    "servers.stop",
    "servers.restart",
    "approvals.list",
    "approvals.allow",
    "approvals.deny",
];
const MANAGED: [&str; 10] = [
    "gain",
    "logs",
    "enable",
    "disable",
    "differences",
    "approve",
    "reject",
    "approvals",
    "allow",
    "deny",
];
const METHODS_OF_MACHINE: [&str; 6] = [
    "daemon.stop",
    "daemon.restart",
    "daemon.reload",
    "ui.open",
    "events.subscribe",
    "nothing",
];
const OF_MACHINE: [&str; 17] = [
    "add",
    "add_from_registry",
    "remove",
    "registry",
    "login",
    "logout",
    "update",
    "clients",
    "connect",
    "disconnect",
    "migrate",
    "undo",
    "undo_list",
    "doctor",
    "config",
    "config_write",
    "nothing",
];

fn roles() -> Value {
    json!({
        "dev": { "profiles": ["code"] },
        "admin": { "profiles": ["*"], "manage": true },
    })
}

fn setup() -> Setup {
    let git = Server::new()
        .tool("log", [answer("the log")])
        .tool("echo", [echo()])
        .tool("push", [answer("pushed")])
        .tool("ask", [answer("agreed")]);
    let vault = Server::new().tool("read", [answer("a secret")]);
    Setup::new()
        .alone()
        .server_with(
            "vault",
            vault,
            json!({ "env": { "VAULT_KEY": "s3cret-of-the-vault" } }),
        )
        .server("git", git)
        .setting("search", json!({ "semantic": false }))
        .setting("audit", json!({ "arguments": "redacted" }))
        .setting("http", json!({ "auth": "tokens", "ui": true }))
        .setting("tools", json!({ "ask": ["git__ask"] }))
        .setting("approvals", json!({ "wait": "60s" }))
        .setting(
            "profiles",
            json!({ "code": { "servers": ["git"], "tools": { "deny": ["git__push"] } } }),
        )
        .setting("roles", roles())
}

#[track_caller]
fn token(setup: &Setup, arguments: &[&str]) -> String {
    let made = setup.run(&[&["token", "create"], arguments].concat());
    made.code(0).stdout.trim().to_owned()
}

/// A browser of a person.
struct Page<'g> {
    gateway: &'g Gateway,
    cookie: String,
}

fn form(gateway: &Gateway, path: &str, body: &str) -> Call {
    gateway
        .call("POST", path)
        .header("Origin", &format!("http://{}", gateway.address()))
        .header("Content-Type", "application/x-www-form-urlencoded")
        .body(body)
}

impl<'g> Page<'g> {
    /// Shows a token in the form.
    #[track_caller]
    fn enter(gateway: &'g Gateway, token: &str) -> Self {
        let entered = form(gateway, "/ui/enter", &format!("token={token}")).send();
        assert_eq!(entered.status, 303, "{entered:?}");
        assert_eq!(entered.header("location"), "./");
        let cookie = entered.header("set-cookie");
        for part in ["mcpzip-window=", "HttpOnly", "SameSite=Lax", "Path=/ui/"] {
            assert!(cookie.contains(part), "{cookie}");
        }
        assert!(!entered.body.contains(token), "{}", entered.body);
        Self {
            gateway,
            cookie: cookie.split(';').next().unwrap().to_owned(),
        }
    }

    fn get(&self, path: &str) -> Call {
        let call = self.gateway.call("GET", &format!("/ui/{path}"));
        call.header("Cookie", &self.cookie)
    }

    fn post(&self, door: &str, body: &Value) -> Call {
        let call = self.gateway.call("POST", &format!("/ui/api/{door}"));
        call.header("Cookie", &self.cookie)
            .header("Origin", &format!("http://{}", self.gateway.address()))
            .header("Sec-Fetch-Site", "same-origin")
            .header("Content-Type", "application/json")
            .header("X-Mcpzip", "1")
            .body(&body.to_string())
    }

    fn asked(&self, method: &str, params: &Value) -> Answer {
        let body = json!({ "method": method, "params": params });
        self.post("control", &body).send()
    }

    fn acted(&self, action: &str, arguments: &Value) -> Answer {
        let body = json!({ "action": action, "arguments": arguments });
        self.post("command", &body).send()
    }

    #[track_caller]
    fn control(&self, method: &str, params: &Value) -> Value {
        let answer = json_of(&self.asked(method, params));
        assert_eq!(answer.get("error"), None, "{method}: {answer}");
        answer["result"].clone()
    }

    #[track_caller]
    fn output(&self, action: &str, arguments: &Value) -> Value {
        let ran = json_of(&self.acted(action, arguments));
        assert_eq!(ran["exit"], 0, "{action}: {ran}");
        ran["output"].clone()
    }

    #[track_caller]
    fn listen(&self) -> Incoming {
        let stream = self.get("api/events").open();
        assert_eq!(stream.status(), 200);
        stream
    }
}

/// The names of a list of servers.
fn names(list: &Value, member: &str) -> Vec<String> {
    let list = list["servers"].as_array().unwrap();
    let mut names: Vec<String> = list
        .iter()
        .map(|one| one[member].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names.dedup();
    names
}

/// Arguments with which an action is well formed.
fn arguments_of(action: &str) -> Value {
    match action {
        "enable" | "disable" | "remove" | "login" | "logout" | "logs" => json!({ "server": "git" }),
        "approve" | "reject" => json!({ "server": "git", "digest": "0" }),
        "allow" | "deny" => json!({ "id": "k3f9qaab" }),
        "add" => json!({ "name": "x", "url": "https://x.example/mcp" }),
        "add_from_registry" => json!({ "name": "x" }),
        "registry" => json!({ "query": "x" }),
        "connect" | "disconnect" => json!({ "client": "claude-code" }),
        "config_write" => json!({ "text": "{}", "before": "0" }),
        _ => json!({}),
    }
}

#[test]
fn each_person_sees_and_calls_what_is_theirs() {
    let setup = setup();
    let anna = token(&setup, &["anna", "--role", "dev"]);
    let zoe = token(&setup, &["zoe", "--role", "admin", "--manage"]);
    let gateway = setup.serve(&[]);
    let (anna, zoe) = (Page::enter(&gateway, &anna), Page::enter(&gateway, &zoe));
    let index = anna.get("").send();
    assert_eq!(index.status, 200);
    assert!(index.body.contains("id=\"app\""), "{}", index.body);
    let policy = index.header("content-security-policy");
    assert!(
        policy.starts_with("default-src 'none'; script-src 'self'"),
        "{policy}"
    );
    assert_eq!(index.header("referrer-policy"), "no-referrer");

    let offered = anna.control("ui.offered", &json!({}));
    assert_eq!(
        offered["person"],
        json!({ "name": "anna", "roles": ["dev"], "manages": false })
    );
    for name in MANAGED.iter().chain(&OF_MACHINE) {
        assert!(
            !offered["actions"]
                .as_array()
                .unwrap()
                .contains(&json!(name)),
            "{name}"
        );
    }
    let all = zoe.control("ui.offered", &json!({}));
    assert_eq!(all["person"]["manages"], true);
    for name in MANAGED {
        assert!(
            all["actions"].as_array().unwrap().contains(&json!(name)),
            "{name}"
        );
    }

    for list in [
        anna.output("list", &json!({})),
        anna.output("status", &json!({})),
    ] {
        assert_eq!(names(&list, "name"), ["git"], "{list}");
        assert_eq!(
            list["servers"][0].get("target").unwrap_or(&Value::Null),
            &Value::Null
        );
    }
    assert_eq!(
        names(&anna.control("servers.list", &json!({})), "server"),
        ["git"]
    );
    let seen = zoe.output("list", &json!({}));
    assert_eq!(names(&seen, "name"), ["git", "vault"]);
    assert!(!seen.to_string().contains("s3cret-of-the-vault"), "{seen}");
    assert_eq!(
        names(&zoe.control("servers.list", &json!({})), "server"),
        ["git", "vault"]
    );

    // A tool that a rule withholds is not there, in no spelling.
    let tools = anna.output("tools", &json!({})).to_string();
    assert!(
        tools.contains("git__log") && !tools.contains("push") && !tools.contains("vault"),
        "{tools}"
    );
    let found = anna.output("search", &json!({ "query": "read push log" }));
    let hits = found["hits"].to_string();
    assert!(hits.contains("git__log"), "{found}");
    assert!(
        !hits.contains("git__push") && !hits.contains("vault"),
        "{found}"
    );
    for name in ["vault__read", "git__push"] {
        // A call fails as a tool fails for an agent.
        for (action, exit) in [("describe", 1), ("call", 5)] {
            let ran = json_of(&anna.acted(action, &json!({ "name": name })));
            assert_eq!(ran["exit"], exit, "{action} {name}: {ran}");
            let said = ran.to_string();
            assert!(
                !said.contains("a secret") && !said.contains("pushed"),
                "{ran}"
            );
        }
    }
    let missing = json_of(&anna.acted("tools", &json!({ "server": "vault" })));
    let unknown = json_of(&anna.acted("tools", &json!({ "server": "fault" })));
    assert_eq!(
        missing["error"].as_str().unwrap().replace("vault", "fault"),
        unknown["error"].as_str().unwrap()
    );

    let called = anna.output(
        "call",
        &json!({ "name": "git__echo", "arguments": { "x": "of anna" } }),
    );
    assert!(called.to_string().contains("of anna"), "{called}");
    let read = zoe.output("call", &json!({ "name": "vault__read" }));
    assert!(read.to_string().contains("a secret"), "{read}");

    // Each line has the identity, and each person gets their own.
    let own = anna.output("audit", &json!({}));
    let own = own.as_array().unwrap();
    assert!(
        own.iter().all(|line| line["identity"] == "token:anna"),
        "{own:?}"
    );
    let line = own.iter().find(|line| line["tool"] == "echo").unwrap();
    assert_eq!(
        (&line["kind"], &line["client"]),
        (&json!("call"), &json!("mcpzip-window"))
    );
    assert_eq!(line["arguments"], json!({ "x": "of anna" }));
    assert!(
        line.get("prev").is_none() && line.get("n").is_none(),
        "{line}"
    );
    // The name alone is that of several identities, and a filter takes nothing away from that.
    let others = anna.output("audit", &json!({ "user": "zoe" }));
    assert!(!others.to_string().contains("token:zoe"), "{others}");
    let whole = zoe.output("audit", &json!({})).to_string();
    assert!(
        whole.contains("token:anna") && whole.contains("token:zoe"),
        "{whole}"
    );
    // What the machine's own user did is not the gateway's.
    assert!(!whole.contains("a token for"), "{whole}");
    let all = setup.run(&["audit", "--json"]).code(0).stdout;
    assert!(all.contains("a token for anna"), "{all}");
    let stats = anna.output("stats", &json!({}));
    let tools: Vec<&Value> = stats["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["tool"])
        .collect();
    assert_eq!(tools, ["echo"], "{stats}");
    // Those of all people are counted by day.
    assert!(zoe.output("stats", &json!({})).get("from").is_some());
    assert!(zoe.output("gain", &json!({}))["sum"].is_object());
}

#[test]
fn what_a_role_does_not_give_is_refused_and_changes_nothing() {
    let setup = setup();
    let anna = token(&setup, &["anna", "--role", "dev"]);
    let zoe = token(&setup, &["zoe", "--role", "admin", "--manage"]);
    // A token that is limited to a profile has no rights beyond it.
    let limited = token(&setup, &["limited", "--role", "admin", "--profile", "code"]);
    let gateway = setup.serve(&[]);
    let (anna, zoe) = (Page::enter(&gateway, &anna), Page::enter(&gateway, &zoe));
    let limited = Page::enter(&gateway, &limited);
    let file = fs::read_to_string(setup.config_path()).unwrap();
    for lesser in [&anna, &limited] {
        for method in MANAGED_METHODS {
            let answer = lesser.asked(method, &json!({ "server": "git" }));
            assert_eq!(answer.status, 403, "{method}: {}", answer.body);
            assert!(answer.body.contains("`manage`"), "{}", answer.body);
        }
        for action in MANAGED {
            let answer = lesser.acted(action, &arguments_of(action));
            assert_eq!(answer.status, 403, "{action}: {}", answer.body);
        }
    }
    for person in [&anna, &zoe] {
        for method in METHODS_OF_MACHINE {
            let answer = person.asked(method, &json!({}));
            assert_eq!(answer.status, 403, "{method}: {}", answer.body);
            assert!(answer.body.contains("machine"), "{}", answer.body);
        }
        for action in OF_MACHINE {
            let answer = person.acted(action, &arguments_of(action));
            assert_eq!(answer.status, 403, "{action}: {}", answer.body);
        }
    }
    assert_eq!(fs::read_to_string(setup.config_path()).unwrap(), file);
    let log = zoe.output("audit", &json!({ "kind": "daemon" }));
    assert_eq!(log, json!([]), "nothing was ordered");

    // The manager does what anna could not, and that is recorded.
    zoe.control("servers.restart", &json!({ "server": "git" }));
    zoe.output("disable", &json!({ "server": "git" }));
    let ran = json_of(&anna.acted("call", &json!({ "name": "git__log" })));
    assert_eq!(ran["exit"], 5, "{ran}");
    let states = zoe.output("list", &json!({}));
    assert!(states.to_string().contains("disabled"), "{states}");
    zoe.output("enable", &json!({ "server": "git" }));
    assert!(
        anna.output("call", &json!({ "name": "git__log" }))
            .to_string()
            .contains("the log")
    );
    assert!(zoe.output("logs", &json!({ "server": "git" }))["lines"].is_array());
    assert_eq!(zoe.output("differences", &json!({})), json!([]));
    let stale = json_of(&zoe.acted("approve", &arguments_of("approve")));
    assert_eq!(stale["exit"], 1, "{stale}");
    let log = zoe.output("audit", &json!({ "kind": "daemon" }));
    let details: Vec<&str> = log
        .as_array()
        .unwrap()
        .iter()
        .map(|line| {
            assert_eq!(line["identity"], "token:zoe", "{line}");
            assert_eq!(line["server"], "git", "{line}");
            line["detail"].as_str().unwrap()
        })
        .collect();
    assert_eq!(
        details,
        ["servers.restart", "disable", "enable", "approve"]
            .map(|order| format!("{order} in the window of the gateway"))
    );
}

#[test]
fn a_call_that_a_rule_asks_about_waits_for_the_manager() {
    let setup = setup();
    let anna = token(&setup, &["anna", "--role", "dev"]);
    let zoe = token(&setup, &["zoe", "--role", "admin", "--manage"]);
    let gateway = setup.serve(&[]);
    let (anna, zoe) = (Page::enter(&gateway, &anna), Page::enter(&gateway, &zoe));
    let (mut hers, mut all) = (anna.listen(), zoe.listen());
    let call = json!({ "action": "call", "arguments": { "name": "git__ask" } });
    let waiting = std::io::BufReader::new(anna.post("command", &call).begin());
    let wanted = heard(&mut all, "approval_wanted");
    assert_eq!(wanted["identity"], "token:anna");
    assert_eq!(heard(&mut hers, "approval_wanted")["tool"], "ask");
    let id = wanted["approval"].as_str().unwrap();
    assert_eq!(
        anna.asked("approvals.allow", &json!({ "id": id })).status,
        403
    );
    let pending = zoe.control("approvals.list", &json!({}));
    assert_eq!(pending["approvals"][0]["person"], "anna", "{pending}");
    zoe.output("allow", &json!({ "id": id }));
    let (answer, _) = Incoming::read(waiting).whole();
    assert!(
        json_of(&answer)["output"].to_string().contains("agreed"),
        "{answer:?}"
    );
    let log = zoe
        .output("audit", &json!({ "kind": "daemon" }))
        .to_string();
    assert!(
        log.contains("allow call") && log.contains("token:zoe"),
        "{log}"
    );
}

#[test]
fn streams_show_the_calls_of_their_own_person() {
    let setup = setup();
    let anna = token(&setup, &["anna", "--role", "dev"]);
    let zoe = token(&setup, &["zoe", "--role", "admin", "--manage"]);
    let gateway = setup.serve(&[]);
    let (anna, zoe) = (Page::enter(&gateway, &anna), Page::enter(&gateway, &zoe));
    let (mut hers, mut all) = (anna.listen(), zoe.listen());
    zoe.output("call", &json!({ "name": "git__log" }));
    zoe.output("call", &json!({ "name": "vault__read" }));
    anna.output("call", &json!({ "name": "git__echo" }));
    // What came before is in the order of its numbers.
    let mut own = Vec::new();
    loop {
        let event = hers.event().expect("the stream goes on");
        let data: Value = serde_json::from_str(&event.data).unwrap();
        assert_ne!(data["server"], "vault", "{data}");
        if data["kind"] == "call_ended" {
            own.push(data["tool"].clone());
            break;
        }
    }
    assert_eq!(own, ["echo"]);
    let tools = [(); 3].map(|()| heard(&mut all, "call_ended")["tool"].clone());
    assert_eq!(tools, ["log", "read", "echo"]);
    // One person cannot take the places of all.
    let more: Vec<Incoming> = (1..16).map(|_| anna.listen()).collect();
    let refused = anna.get("api/events").send();
    assert_eq!(refused.status, 429, "{}", refused.body);
    drop(more);
    zoe.listen();
}

#[test]
fn a_revoked_token_or_a_removed_right_ends_everything_soon() {
    let setup = setup();
    let anna = token(&setup, &["anna", "--role", "dev"]);
    let zoe = token(&setup, &["zoe", "--role", "admin", "--manage"]);
    let gateway = setup.serve(&[]);
    let (anna, zoe) = (Page::enter(&gateway, &anna), Page::enter(&gateway, &zoe));
    let (mut hers, mut all) = (anna.listen(), zoe.listen());
    let start = Instant::now();
    let _ = setup.run(&["token", "revoke", "anna"]).code(0);
    while hers.event().is_some() {}
    assert!(start.elapsed() < LIMIT, "{:?}", start.elapsed());
    assert_eq!(anna.asked("servers.list", &json!({})).status, 401);
    assert_eq!(anna.get("").send().status, 401);
    assert_eq!(anna.get("api/events").send().status, 401);
    // Zoe stays, without the right to manage.
    let start = Instant::now();
    let mut without = roles();
    without["admin"]["manage"] = json!(false);
    let changed = setup.setting("roles", without);
    changed.save();
    while all.event().is_some() {}
    assert!(start.elapsed() < LIMIT, "{:?}", start.elapsed());
    assert_eq!(zoe.asked("approvals.list", &json!({})).status, 401);
    let token = token(&changed, &["zoe2", "--role", "admin"]);
    until("the gateway knows the new token", || {
        let entered = form(&gateway, "/ui/enter", &format!("token={token}")).send();
        (entered.status == 303).then_some(())
    });
    let again = Page::enter(&gateway, &token);
    assert_eq!(again.asked("approvals.list", &json!({})).status, 403);
    // Leaving ends the session of this browser.
    assert_eq!(again.control("ui.close", &json!({})), json!({ "count": 1 }));
    assert_eq!(again.get("api/events").send().status, 401);
}

#[test]
fn nothing_of_the_window_answers_without_an_identity() {
    let setup = setup();
    let anna = token(&setup, &["anna", "--role", "dev"]);
    let gateway = setup.serve(&[]);
    let entrance = gateway.call("GET", "/ui/").send();
    assert_eq!(entrance.status, 401);
    assert!(entrance.body.contains("type=password"), "{}", entrance.body);
    assert!(!entrance.body.contains("<script"), "{}", entrance.body);
    assert_eq!(gateway.call("GET", "/ui").send().header("location"), "ui/");
    let page = Page::enter(&gateway, &anna);
    let body = json!({ "method": "servers.list" });
    let doors = [
        page.post("control", &body),
        page.post("command", &json!({ "action": "list" })),
        page.get("api/events"),
        page.get("mark.svg"),
    ];
    for door in doors {
        for cookie in [
            "",
            "mcpzip-window=AAAA",
            "mcpzip-window=",
            "mcpzip-logins=AAAA",
        ] {
            let refused = door.clone().header("Cookie", cookie).send();
            assert_eq!(refused.status, 401, "{}", refused.body);
        }
        let wrong = door.header("Authorization", "Bearer mcpzip_x").send();
        assert_eq!(wrong.status, 401, "{}", wrong.body);
    }
    // A token in the header is the client's own way, and counts as well; one in the URL does not.
    let by_header = page.post("control", &body).without("Cookie");
    let by_header = by_header.header("Authorization", &format!("Bearer {anna}"));
    assert_eq!(by_header.send().status, 200);
    let in_url = gateway.call("GET", &format!("/ui/api/events?token={anna}"));
    assert_eq!(in_url.send().status, 401);
    // The cookie of the page of logins, which every port of the host gets, is none of the window.
    let entered = form(&gateway, "/logins/enter", &format!("token={anna}")).send();
    let cookie = entered.header("set-cookie").split(';').next().unwrap();
    let value = cookie.strip_prefix("mcpzip-logins=").unwrap();
    for cookie in [cookie, &format!("mcpzip-window={value}")] {
        let refused = gateway.call("GET", "/ui/").header("Cookie", cookie).send();
        assert_eq!(refused.status, 401, "{refused:?}");
    }
    let wrong = form(&gateway, "/ui/enter", "token=mcpzip_x").send();
    assert_eq!((wrong.status, wrong.header("set-cookie")), (401, ""));
    // There is no login where there is no authorization server.
    assert_eq!(gateway.call("GET", "/ui/login").send().status, 404);
    assert_eq!(
        gateway
            .call("GET", "/ui/callback?code=x&state=y")
            .send()
            .status,
        403
    );
}

#[test]
fn requests_of_other_pages_and_hosts_are_refused() {
    let setup = setup();
    let anna = token(&setup, &["anna", "--role", "dev"]);
    // An origin that may call MCP may not use the window.
    let gateway = setup.serve(&["--allow-origin", "https://app.example"]);
    let page = Page::enter(&gateway, &anna);
    let own = page.post("control", &json!({ "method": "servers.list" }));
    assert_eq!(own.send().status, 200);
    for (name, value) in [
        ("Host", "evil.example"),
        ("Origin", "http://evil.example"),
        ("Origin", "https://app.example"),
        ("Origin", "null"),
        ("Origin", "http://127.0.0.1:1"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
        ("Content-Type", "text/plain"),
        ("X-Mcpzip", "0"),
    ] {
        let refused = own.clone().header(name, value).send();
        assert_eq!(refused.status, 403, "{name}: {value}: {}", refused.body);
    }
    for name in ["Origin", "Content-Type", "X-Mcpzip"] {
        assert_eq!(own.clone().without(name).send().status, 403, "{name}");
    }
    let twice = own.and_header("Host", "evil.example").send();
    assert_eq!(twice.status, 400);
    let events = page
        .get("api/events")
        .header("Sec-Fetch-Site", "cross-site");
    assert_eq!(events.send().status, 403);
    let foreign = form(&gateway, "/ui/enter", &format!("token={anna}"));
    let foreign = foreign.header("Origin", "http://evil.example").send();
    assert_eq!((foreign.status, foreign.header("set-cookie")), (403, ""));
    // A link to the window may be followed.
    let followed = page.get("").header("Sec-Fetch-Site", "cross-site");
    let followed = followed.header("Sec-Fetch-Mode", "navigate").send();
    assert_eq!(followed.status, 200);
}

#[test]
fn a_person_whom_a_proxy_names_needs_no_form() {
    let http = json!({
        "auth": { "forwarded": { "user_header": "X-User", "from": ["127.0.0.1"] } },
        "public_url": "https://mcp.example.com",
        "ui": true,
    });
    let mut people = roles();
    people["dev"]["users"] = json!(["anna"]);
    let setup = setup().setting("http", http).setting("roles", people);
    let gateway = setup.serve(&[]);
    let call = |user: &str| {
        gateway
            .call("POST", "/ui/api/control")
            .header("Origin", "https://mcp.example.com")
            .header("Content-Type", "application/json")
            .header("X-Mcpzip", "1")
            .header("X-User", user)
            .body(&json!({ "method": "ui.offered" }).to_string())
    };
    let offered = json_of(&call("anna").send());
    assert_eq!(offered["result"]["person"]["name"], "anna");
    assert_eq!(call("eve").send().status, 403);
    assert_eq!(call("anna").and_header("X-User", "eve").send().status, 401);
    assert_eq!(call("anna").without("X-User").send().status, 401);
}

#[test]
fn the_window_is_off_by_default_and_needs_a_login() {
    let off = setup().setting("http", json!({ "auth": "tokens" }));
    let anna = token(&off, &["anna", "--role", "dev"]);
    let gateway = off.serve(&[]);
    for path in ["/ui", "/ui/", "/ui/api/events"] {
        let call = gateway.call("GET", path);
        let answer = call.header("Authorization", &format!("Bearer {anna}"));
        assert_eq!(answer.send().status, 404, "{path}");
    }
    let open = setup().setting("http", json!({ "ui": true }));
    open.save();
    let command = open.command(&["serve", "--http", "127.0.0.1:0"]);
    let said = command::run(command, "").code(3).stderr;
    assert!(
        said.contains("`http.ui`") && said.contains("`http.auth`"),
        "{said}"
    );
}

#[test]
fn a_log_that_cannot_be_written_lets_no_one_manage() {
    let setup = setup();
    let zoe = token(&setup, &["zoe", "--role", "admin", "--manage"]);
    // A file is where the directory of the log would be.
    let audit = setup.home().path("state/audit");
    let _ = fs::remove_dir_all(&audit);
    fs::write(&audit, "").unwrap();
    let gateway = setup.serve(&[]);
    let zoe = Page::enter(&gateway, &zoe);
    let answer = json_of(&zoe.asked("servers.stop", &json!({ "server": "git" })));
    let refused = answer["error"]["message"].as_str().unwrap();
    assert!(refused.contains("audit log"), "{refused}");
    let ran = json_of(&zoe.acted("disable", &json!({ "server": "git" })));
    assert_eq!(ran["exit"], 1, "{ran}");
    let list = zoe.output("list", &json!({}));
    assert!(!list.to_string().contains("disabled"), "{list}");
}

#[test]
fn people_read_whom_to_ask_and_no_command_of_the_gateways_machine() {
    let setup = setup()
        .setting("approvals", json!({ "wait": "1s" }))
        .server_with(
            "new",
            Server::new().tool("read_page", [echo()]),
            json!({ "trust": "quarantine" }),
        )
        .setting(
            "roles",
            json!({ "dev": { "profiles": ["all"] }, "admin": { "profiles": ["*"], "manage": true } }),
        )
        .setting("profiles", json!({ "all": { "servers": ["git", "new"] } }));
    let anna = token(&setup, &["anna", "--role", "dev"]);
    let zoe = token(&setup, &["zoe", "--role", "admin", "--manage"]);
    let gateway = setup.serve(&[]);
    let said = |tool: &str, token: &str| {
        let call = gateway.modern_execute(tool, "");
        let call = call.and_header("Authorization", &format!("Bearer {token}"));
        call.send().body
    };
    until("the server is listed", || {
        said("mcpzip__status", &anna)
            .contains("new: ready")
            .then_some(())
    });
    for (tool, to_anna, to_zoe) in [
        (
            "git__ask",
            "ask who runs this gateway to allow it, then make exactly the same call again",
            "allow it in the window of this gateway (or deny it)",
        ),
        (
            "new__read_page",
            "Who runs this gateway has to review that",
            "A person has to review that in the window of this gateway",
        ),
        (
            "mcpzip__status",
            "approval (ask who runs this gateway)",
            "approval (in the window of this gateway)",
        ),
    ] {
        for (token, expected) in [(&anna, to_anna), (&zoe, to_zoe)] {
            let text = said(tool, token);
            assert!(text.contains(expected), "{tool}: {text}");
            let home = setup.home().path("").display().to_string();
            for word in ["`mcpzip ", "terminal", home.as_str()] {
                assert!(!text.contains(word), "{tool}: `{word}` in {text}");
            }
        }
    }
}

#[test]
fn a_token_that_an_agent_may_have_does_not_manage() {
    let setup = setup();
    let zoe = token(&setup, &["zoe", "--role", "admin"]);
    let gateway = setup.serve(&[]);
    let page = Page::enter(&gateway, &zoe);
    let by_header = |token: &str, method: &str| {
        let call = page.post("control", &json!({ "method": method }));
        let call = call.without("Cookie");
        call.header("Authorization", &format!("Bearer {token}"))
            .send()
    };
    assert_eq!(
        page.control("ui.offered", &json!({}))["person"]["manages"],
        false
    );
    for answer in [
        page.asked("approvals.list", &json!({})),
        page.acted("approve", &arguments_of("approve")),
        by_header(&zoe, "approvals.list"),
    ] {
        assert_eq!(answer.status, 403, "{}", answer.body);
    }
    // The right is one of the token, and has to be one of a role too.
    let manager = token(&setup, &["zoe", "--role", "admin", "--manage"]);
    until("the gateway knows the new token", || {
        (by_header(&manager, "approvals.list").status == 200).then_some(())
    });
    assert_eq!(by_header(&zoe, "approvals.list").status, 403);
    let listed = setup.run(&["token", "list", "--json"]).code(0).json();
    let listed = listed.as_array().unwrap().iter();
    let manage = listed.filter(|one| one["manages"] == true).count();
    assert_eq!(manage, 1);
    let create = ["token", "create", "anna", "--role", "dev", "--manage"];
    let refused = setup.run(&create).code(1).stderr;
    assert!(refused.contains("`manage`"), "{refused}");
    let create = ["token", "create", "zoe", "--manage", "--profile", "code"];
    let _ = setup.run(&create).code(2);
}

#[test]
fn reading_the_log_holds_no_one_up() {
    let setup = setup();
    let anna = token(&setup, &["anna", "--role", "dev"]);
    // A log of many lines, in a chain of their own.
    let chains = setup.home().path("state/audit");
    let files = |directory: &Path| -> Vec<PathBuf> {
        let files = fs::read_dir(directory).unwrap();
        files.map(|file| file.unwrap().path()).collect()
    };
    let chain = files(&chains)
        .into_iter()
        .find(|file| file.is_dir())
        .unwrap();
    let is_segment = |file: &PathBuf| file.extension().is_some_and(|end| end == "jsonl");
    let segment = files(&chain).into_iter().find(is_segment).unwrap();
    let copy = chains.join("ffffffffffffffff");
    fs::create_dir(&copy).unwrap();
    let line = json!({
        "time": "2999-01-01T00:00:00.000000Z", "kind": "call", "outcome": "ok", "identity": "token:anna",
        "server": "git", "tool": "log", "ms": 1.5, "sent": 2, "received": 3, "arguments": "x".repeat(200),
    });
    let lines = format!("{line}\n").repeat(20_000);
    fs::write(copy.join(segment.file_name().unwrap()), lines).unwrap();
    let gateway = setup.serve(&[]);
    let anna = Page::enter(&gateway, &anna);
    let read = |action: &str| {
        let body = json!({ "action": action, "arguments": {} });
        std::io::BufReader::new(anna.post("command", &body).begin())
    };
    let waiting: Vec<_> = (0..4).map(|_| read("stats")).collect();
    let (ends, health) = std::thread::scope(|scope| {
        let ends: Vec<_> = waiting
            .into_iter()
            .map(|one| {
                scope.spawn(|| {
                    let (answer, _) = Incoming::read(one).whole();
                    let stats = json_of(&answer)["output"].clone();
                    assert_eq!(stats["tools"][0]["calls"], 20_000, "{stats}");
                    assert_eq!(stats["tools"][0]["received_bytes"], 60_000);
                    Instant::now()
                })
            })
            .collect();
        assert_eq!(gateway.call("GET", "/healthz").send().status, 200);
        let health = Instant::now();
        let ends: Vec<Instant> = ends.into_iter().map(|one| one.join().unwrap()).collect();
        (ends, health)
    });
    // The readings came first, and one after the other.
    assert!(ends.iter().any(|end| *end > health));
    let lines = anna.output("audit", &json!({ "limit": 3, "since": "2d" }));
    assert_eq!(lines.as_array().unwrap().len(), 3);
}

#[cfg(unix)]
#[test]
fn what_a_persons_process_wrote_is_for_that_person() {
    let failing = json!({ "command": "sh", "args": ["-c", "echo \"process $$\" >&2; exit 3"] });
    let setup = setup().entry("broken", &failing.to_string()).setting(
        "profiles",
        json!({ "code": { "servers": ["git", "broken"] } }),
    );
    let anna = token(&setup, &["anna", "--role", "dev"]);
    let bo = token(&setup, &["bo", "--role", "dev"]);
    let zoe = token(&setup, &["zoe", "--role", "admin", "--manage"]);
    let gateway = setup.serve(&[]);
    let [anna, bo, zoe] = [anna, bo, zoe].map(|token| Page::enter(&gateway, &token));
    let reasons = |page: &Page<'_>| -> Vec<String> {
        let events = page.control("events.list", &json!({}))["events"].clone();
        let events = events.as_array().unwrap().iter();
        let failed = events.filter(|event| event["kind"] == "server_failed");
        failed
            .map(|event| event["reason"].as_str().unwrap().to_owned())
            .collect()
    };
    for page in [&anna, &bo] {
        page.acted("tools", &json!({ "server": "broken" }));
    }
    let [hers, his] = [&anna, &bo].map(|page| {
        until("a failure", || {
            Some(reasons(page)).filter(|reasons| !reasons.is_empty())
        })
    });
    assert!(hers[0].contains("process "), "{hers:?}");
    assert!(
        hers.iter().all(|reason| !his.contains(reason)),
        "{hers:?} {his:?}"
    );
    let all = reasons(&zoe);
    assert!(all.contains(&hers[0]) && all.contains(&his[0]), "{all:?}");
}

#[test]
fn a_limited_token_reads_nothing_of_the_others_of_its_person() {
    let setup = setup();
    let whole = token(&setup, &["anna", "--role", "admin"]);
    let limited = token(&setup, &["anna", "--role", "admin", "--profile", "code"]);
    let gateway = setup.serve(&[]);
    let (whole, limited) = (
        Page::enter(&gateway, &whole),
        Page::enter(&gateway, &limited),
    );
    limited.output("tools", &json!({ "server": "git" }));
    let mut stream = limited.listen();
    for name in ["vault__read", "git__push", "git__log"] {
        whole.output("call", &json!({ "name": name }));
    }
    limited.output("call", &json!({ "name": "git__echo" }));
    let seen = [(); 2].map(|()| heard(&mut stream, "call_ended")["tool"].clone());
    assert_eq!(seen, ["log", "echo"]);
    let tools = |lines: &Value| -> Vec<Value> {
        let lines = lines.as_array().unwrap().iter();
        lines.map(|line| line["tool"].clone()).collect()
    };
    let lines = limited.output("audit", &json!({}));
    assert_eq!(tools(&lines), ["echo"], "{lines}");
    let stats = limited.output("stats", &json!({}));
    assert_eq!(tools(&stats["tools"]), ["echo"], "{stats}");
    let lines = whole.output("audit", &json!({ "kind": "call" }));
    assert_eq!(tools(&lines), ["read", "push", "log", "echo"], "{lines}");
    // The next person of the name is another one.
    let _ = setup.run(&["token", "revoke", "anna"]).code(0);
    let revoked = SystemTime::now();
    until("the next second", || {
        let passed = revoked.elapsed().ok()?;
        (passed > Duration::from_secs(1)).then_some(())
    });
    let next = token(&setup, &["anna", "--role", "admin"]);
    until("the gateway knows the new token", || {
        let entered = form(&gateway, "/ui/enter", &format!("token={next}")).send();
        (entered.status == 303).then_some(())
    });
    let lines = Page::enter(&gateway, &next).output("audit", &json!({}));
    assert_eq!(lines, json!([]));
}

#[test]
fn a_stream_ends_before_a_proxy_could_be_wrong_about_its_person() {
    let http = json!({
        "auth": { "forwarded": { "user_header": "X-User", "from": ["127.0.0.1"] } },
        "ui": true,
    });
    let mut people = roles();
    people["admin"]["users"] = json!(["zoe"]);
    let setup = setup().setting("http", http).setting("roles", people);
    let gateway = setup.serve(&[]);
    let events = || {
        gateway
            .call("GET", "/ui/api/events")
            .header("X-User", "zoe")
    };
    let start = Instant::now();
    let mut stream = events().open();
    assert_eq!(stream.status(), 200);
    let mut last = None;
    while let Some(event) = stream.event() {
        last = Some(event);
    }
    assert!(start.elapsed() < LIMIT, "{:?}", start.elapsed());
    assert_eq!(last.unwrap().kind, "renewed");
    assert_eq!(events().open().status(), 200);
}

#[test]
fn the_machines_own_user_decides_on_their_own_calls() {
    let setup = setup();
    let zoe = token(&setup, &["zoe", "--role", "admin", "--manage"]);
    let gateway = setup.serve(&[]);
    let zoe = Page::enter(&gateway, &zoe);
    let mut local = setup.connect();
    local.begin("execute_tool", &json!({ "name": "git__ask" }).to_string());
    let id = until("a question", || {
        let listed = setup.run(&["approvals", "list", "--json"]).code(0).json();
        listed[0]["id"].as_str().map(str::to_owned)
    });
    let pending = zoe.control("approvals.list", &json!({}));
    assert_eq!(pending["approvals"], json!([]));
    assert_eq!(zoe.output("approvals", &json!({})), json!([]));
    for action in ["allow", "deny"] {
        let ran = json_of(&zoe.acted(action, &json!({ "id": id })));
        assert_eq!(ran["exit"], 1, "{ran}");
    }
    let listed = setup.run(&["approvals", "list", "--json"]).code(0).json();
    assert_eq!(listed[0]["decision"], Value::Null, "{listed}");
    // Nothing was ordered, and nothing of other servers is shown.
    let lines = zoe.output("audit", &json!({ "kind": "daemon" }));
    assert_eq!(lines, json!([]));
    let ran = json_of(&zoe.acted("logs", &json!({ "server": "mine" })));
    assert_eq!(ran["exit"], 1, "{ran}");
}

#[test]
fn a_window_that_is_switched_off_is_gone_at_once() {
    let setup = setup();
    let anna = token(&setup, &["anna", "--role", "dev"]);
    let gateway = setup.serve(&[]);
    let anna = Page::enter(&gateway, &anna);
    assert_eq!(anna.get("").send().status, 200);
    let missing = anna.get("nothing").send();
    assert_eq!(missing.status, 404);
    assert!(!missing.body.contains("mcpzip ui"), "{}", missing.body);
    setup.setting("http", json!({ "auth": "tokens" })).save();
    until("the end of the window", || {
        (anna.get("").send().status == 404).then_some(())
    });
}

#[test]
fn a_reading_of_the_log_counts_for_the_limits() {
    let setup = setup().setting("limits", json!([{ "requests_per_minute": 1 }]));
    let anna = token(&setup, &["anna", "--role", "dev"]);
    let gateway = setup.serve(&[]);
    let anna = Page::enter(&gateway, &anna);
    assert_eq!(anna.acted("audit", &json!({})).status, 200);
    let refused = until("a refusal", || {
        let answer = anna.acted("stats", &json!({}));
        (answer.status == 429).then_some(answer)
    });
    assert!(!refused.header("retry-after").is_empty(), "{refused:?}");
}
