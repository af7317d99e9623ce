//! A question of a command to the daemon about itself.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::value::RawValue;

use super::message::{self, Hello};
use super::{election, place::Place};
use crate::config::{Environment, Paths};

/// How long the daemon may take.
const LIMIT: Duration = Duration::from_secs(5);

/// What is answered.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The result, as JSON.
    Result(String),
    /// There is no daemon for these paths, this build and this user.
    None,
}

/// Asks `method` of the daemon for these paths.
///
/// # Errors
/// With the reason why it cannot be asked.
pub(crate) fn ask(
    paths: &Paths,
    environment: &Environment,
    method: &str,
) -> Result<Answer, String> {
    let place = Place::find(paths, environment)?;
    let Some(mut socket) = election::connect(&place)? else {
        return Ok(Answer::None);
    };
    let line = match asked(&mut socket, method) {
        Ok(line) if !line.is_empty() => line,
        Err(error)
            if !matches!(
                error.kind(),
                io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
            ) =>
        {
            return Err(format!("the daemon does not answer: {error}"));
        }
        // It was ending.
        _ => return Ok(Answer::None),
    };
    let response: Response<'_> = serde_json::from_str(&line)
        .map_err(|error| format!("the daemon's answer cannot be read: {error}"))?;
    let result = response
        .result
        .ok_or_else(|| format!("the daemon refused: {line}"))?;
    Ok(Answer::Result(result.get().to_owned()))
}

/// The part of the answer that is looked at.
#[derive(serde::Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

fn asked(socket: &mut UnixStream, method: &str) -> io::Result<String> {
    socket.set_read_timeout(Some(LIMIT))?;
    socket.set_write_timeout(Some(LIMIT))?;
    message::send(socket, &Hello::Control, &[])?;
    let request = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\"}}\n");
    socket.write_all(request.as_bytes())?;
    let mut line = String::new();
    BufReader::new(socket).read_line(&mut line)?;
    Ok(line)
}
