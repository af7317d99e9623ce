//! Requests and messages of servers, which the application answers by a handler.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::pin::Pin;

use std::sync::Arc;

use futures_util::FutureExt as _;
use serde::Deserialize;
use serde_json::{Value, json};

use super::contained::{Panicked, contained};
use super::error::Error;
use crate::proxy::Consenting;
use crate::tool::QualifiedName;

/// Answers the questions of servers and receives their messages, and decides about calls of the program that a rule of `tools.ask`
/// names. Each method has a default that refuses or ignores.
///
/// A panic in a handler refuses the one question; the call that it belongs to goes on.
///
/// ```
/// use mcpzip::{Capabilities, Error, Handler};
/// use serde_json::{Value, json};
///
/// struct Terminal;
///
/// impl Handler for Terminal {
///     fn capabilities(&self) -> Capabilities {
///         Capabilities::default().elicitation()
///     }
///
///     async fn elicit(&self, server: &str, request: Value) -> Result<Value, Error> {
///         println!("{server} asks: {}", request["message"]);
///         Ok(json!({ "action": "decline" }))
///     }
/// }
/// # let _ = mcpzip::Runner::builder().handler(Terminal);
/// ```
pub trait Handler: Send + Sync + 'static {
    /// The requests that it answers. Servers get these capabilities, and send no other requests.
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    /// Whether the program may make this call, which a rule of the configuration (`tools.ask`) names. No server can send this question.
    /// Without this method, such a call is refused at once. There is no time limit.
    ///
    /// ```
    /// use mcpzip::{Consent, Error, Handler};
    ///
    /// struct Terminal;
    ///
    /// impl Handler for Terminal {
    ///     async fn consent(&self, consent: &Consent) -> Result<bool, Error> {
    ///         println!("{} [y/N]", consent.question);
    ///         let mut answer = String::new();
    ///         let read = std::io::stdin().read_line(&mut answer);
    ///         Ok(read.is_ok() && answer.trim() == "y")
    ///     }
    /// }
    /// # let _ = mcpzip::Runner::builder().handler(Terminal);
    /// ```
    fn consent(&self, consent: &Consent) -> impl Future<Output = Result<bool, Error>> + Send {
        let _ = consent;
        async { Err(Error::refusal("no handler decides about such calls")) }
    }

    /// Answers `elicitation/create` of a server: `request` are the parameters, and the answer is the result with its `action`. An
    /// acceptance here permits no call: see [`Handler::consent`].
    fn elicit(
        &self,
        server: &str,
        request: Value,
    ) -> impl Future<Output = Result<Value, Error>> + Send {
        let _ = (server, request);
        async { Err(Error::refusal("questions to a person are not answered")) }
    }

    /// Answers `sampling/createMessage`: `request` are the parameters, and the answer is the message of the model.
    fn sample(
        &self,
        server: &str,
        request: Value,
    ) -> impl Future<Output = Result<Value, Error>> + Send {
        let _ = (server, request);
        async { Err(Error::refusal("there is no model")) }
    }

    /// The directories that a server may work in, as absolute paths.
    fn roots(&self, server: &str) -> impl Future<Output = Result<Vec<PathBuf>, Error>> + Send {
        let _ = server;
        async { Ok(Vec::new()) }
    }

    /// Receives the progress of a call. It must not block.
    fn progress(&self, progress: Progress) {
        let _ = progress;
    }

    /// Receives a log message of a server. It must not block.
    fn log(&self, message: LogMessage) {
        let _ = message;
    }
}

/// A call of the program that a rule of `tools.ask` names: [`Handler::consent`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Consent {
    /// The server.
    pub server: String,
    /// The server's own name of the tool.
    pub tool: String,
    /// The arguments.
    pub arguments: Value,
    /// The question for a person: the tool, and the arguments exactly as they are sent, with invisible characters written out.
    pub question: String,
}

/// The kinds of questions of servers that a [`Handler`] answers.
///
/// ```
/// let all = mcpzip::Capabilities::default().elicitation().sampling().roots();
/// assert_ne!(all, mcpzip::Capabilities::default());
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Capabilities {
    elicitation: bool,
    sampling: bool,
    roots: bool,
}

impl Capabilities {
    /// With questions to a person.
    ///
    /// ```
    /// let capabilities = mcpzip::Capabilities::default().elicitation();
    /// # let _ = capabilities;
    /// ```
    #[must_use]
    pub fn elicitation(self) -> Self {
        Self {
            elicitation: true,
            ..self
        }
    }

    /// With questions to a language model.
    ///
    /// ```
    /// let capabilities = mcpzip::Capabilities::default().sampling();
    /// # let _ = capabilities;
    /// ```
    #[must_use]
    pub fn sampling(self) -> Self {
        Self {
            sampling: true,
            ..self
        }
    }

    /// With questions for directories.
    ///
    /// ```
    /// let capabilities = mcpzip::Capabilities::default().roots();
    /// # let _ = capabilities;
    /// ```
    #[must_use]
    pub fn roots(self) -> Self {
        Self {
            roots: true,
            ..self
        }
    }

    pub(super) fn to_json(self) -> String {
        let members = [
            (self.elicitation, r#""elicitation":{}"#),
            (self.sampling, r#""sampling":{}"#),
            (self.roots, r#""roots":{}"#),
        ];
        let members = members.into_iter().filter(|(is_there, _)| *is_there);
        let members: Vec<_> = members.map(|(_, member)| member).collect();
        format!("{{{}}}", members.join(","))
    }
}

/// The progress of a call.
///
/// ```
/// use mcpzip::{Handler, Progress};
///
/// struct Bar;
///
/// impl Handler for Bar {
///     fn progress(&self, progress: Progress) {
///         if let Some(total) = progress.total {
///             println!("{:.0} %", 100.0 * progress.progress / total);
///         }
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct Progress {
    /// The tool that is called, as `server__tool`; `None` for other requests.
    #[serde(skip)]
    pub tool: Option<String>,
    /// How much is done.
    #[serde(default)]
    pub progress: f64,
    /// How much there is to do, if the server knows.
    pub total: Option<f64>,
    /// The server's description of its current step.
    pub message: Option<String>,
}

/// A log message of a server.
///
/// ```
/// use mcpzip::{Handler, LogMessage};
///
/// struct Lines;
///
/// impl Handler for Lines {
///     fn log(&self, message: LogMessage) {
///         eprintln!("{} {}: {}", message.level, message.logger, message.data);
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct LogMessage {
    /// The level: `debug`, `info`, `notice`, `warning`, `error`, `critical`, `alert` or `emergency`.
    pub level: String,
    /// The server, and its own name for the logger after a slash.
    #[serde(default)]
    pub logger: String,
    /// The content.
    #[serde(default)]
    pub data: Value,
}

type Decision<'a, E> = Pin<Box<dyn Future<Output = Result<bool, E>> + Send + 'a>>;

type Answer<'a> = Pin<Box<dyn Future<Output = Result<Value, Error>> + Send + 'a>>;

/// A [`Handler`] of any type.
pub(super) trait AnyHandler: Send + Sync {
    fn capabilities(&self) -> Capabilities;

    /// Decides about a call.
    fn decide<'a>(&'a self, consent: &'a Consent) -> Decision<'a, Error>;

    /// Answers a question of this method.
    fn answer<'a>(&'a self, method: &'a str, server: &'a str, params: Value) -> Answer<'a>;

    /// Receives a notification of this method, during a call of this tool.
    fn notice(&self, method: &str, params: Value, tool: Option<&str>);
}

impl<H: Handler> AnyHandler for H {
    fn capabilities(&self) -> Capabilities {
        Handler::capabilities(self)
    }

    fn decide<'a>(&'a self, consent: &'a Consent) -> Decision<'a, Error> {
        let decision = async move { self.consent(consent).await };
        Box::pin(contained(decision).map(|decision| decision.unwrap_or_else(panicked)))
    }

    fn answer<'a>(&'a self, method: &'a str, server: &'a str, params: Value) -> Answer<'a> {
        let answer = async move {
            match method {
                "elicitation/create" => self.elicit(server, params).await,
                "sampling/createMessage" => self.sample(server, params).await,
                "roots/list" => {
                    let roots = self.roots(server).await?;
                    let roots = roots.iter().map(|path| {
                        let url = reqwest::Url::from_file_path(path);
                        let url = url.map_err(|()| {
                            Error::refusal(format!("`{}` is not an absolute path", path.display()))
                        })?;
                        Ok(json!({ "uri": url.as_str() }))
                    });
                    let roots: Vec<Value> = roots.collect::<Result<_, Error>>()?;
                    Ok(json!({ "roots": roots }))
                }
                _ => Err(Error::refusal(format!("`{method}` is not supported"))),
            }
        };
        Box::pin(contained(answer).map(|answer| answer.unwrap_or_else(panicked)))
    }

    fn notice(&self, method: &str, params: Value, tool: Option<&str>) {
        // A message that is none of a known form is of no use to the program. A panic loses this message only.
        let _ = std::panic::catch_unwind(AssertUnwindSafe(|| match method {
            "notifications/progress" => {
                if let Ok(progress) = serde_json::from_value::<Progress>(params) {
                    let tool = tool.map(str::to_owned);
                    self.progress(Progress { tool, ..progress });
                }
            }
            "notifications/message" => {
                if let Ok(message) = serde_json::from_value(params) {
                    self.log(message);
                }
            }
            _ => {}
        }));
    }
}

fn panicked<T>(Panicked: Panicked) -> Result<T, Error> {
    Err(Error::refusal("the handler panicked"))
}

/// Asks the handler about calls of the program.
pub(super) struct Deciding(pub(super) Arc<dyn AnyHandler>);

impl Consenting for Deciding {
    fn consents<'a>(
        &'a self,
        name: &'a QualifiedName,
        arguments: &'a str,
        question: &'a str,
    ) -> Decision<'a, String> {
        Box::pin(async move {
            let consent = Consent {
                server: name.server.to_string(),
                tool: name.tool.to_string(),
                arguments: serde_json::from_str(arguments).map_err(|error| error.to_string())?,
                question: question.to_owned(),
            };
            let decision = self.0.decide(&consent).await;
            decision.map_err(|error| error.to_string())
        })
    }
}

/// The handler of a program that has none.
pub(super) struct NoHandler;

impl Handler for NoHandler {}
