//! People over HTTP: who they are, what each may use, and that none reaches what is another's.

#[cfg(unix)]
mod always;
pub(crate) mod authorization;
mod cost;
mod crowds;
mod forwarded;
mod introspection;
mod isolation;
mod issued;
mod limits;
mod settings;
mod tls;
mod tokens;
mod upstream;

use serde_json::{Value, json};

use crate::support::gateway::{Call, Gateway, Incoming, initialize};
use crate::support::script::{answer, result};
use crate::support::{Server, Setup};

/// A session of a person.
struct Session {
    id: String,
    token: String,
}

/// Two servers, profiles of each, and roles for them.
pub(crate) fn setup() -> Setup {
    let git = Server::new()
        .tool("log", [answer("the log")])
        .tool("push", [answer("pushed")])
        .resource("git:///head", [result(r#"{"contents":[]}"#)]);
    let vault = Server::new()
        .tool("read", [answer("a secret")])
        .tool("unseal", [answer("unsealed")])
        .prompt("unsealing", [result(r#"{"messages":[]}"#)])
        .resource("vault:///key", [result(r#"{"contents":[]}"#)]);
    Setup::new()
        .alone()
        .server("git", git)
        .server("vault", vault)
        .setting("search", json!({ "semantic": false }))
        .setting("expose", json!({ "prompts": true, "resources": true }))
        .setting("audit", json!({}))
        .setting(
            "http",
            json!({ "auth": { "tokens": true }, "metrics": true }),
        )
        .setting(
            "profiles",
            json!({
                "code": { "servers": ["git"], "tools": { "deny": ["git__push"] } },
                "release": { "servers": ["git"] },
                "secrets": { "servers": ["vault"] },
            }),
        )
        .setting("roles", roles())
}

fn roles() -> Value {
    json!({
        "dev": { "profiles": ["code"] },
        "lead": { "profiles": ["release"], "users": ["zoe"] },
        "ops": { "profiles": ["secrets"] },
        "admin": { "profiles": ["*"] },
    })
}

/// Makes a token by the command.
#[track_caller]
pub(crate) fn token(setup: &Setup, arguments: &[&str]) -> String {
    let made = setup.run(&[&["token", "create"], arguments].concat());
    made.code(0).stdout.trim().to_owned()
}

pub(crate) trait As {
    /// With this token.
    fn by(self, token: &str) -> Self;
}

impl As for Call {
    fn by(self, token: &str) -> Self {
        self.and_header("Authorization", &format!("Bearer {token}"))
    }
}

/// The text of a tool's answer, or of the error.
#[track_caller]
pub(crate) fn said(call: Call) -> String {
    let answer = call.send();
    let value: Value = serde_json::from_str(&answer.body).unwrap_or_default();
    let text = &value["result"]["content"][0]["text"];
    let text = text.as_str().or(value["error"]["message"].as_str());
    format!("{} {}", answer.status, text.unwrap_or(&answer.body))
}

/// The answer to a call of a tool of a server.
#[track_caller]
pub(crate) fn execute(gateway: &Gateway, tool: &str, token: &str) -> String {
    said(gateway.modern_execute(tool, "").by(token))
}

impl Session {
    #[track_caller]
    fn open(gateway: &Gateway, token: &str) -> Self {
        let call = gateway.post(&initialize("2025-11-25", &json!({})));
        let answer = call.by(token).send();
        assert_eq!(answer.status, 200, "{answer:?}");
        let id = answer.header("mcp-session-id").to_owned();
        let token = token.to_owned();
        Self { id, token }
    }

    /// A request in it, by whoever has this token.
    fn request(&self, gateway: &Gateway, method: &str, params: &str, token: &str) -> Call {
        let body = format!(r#"{{"jsonrpc":"2.0","id":5,"method":"{method}","params":{params}}}"#);
        let call = gateway.post(&body).and_header("Mcp-Session-Id", &self.id);
        call.by(token)
    }

    fn execute(&self, gateway: &Gateway, tool: &str, token: &str) -> Call {
        let params = format!(r#"{{"name":"execute_tool","arguments":{{"name":"{tool}"}}}}"#);
        self.request(gateway, "tools/call", &params, token)
    }

    #[track_caller]
    fn listen(&self, gateway: &Gateway) -> Incoming {
        let call = gateway.call("GET", "/mcp");
        let call = call.header("Accept", "text/event-stream");
        let stream = call.and_header("Mcp-Session-Id", &self.id).by(&self.token);
        let stream = stream.open();
        assert_eq!(stream.status(), 200);
        stream
    }
}
