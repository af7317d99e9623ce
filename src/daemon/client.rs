//! Sends a command's request to the daemon.

use std::borrow::Cow;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};

use super::endpoint::{self, Blocking};
use super::message::{self, Hello};
use super::{election, socket_location::SocketLocation};
use crate::config::{Environment, Paths};

/// Time limit for the answer.
const LIMIT: Duration = Duration::from_secs(5);

/// Why the daemon cannot be asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Reach(#[from] election::Error),
    #[error("the daemon does not answer: {0}")]
    Silent(#[source] io::Error),
    #[error("the daemon's answer cannot be read: {0}")]
    Answer(#[source] serde_json::Error),
    #[error("the daemon's message cannot be read: {0}")]
    Message(#[source] serde_json::Error),
    /// The message of the daemon's error.
    #[error("{0}")]
    Refused(String),
    /// The answer has neither a result nor an error.
    #[error("the daemon refused: {0}")]
    NoResult(String),
}

/// The daemon's answer.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The result as JSON.
    Result(String),
    /// No daemon runs for these paths, this build and this user.
    None,
}

/// Sends a request to the daemon for these paths. `params` is JSON.
///
/// # Errors
/// When the daemon cannot be reached, or its answer cannot be read.
pub(crate) fn ask(
    paths: &Paths,
    environment: &Environment,
    method: &str,
    params: &str,
) -> Result<Answer, Error> {
    let location = SocketLocation::find(paths, environment).map_err(election::Error::from)?;
    let Some(mut socket) = endpoint::connect_blocking(&location).map_err(election::Error::from)?
    else {
        return Ok(Answer::None);
    };
    let line = match asked(&mut socket, method, params) {
        Ok(line) if !line.is_empty() => line,
        Err(error)
            if !matches!(
                error.kind(),
                io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
            ) =>
        {
            return Err(Error::Silent(error));
        }
        // The daemon was ending.
        _ => return Ok(Answer::None),
    };
    result_of(&line).map(Answer::Result)
}

/// Sends a request to the daemon, which is started if there is none. Returns the result as JSON.
///
/// # Errors
/// When the daemon cannot be started or reached, or its answer cannot be read.
pub(crate) async fn ask_started(
    paths: &Paths,
    environment: &Environment,
    method: &str,
    params: &str,
) -> Result<String, Error> {
    let location = SocketLocation::find(paths, environment).map_err(election::Error::from)?;
    let way = election::Way {
        location: &location,
        paths,
        environment,
    };
    let connect = async |location: &_| endpoint::connect(location).await;
    let mut socket = election::reach(&way, connect).await?;
    let asked = async {
        message::send_async(&mut socket, &Hello::Control).await?;
        let request = request(method, params);
        socket.write_all(request.as_bytes()).await?;
        let mut line = String::new();
        let mut reader = tokio::io::BufReader::new(socket);
        reader.read_line(&mut line).await?;
        Ok(line)
    };
    let asked = tokio::time::timeout(LIMIT, asked).await;
    let line = asked.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    result_of(&line.map_err(Error::Silent)?)
}

fn result_of(line: &str) -> Result<String, Error> {
    let response: Response<'_> = serde_json::from_str(line).map_err(Error::Answer)?;
    let refusal = || match &response.error {
        Some(error) => Error::Refused(error.message.to_string()),
        None => Error::NoResult(line.to_owned()),
    };
    let result = response.result.ok_or_else(refusal)?;
    Ok(result.get().to_owned())
}

/// The part of the answer that is read.
#[derive(serde::Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<Refusal<'a>>,
}

#[derive(serde::Deserialize)]
struct Refusal<'a> {
    #[serde(borrow)]
    message: Cow<'a, str>,
}

fn request(method: &str, params: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\",\"params\":{params}}}\n")
}

fn write_request(socket: &mut Blocking, method: &str, params: &str) -> io::Result<()> {
    socket.write_all(request(method, params).as_bytes())
}

/// Passes each event of the daemon to `heard` as JSON, until the daemon ends or `heard` returns false. Kept events from
/// `since` on come first, and the beginnings of the calls in flight. Returns whether there was a daemon.
///
/// # Errors
/// When the daemon cannot be reached, or its answer cannot be read.
pub(crate) fn listen(
    paths: &Paths,
    environment: &Environment,
    since: Option<u64>,
    mut heard: impl FnMut(&str) -> bool,
) -> Result<bool, Error> {
    let location = SocketLocation::find(paths, environment).map_err(election::Error::from)?;
    let Some(mut socket) = endpoint::connect_blocking(&location).map_err(election::Error::from)?
    else {
        return Ok(false);
    };
    let params = since.map_or_else(|| "{}".to_owned(), |since| format!("{{\"since\":{since}}}"));
    message::send(&mut socket, &Hello::Control)
        .and_then(|()| write_request(&mut socket, "events.subscribe", &params))
        .map_err(Error::Silent)?;
    for line in BufReader::new(socket).lines().map_while(Result::ok) {
        let message: Message<'_> = serde_json::from_str(&line).map_err(Error::Message)?;
        let past = message.result.into_iter();
        let past = past.flat_map(|past| past.events.into_iter().chain(past.calls));
        let mut events = past.chain(message.params);
        if !events.all(|event| heard(event.get())) {
            break;
        }
    }
    Ok(true)
}

/// The answer to a subscription, or a notification.
#[derive(serde::Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    result: Option<Past<'a>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(serde::Deserialize)]
struct Past<'a> {
    #[serde(borrow)]
    events: Vec<&'a RawValue>,
    #[serde(borrow)]
    calls: Vec<&'a RawValue>,
}

fn asked(socket: &mut Blocking, method: &str, params: &str) -> io::Result<String> {
    endpoint::limit(socket, Some(LIMIT))?;
    message::send(&mut *socket, &Hello::Control)?;
    write_request(socket, method, params)?;
    let mut line = String::new();
    BufReader::new(socket).read_line(&mut line)?;
    Ok(line)
}
