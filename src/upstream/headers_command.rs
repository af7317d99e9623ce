//! Headers from a command of the user, for example a token that another program manages. The command runs when a
//! request needs the headers, and again when they expire or the server refuses them.
//!
//! The command is the user's own program and inherits all of the user's environment variables. Its stdout is sent to
//! the server only, and never shown. The environment variables and the output format are those of Claude Code's
//! `headersHelper`.

use std::collections::HashMap;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::{Mutex, MutexGuard};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

use super::run::Running;
use super::{ServerLog, UpstreamContext};
use crate::config::HeadersCommand;
use crate::config::env::{SECRET_KEY, TOKEN};
use crate::config::program;
use crate::secret::{Masker, Secret};
use crate::tool::ServerName;

/// The time limit of the command, which may have to ask a remote service.
const LIMIT: Duration = Duration::from_secs(10);

/// The size limit of its output, in bytes.
const LARGEST: usize = 64 * 1024;

/// The limit above which a time is in milliseconds: no token lives for thousands of years.
const MILLISECONDS: f64 = 1e11;

/// The commands of all servers. Their headers outlive connections.
#[derive(Debug, Default)]
pub(super) struct HeadersCommands(
    Mutex<HashMap<(ServerName, String, HeadersCommand), Arc<Helper>>>,
);

/// One server's command.
#[derive(Debug)]
pub(super) struct Helper {
    server: ServerName,
    url: String,
    command: HeadersCommand,
    latest: Mutex<Option<Arc<CommandHeaders>>>,
    /// Held while the command runs, so that it runs once for all requests that wait.
    running: tokio::sync::Mutex<()>,
}

/// The headers that one run of the command printed.
#[derive(Debug)]
pub(super) struct CommandHeaders {
    pub(super) headers: HeaderMap,
    /// The time they were printed, in seconds since 1970.
    at: f64,
    /// The time they expire, in seconds since 1970.
    ends: Option<f64>,
}

/// Why a command gave no headers. The text continues after `its headers_command` and quotes no output.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum HeadersCommandError {
    /// It did not start.
    #[error("`{program}` cannot be run ({source})")]
    Start {
        /// The program.
        program: String,
        /// The system's error.
        source: Arc<io::Error>,
    },
    /// Its output could not be read.
    #[error("could not be read ({0})")]
    Read(#[source] Arc<io::Error>),
    /// Waiting for its end failed.
    #[error("could not be waited for ({0})")]
    Wait(#[source] Arc<io::Error>),
    /// It ended with an error.
    #[error("failed ({0}); its stderr is in the server's log")]
    Failed(ExitStatus),
    /// It exceeded its time limit.
    #[error("took longer than {LIMIT:?}")]
    Timeout,
    /// mcpzip is ending.
    #[error("was stopped, as mcpzip is ending")]
    Stopped,
    /// Its output exceeds the size limit.
    #[error("printed more than {LARGEST} bytes")]
    TooLong,
    /// Its output is not a JSON object.
    #[error("did not print a JSON object")]
    NotAnObject,
    /// `headers` is not an object.
    #[error("printed `headers` that are not an object")]
    Headers,
    /// The value of a header is not a string.
    #[error("printed a value of `{0}` that is not a string")]
    Value(String),
    /// HTTP cannot carry a header.
    #[error("printed a header `{0}` that cannot be sent")]
    Unsendable(String),
    /// `expires_in` is not a number.
    #[error("printed an `expires_in` that is not a number")]
    ExpiresIn,
    /// `expires_at` is not a time.
    #[error(
        "printed an `expires_at` that is neither a time in seconds since 1970 nor a date of RFC 3339"
    )]
    ExpiresAt,
}

impl HeadersCommands {
    /// The helper of `server` at `url`. It is reused as long as the entry is unchanged.
    pub(super) fn of(
        &self,
        server: &ServerName,
        url: &str,
        command: &HeadersCommand,
    ) -> Arc<Helper> {
        let key = (server.clone(), url.to_owned(), command.clone());
        let mut all = self.0.lock();
        // A helper with an edited command is not needed any more.
        all.retain(|(known, ..), helper| {
            known != server || helper.command == *command && helper.url == url
        });
        let new = || {
            let (server, url, command) = key.clone();
            Arc::new(Helper {
                server,
                url,
                command,
                latest: Mutex::default(),
                running: tokio::sync::Mutex::default(),
            })
        };
        all.entry(key.clone()).or_insert_with(new).clone()
    }
}

impl CommandHeaders {
    /// Whether it should be renewed before use: a tenth of its lifetime is left, at most a minute.
    fn is_ending(&self) -> bool {
        self.ends
            .is_some_and(|end| end - now() <= ((end - self.at) / 10.0).clamp(0.0, 60.0))
    }
}

impl Helper {
    /// The headers to send, different from the rejected headers `refused`.
    ///
    /// # Errors
    /// When the command gives none.
    pub(super) async fn headers(
        &self,
        context: &UpstreamContext,
        refused: Option<&Arc<CommandHeaders>>,
    ) -> Result<Arc<CommandHeaders>, HeadersCommandError> {
        let usable = |given: &Arc<CommandHeaders>| {
            !given.is_ending() && refused.is_none_or(|refused| !Arc::ptr_eq(refused, given))
        };
        if let Some(given) = self.latest().clone().filter(usable) {
            return Ok(given);
        }
        let _running = self.running.lock().await;
        // Another request may have renewed them meanwhile.
        if let Some(given) = self.latest().clone().filter(usable) {
            return Ok(given);
        }
        let given = Arc::new(self.run(context).await?);
        *self.latest() = Some(given.clone());
        Ok(given)
    }

    /// Whether its last output has an `Authorization` header.
    pub(super) fn gives_authorization(&self) -> bool {
        self.latest()
            .as_ref()
            .is_some_and(|given| given.headers.contains_key(AUTHORIZATION))
    }

    /// `text`, written by the server, without the command's header values.
    pub(super) fn masked(&self, text: &str) -> String {
        let given = self.latest().clone();
        given.map_or_else(
            || text.to_owned(),
            |given| given.masker().mask(text).into_owned(),
        )
    }

    async fn run(&self, context: &UpstreamContext) -> Result<CommandHeaders, HeadersCommandError> {
        tracing::debug!(server = %self.server, program = self.command.program, "running its headers_command");
        let mut running = self.start(context)?;
        let (mut printed, mut said) = (Vec::new(), Vec::new());
        let ended = async {
            let (stdout, stderr) = running.streams();
            // If the output exceeds the limit, stop waiting: the command may print forever, or block on the full
            // pipe.
            let drained = async {
                drain(stderr, &mut said).await;
                Ok(())
            };
            tokio::try_join!(whole(stdout, &mut printed), drained)?;
            let status = running
                .child
                .wait()
                .await
                .map_err(|error| HeadersCommandError::Wait(Arc::new(error)))?;
            if !status.success() {
                return Err(HeadersCommandError::Failed(status));
            }
            Ok(())
        };
        let ended = tokio::select! {
            ended = tokio::time::timeout(LIMIT, ended) => ended.unwrap_or(Err(HeadersCommandError::Timeout)),
            () = context.tasks.stopped() => Err(HeadersCommandError::Stopped),
        };
        let given = read(&printed);
        // Which words are secret is known only now. If the output cannot be used, every word may be secret.
        let masker = given
            .as_ref()
            .map_or_else(|_| words(&printed), CommandHeaders::masker);
        let mut log = ServerLog::open(context.log_directory.as_deref(), &self.server);
        log.write(masker.mask(&String::from_utf8_lossy(&said)).as_bytes());
        ended.and(given)
    }

    fn start(&self, context: &UpstreamContext) -> Result<Running, HeadersCommandError> {
        let mut command =
            Command::new(program::to_start(&self.command.program, &context.variables));
        let variables = context
            .variables
            .iter()
            .filter(|(name, _)| ![TOKEN.name, SECRET_KEY.name].contains(name));
        command
            .args(&self.command.args)
            .env_clear()
            .envs(variables)
            .envs(context.guard.variable())
            .env("MCPZIP_SERVER_NAME", self.server.as_str())
            .env("MCPZIP_SERVER_URL", &self.url)
            .env("CLAUDE_CODE_MCP_SERVER_NAME", self.server.as_str())
            .env("CLAUDE_CODE_MCP_SERVER_URL", &self.url)
            .stdin(Stdio::null());
        if let Some(directory) = &context.directory {
            command.current_dir(directory);
        }
        Running::start(&mut command, &context.guard).map_err(|error| HeadersCommandError::Start {
            program: self.command.program.clone(),
            source: Arc::new(error),
        })
    }

    fn latest(&self) -> MutexGuard<'_, Option<Arc<CommandHeaders>>> {
        // Each change is a single step.
        self.latest.lock()
    }
}

impl CommandHeaders {
    /// A masker for the header values.
    fn masker(&self) -> Masker {
        let values = self
            .headers
            .values()
            .filter_map(|value| value.to_str().ok());
        // `Bearer abc`: the token may also appear alone.
        let values = values
            .flat_map(|value| [Some(value), value.rsplit_once(' ').map(|(_, last)| last)])
            .flatten();
        Masker::new(values.map(|value| Secret::new(value.to_owned())))
    }
}

async fn whole(
    stdout: impl AsyncRead + Unpin,
    printed: &mut Vec<u8>,
) -> Result<(), HeadersCommandError> {
    let read = stdout.take(LARGEST as u64 + 1).read_to_end(printed).await;
    read.map_err(|error| HeadersCommandError::Read(Arc::new(error)))?;
    if printed.len() > LARGEST {
        Err(HeadersCommandError::TooLong)
    } else {
        Ok(())
    }
}

/// Reads everything, and keeps the beginning, cut at a line end.
async fn drain(mut stderr: impl AsyncRead + Unpin, said: &mut Vec<u8>) {
    let mut chunk = vec![0; 4096];
    let mut is_full = false;
    while let Ok(length @ 1..) = stderr.read(&mut chunk).await {
        if !is_full && said.len() + length > LARGEST {
            is_full = true;
            // Half a secret would not be masked.
            said.truncate(memchr::memrchr(b'\n', said).map_or(0, |at| at + 1));
        }
        if !is_full {
            said.extend_from_slice(&chunk[..length]);
        }
    }
}

/// A masker that treats every word of a text as a secret.
fn words(text: &[u8]) -> Masker {
    let text = String::from_utf8_lossy(text);
    let words = text.split(|c: char| c.is_whitespace() || "\"',{}[]".contains(c));
    Masker::new(words.map(|word| Secret::new(word.to_owned())))
}

/// Parses the output: an object of headers, or an object with `headers` and an expiry.
fn read(printed: &[u8]) -> Result<CommandHeaders, HeadersCommandError> {
    let Ok(Value::Object(object)) = serde_json::from_slice(printed) else {
        return Err(HeadersCommandError::NotAnObject);
    };
    let (headers, is_wrapped): (&Map<String, Value>, bool) = match object.get("headers") {
        Some(Value::Object(headers)) => (headers, true),
        Some(_) => return Err(HeadersCommandError::Headers),
        None => (&object, false),
    };
    let mut map = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let Some(text) = value.as_str() else {
            return Err(HeadersCommandError::Value(name.clone()));
        };
        let unusable = || HeadersCommandError::Unsendable(name.clone());
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unusable())?;
        let mut value = HeaderValue::from_bytes(text.trim().as_bytes()).map_err(|_| unusable())?;
        value.set_sensitive(true);
        map.insert(header, value);
    }
    let at = now();
    let ends = if is_wrapped { end(&object, at)? } else { None };
    Ok(CommandHeaders {
        headers: map,
        at,
        ends,
    })
}

/// The time at which the headers expire, if the output has one.
fn end(object: &Map<String, Value>, now: f64) -> Result<Option<f64>, HeadersCommandError> {
    let number = |value: &Value| {
        value
            .as_f64()
            .or_else(|| value.as_str()?.trim().parse().ok())
    };
    if let Some(value) = object.get("expires_in").filter(|value| !value.is_null()) {
        return number(value)
            .map(|life| Some(now + life))
            .ok_or(HeadersCommandError::ExpiresIn);
    }
    let Some(value) = object.get("expires_at").filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let date = |text: &str| {
        Some(
            OffsetDateTime::parse(text.trim(), &Rfc3339)
                .ok()?
                .unix_timestamp() as f64,
        )
    };
    let end = number(value).map(|end| {
        if end >= MILLISECONDS {
            end / 1000.0
        } else {
            end
        }
    });
    let end = end.or_else(|| date(value.as_str()?));
    end.map(Some).ok_or(HeadersCommandError::ExpiresAt)
}

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0.0, |time| time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(printed: &str, expected: Result<(&str, Option<f64>), &str>) {
        let given = read(printed.as_bytes());
        let seen = given.as_ref().map(|given| {
            let value = given
                .headers
                .get("x-key")
                .map_or("", |value| value.to_str().unwrap());
            (value, given.ends.map(|end| (end - given.at).round()))
        });
        let seen = seen.map_err(ToString::to_string);
        assert_eq!(
            seen.as_ref().copied().map_err(String::as_str),
            expected,
            "{printed}"
        );
    }

    #[test]
    fn what_a_command_prints_is_read_in_both_forms() {
        check(r#"{"X-Key": "abc\n"}"#, Ok(("abc", None)));
        check("{}", Ok(("", None)));
        check(r#"{"headers": {"x-key": "abc"}}"#, Ok(("abc", None)));
        check(
            r#"{"headers": {"x-key": "abc"}, "expires_in": 60}"#,
            Ok(("abc", Some(60.0))),
        );
        check(
            r#"{"headers": {"x-key": "abc"}, "expires_in": "60", "expires_at": null}"#,
            Ok(("abc", Some(60.0))),
        );
        check("abc", Err("did not print a JSON object"));
        check(
            r#"{"x-key": 1}"#,
            Err("printed a value of `x-key` that is not a string"),
        );
        check(
            r#"{"x key": "secret"}"#,
            Err("printed a header `x key` that cannot be sent"),
        );
        check(
            r#"{"x-key": "a\nsecret"}"#,
            Err("printed a header `x-key` that cannot be sent"),
        );
        check(
            r#"{"headers": {}, "expires_in": "soon"}"#,
            Err("printed an `expires_in` that is not a number"),
        );
    }

    #[test]
    fn an_end_is_a_time_of_any_common_form() {
        let end = |json: &str| {
            let given = read(format!(r#"{{"headers":{{}},"expires_at":{json}}}"#).as_bytes());
            given.map(|given| given.ends.unwrap())
        };
        for json in [
            "4102444800",
            "4102444800000",
            r#""4102444800""#,
            r#""2100-01-01T00:00:00Z""#,
        ] {
            assert_eq!(end(json).unwrap(), 4_102_444_800.0, "{json}");
        }
        assert!(end(r#""tomorrow""#).is_err());
    }

    #[test]
    fn headers_are_asked_for_anew_shortly_before_their_end() {
        for (ago, life, expected) in [
            (0.0, 3600.0, false),
            (3550.0, 3600.0, true),
            (0.0, 30.0, false),
            (28.0, 30.0, true),
        ] {
            let at = now() - ago;
            let given = CommandHeaders {
                headers: HeaderMap::new(),
                at,
                ends: Some(at + life),
            };
            assert_eq!(given.is_ending(), expected, "{ago} s of {life} s");
        }
    }
}
