//! The window, as a browser and as other pages and processes speak to it.

mod deeds;
mod doors;
mod events;
mod gateway;
mod top;

use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::daemon::Shared;
use crate::support::command::{self, Outcome};
use crate::support::gateway::{Answer, Call, Gateway, Incoming};
use crate::support::script::echo;
use crate::support::{Server, Setup};

/// A browser that has used a link.
struct Window {
    gateway: Gateway,
    /// The path of everything, with a slash at both ends.
    path: String,
    cookie: String,
}

/// The link of `mcpzip ui`, and the server behind it.
fn link(setup: &Shared) -> (Gateway, String) {
    link_of(&setup.run(&["ui", "--no-browser", "--json"]))
}

fn link_of(outcome: &Outcome) -> (Gateway, String) {
    let url = outcome.json()["url"].as_str().expect("a link").to_owned();
    let at = url.find("/enter?key=").expect("a key");
    let (address, link) = url.split_at(at);
    (Gateway::at(&format!("{address}/mcp")), link.to_owned())
}

impl Window {
    fn open(setup: &Shared) -> Self {
        let (gateway, link) = link(setup);
        Self::enter(gateway, &link)
    }

    /// The window of a process with another variable and directory.
    fn open_by(mut command: std::process::Command) -> Self {
        command.args(["ui", "--no-browser", "--json"]);
        let (gateway, link) = link_of(&command::run(command, "").code(0));
        Self::enter(gateway, &link)
    }

    #[track_caller]
    fn enter(gateway: Gateway, link: &str) -> Self {
        let entered = gateway.call("GET", link).send();
        assert_eq!(entered.status, 303, "{}", entered.body);
        let cookie = entered.header("set-cookie");
        for part in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=86400"] {
            assert!(cookie.contains(part), "{cookie}");
        }
        Self {
            path: entered.header("location").to_owned(),
            cookie: cookie.split(';').next().unwrap().to_owned(),
            gateway,
        }
    }

    fn get(&self, door: &str) -> Call {
        let call = self.gateway.call("GET", &format!("{}{door}", self.path));
        call.header("Cookie", &self.cookie)
    }

    /// A request as the page sends it.
    fn post(&self, door: &str, body: &Value) -> Call {
        let call = self.gateway.call("POST", &format!("{}{door}", self.path));
        call.header("Cookie", &self.cookie)
            .header("Origin", &format!("http://{}", self.gateway.address()))
            .header("Sec-Fetch-Site", "same-origin")
            .header("Content-Type", "application/json")
            .header("X-Mcpzip", "1")
            .body(&body.to_string())
    }

    #[track_caller]
    fn control(&self, method: &str, params: Value) -> Value {
        let body = json!({ "method": method, "params": params });
        json_of(&self.post("api/control", &body).send())
    }

    /// Runs an action to its end, whatever that is.
    #[track_caller]
    fn ran(&self, action: &str, arguments: Value) -> Value {
        let body = json!({ "action": action, "arguments": arguments });
        json_of(&self.post("api/command", &body).send())
    }

    /// The output of an action that works.
    #[track_caller]
    fn output(&self, action: &str, arguments: Value) -> Value {
        let ran = self.ran(action, arguments);
        assert_eq!(ran["exit"], 0, "{action}: {ran}");
        ran["output"].clone()
    }

    fn listen(&self, more: &str) -> Incoming {
        self.get(&format!("api/events{more}")).open()
    }
}

#[track_caller]
fn json_of(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.header("content-type"), "application/json");
    serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{error}: {}", answer.body))
}

/// The next event of this kind; others are passed over.
fn heard(stream: &mut Incoming, kind: &str) -> Value {
    loop {
        let event = stream
            .event()
            .unwrap_or_else(|| panic!("the stream ended before `{kind}`"));
        let data: Value = serde_json::from_str(&event.data).unwrap();
        if data["kind"] == kind {
            assert_eq!(stream.last_id(), data["number"].to_string());
            return data;
        }
    }
}

fn shared() -> Shared {
    Shared::new(Setup::new().server("notes", Server::new().tool("write", [echo()])))
}

/// Whether a server still takes connections.
fn listens(gateway: &Gateway) -> bool {
    TcpStream::connect_timeout(&gateway.address(), Duration::from_secs(5)).is_ok()
}
