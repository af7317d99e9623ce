//! The scenarios `auth/*`: `mcpzip` is driven by its command line, as a person does who logs in when told to.
//!
//! The browser is this very program: it gets the page and follows where it leads, which is what the suite's authorization
//! server expects, and ends at the callback of `mcpzip`.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::host::{Failure, UPSTREAM, mcpzip};

/// The argument that makes this program a browser.
pub(crate) const BROWSE: &str = "--browse";

/// A person tries a few times; a server that always wants more must not be logged in to for ever.
const MOST_LOGINS: usize = 3;

/// The suite knows this document without getting it.
const METADATA_URL: &str = "https://conformance-test.local/client-metadata.json";

/// Scenarios whose authorization server or metadata cannot be trusted: the login is to be refused.
const REFUSED: [&str; 6] = [
    "auth/iss-normalized",
    "auth/iss-supported-missing",
    "auth/iss-unexpected",
    "auth/iss-wrong-issuer",
    "auth/metadata-issuer-mismatch",
    "auth/resource-mismatch",
];

/// Lists and calls the tools, and logs in whenever that is what it takes.
pub(crate) fn play(scenario: &str, url: &str, era: &str, context: &Value) -> Result<(), Failure> {
    let home = Home::new(scenario, url, era, context)?;
    for _ in 0..MOST_LOGINS {
        let names = home.tools()?;
        let mut wants_login = names.is_empty();
        for name in names {
            let call = home.run(&["call", &name, "{}"])?;
            wants_login |= [call.stdout, call.stderr]
                .iter()
                .any(|said| String::from_utf8_lossy(said).contains("login needed"));
        }
        if !wants_login {
            return Ok(());
        }
        let login = match context["idp_id_token"].as_str() {
            Some(token) => home.run_with(&["login", UPSTREAM, "--with-token"], token)?,
            None => home.run(&["login", UPSTREAM])?,
        };
        // A person may come back to a login that the server refuses so far.
        let said = String::from_utf8_lossy(&login.stderr);
        let is_made = login.status.success() || said.contains("the login is kept");
        match (is_made, REFUSED.contains(&scenario)) {
            (true, false) => {}
            (false, true) => return Ok(()),
            (true, true) => return Err("a login that had to be refused was made".into()),
            (false, false) => {
                return Err(format!("no login: {said}").into());
            }
        }
    }
    home.tools().map(drop)
}

/// Gets a page of this machine, and those that it leads to.
pub(crate) fn browse(url: &str) -> Result<(), Failure> {
    let mut url = url.to_owned();
    for _ in 0..10 {
        let rest = url
            .strip_prefix("http://")
            .ok_or("not a page of this machine")?;
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let mut stream = TcpStream::connect(host)?;
        write!(
            stream,
            "GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"
        )?;
        let mut page = Vec::new();
        stream.read_to_end(&mut page)?;
        let page = String::from_utf8_lossy(&page);
        let mut head = page.lines().take_while(|line| !line.is_empty());
        let location = head.find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("location")
                .then(|| value.to_owned())
        });
        match location {
            Some(next) => url = next,
            None => return Ok(()),
        }
    }
    Err("it leads nowhere".into())
}

struct Home {
    directory: PathBuf,
}

impl Home {
    fn new(scenario: &str, url: &str, era: &str, context: &Value) -> Result<Self, Failure> {
        let directory =
            std::env::temp_dir().join(format!("mcpzip-conformance-{}", std::process::id()));
        fs::create_dir_all(&directory)?;
        let home = Self { directory };
        let given = |members: &[&str]| -> Value {
            members
                .iter()
                .map(|name| (*name, context[*name].clone()))
                .collect()
        };
        let mut oauth = match scenario {
            "auth/basic-cimd" => json!({ "client_metadata_url": METADATA_URL }),
            "auth/pre-registration" | "auth/client-credentials-basic" => {
                given(&["client_id", "client_secret"])
            }
            "auth/enterprise-managed-authorization" => {
                let mut oauth = given(&["client_id", "client_secret"]);
                oauth["grant"] = "id-jag".into();
                oauth["idp"] = json!({ "issuer": context["idp_issuer"], "client_id": context["idp_client_id"] });
                oauth
            }
            "auth/client-credentials-jwt" => {
                let key = home.directory.join("key.pem");
                fs::write(
                    &key,
                    context["private_key_pem"]
                        .as_str()
                        .ok_or("no key in the context")?,
                )?;
                let mut oauth = given(&["client_id"]);
                oauth["private_key_file"] = key.to_string_lossy().into();
                oauth
            }
            _ => json!({}),
        };
        if scenario.starts_with("auth/client-credentials") {
            oauth["grant"] = "client_credentials".into();
        }
        let entry = json!({ "url": url, "era": era, "oauth": oauth });
        fs::write(
            home.directory.join("config.json"),
            json!({ "mcpServers": { UPSTREAM: entry } }).to_string(),
        )?;
        Ok(home)
    }

    fn tools(&self) -> Result<Vec<String>, Failure> {
        let listed = self.run(&["tools"])?;
        let tools: Vec<Value> = serde_json::from_slice(&listed.stdout)?;
        Ok(tools
            .iter()
            .filter_map(|tool| tool["name"].as_str().map(str::to_owned))
            .collect())
    }

    fn run(&self, arguments: &[&str]) -> Result<Output, Failure> {
        self.run_with(arguments, "")
    }

    /// Runs `mcpzip` with this input.
    fn run_with(&self, arguments: &[&str], input: &str) -> Result<Output, Failure> {
        let browser = format!("{} {BROWSE}", std::env::current_exe()?.display());
        let mut command = Command::new(mcpzip()?);
        command
            .args(arguments)
            .arg("--config")
            .arg(self.directory.join("config.json"));
        command.arg("--cache-dir").arg(self.directory.join("cache"));
        command.arg("--state-dir").arg(self.directory.join("state"));
        command
            .env("MCPZIP_BROWSER", browser)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn()?;
        // It may end without reading.
        let _ = child
            .stdin
            .take()
            .map(|mut stdin| stdin.write_all(input.as_bytes()));
        Ok(child.wait_with_output()?)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // What stays is in the directory for temporary files.
        let _ = fs::remove_dir_all(&self.directory);
    }
}
