//! `mcpzip healthcheck`: asks a `serve --http` whether it answers, for container images without another HTTP client.

use std::time::Duration;

use clap::Args;
use reqwest::redirect;
use serde_json::json;

use super::diagnostics::Exit;
use super::output::{Output, good};
use super::serve;
use crate::config::{Config, Environment, ListenAddress, Paths};
use crate::tls;

/// Time limit for the answer.
const LIMIT: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 it answers, 4 it does not.

Examples:
  mcpzip healthcheck
  mcpzip healthcheck 127.0.0.1:9090
  mcpzip healthcheck --ready")]
pub(super) struct Arguments {
    /// Address of the server [default: MCPZIP_HTTP_ADDRESS, `http.address` of the configuration, 127.0.0.1:8080]
    address: Option<ListenAddress>,
    /// Ask whether it is ready for requests, as a load balancer does
    #[arg(long)]
    ready: bool,
}

pub(super) async fn run(
    arguments: Arguments,
    paths: &Paths,
    environment: &Environment,
    output: &Output,
) -> Result<(), Exit> {
    let http = Config::load(paths, environment)
        .ok()
        .and_then(|config| config.http.ok());
    let scheme = match http.as_ref().is_some_and(|http| http.tls.is_some()) {
        true => "https",
        false => "http",
    };
    let address = match (arguments.address, serve::of_variable(environment)) {
        (Some(address), _) => address,
        (None, variable) => variable?
            .or_else(|| http.and_then(|http| http.address))
            .unwrap_or_default(),
    }
    .reachable();
    let path = if arguments.ready {
        "/readyz"
    } else {
        "/healthz"
    };
    let url = format!("{scheme}://{address}{path}");
    let status = ask(&url).await.map_err(|error| {
        let cause = error.root_cause();
        Exit::unavailable(format!(
            "{url} does not answer: {cause}; `mcpzip serve --http {address}` starts a server there"
        ))
    })?;
    if !status.is_success() {
        return Err(Exit::unavailable(format!("{url} answers {status}")));
    }
    if output.is_json() {
        output.json(&json!({ "url": url, "status": status.as_u16() }));
    } else {
        output.verbatim(format!("{} {url}", good("✓")));
    }
    Ok(())
}

/// Sends the request without a proxy and without following redirects.
async fn ask(url: &str) -> Result<reqwest::StatusCode, anyhow::Error> {
    let client = tls::plain(tls::begin())
        .no_proxy()
        .redirect(redirect::Policy::none())
        // It tells the server nothing, and only its status counts.
        .tls_danger_accept_invalid_certs(true)
        .timeout(LIMIT)
        .build()?;
    let answer = client.get(url).send().await.map_err(|error| {
        // The caller's message has the URL already.
        anyhow::Error::from(error.without_url())
    })?;
    Ok(answer.status())
}
