//! A call by the name of a tool.

use std::future::IntoFuture;
use std::pin::Pin;
use std::time::Duration;

use serde_json::value::RawValue;

use super::Runner;
use super::error::Error;
use super::tool::ToolResult;

/// A call that runs when it is awaited: [`Runner::execute`].
///
/// ```no_run
/// # async fn example(runner: mcpzip::Runner) -> Result<(), mcpzip::Error> {
/// use std::time::Duration;
///
/// let titles = runner
///     .execute("github__list_issues", serde_json::json!({ "owner": "rust-lang", "repo": "rust" }))
///     .select(".[].title")
///     .timeout(Duration::from_secs(10))
///     .await?;
/// println!("{}", titles.text());
/// # Ok(())
/// # }
/// ```
#[must_use = "a call runs when it is awaited"]
pub struct Execute<'a> {
    pub(super) runner: &'a Runner,
    pub(super) name: &'a str,
    pub(super) arguments: Result<Box<RawValue>, Error>,
    pub(super) select: Option<String>,
    pub(super) timeout: Option<Duration>,
}

impl Execute<'_> {
    /// Reduces the result to what `filter`, a jq program, selects. It runs in this process and is not limited, so it must come
    /// from the program.
    ///
    /// ```
    /// # mcpzip::internals::with_notes(async |runner| {
    /// # use serde_json::json;
    /// let call = runner.execute("notes__add", json!({ "text": "milk" }));
    /// assert_eq!(call.select(".text").await?.text(), "milk");
    /// # Ok(()) });
    /// ```
    pub fn select(mut self, filter: impl Into<String>) -> Self {
        self.select = Some(filter.into());
        self
    }

    /// Limits the time that the server has for its answer. Its start, and the questions that the program's handler answers meanwhile,
    /// have times of their own: `tokio::time::timeout` limits all of it, and cancels the call.
    ///
    /// ```
    /// # mcpzip::internals::with_notes(async |runner| {
    /// # use serde_json::json;
    /// let call = runner.execute("notes__add", json!({}));
    /// call.timeout(std::time::Duration::from_secs(5)).await?;
    /// # Ok(()) });
    /// ```
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }
}

impl<'a> IntoFuture for Execute<'a> {
    type Output = Result<ToolResult, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let arguments = self.arguments?;
            let inner = &self.runner.inner;
            inner
                .call(self.name, &arguments, self.timeout, self.select)
                .await
        })
    }
}

impl std::fmt::Debug for Execute<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Execute")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
