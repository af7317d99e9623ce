//! Turns a tool's result into the agent's answer.
//!
//! A result passes through, except for content that the client would show twice, unless the agent selected a part, the
//! text exceeds the budget, or the configuration asks for the compact form. A part or a head is text only, because clients
//! show structured content instead of the text, and the whole result is stored. Work on large results runs on blocking
//! threads, so that it delays no other message.

use bytes::Bytes;

use super::Answers;
use super::compact::compacted;
use super::content::{HEAD, Looked, head, text_of};
use super::duplicate::{KeptForm, without_duplicate};
use super::projection::{Selector, shape_of};
use crate::config::{Lifetime, ResultForm};
use crate::executable;
use crate::proxy::view::View;
use crate::proxy::{Caller, Reply};
use crate::results::{Holder, ResultId, ResultLocation, Shelf};
use crate::tool::{QualifiedName, tokens_of};
use crate::upstream::RawResult;

/// The size in bytes from which a result is processed on a blocking thread.
const LARGE: usize = 64 * 1024;

/// If a selection leaves out less than this, in bytes, the result is not stored: the reference to it would cost as
/// much as was saved.
const WORTH_STORING: usize = 400;

/// The share of filters that the user has configured; clients have others.
const OF_THE_USER: u64 = u64::MAX;

/// The note when the rest of a selected result could not be stored.
const REST_LOST: &str = "The rest of the result could not be stored, and is gone.";

/// The call that is answered, and the selection of its result.
pub(in crate::proxy) struct AnsweredCall<'a> {
    pub(in crate::proxy) name: &'a QualifiedName,
    pub(in crate::proxy) select: Option<Selector<'a>>,
    /// The budget of the tool, in place of the configured one.
    pub(in crate::proxy) budget: Option<usize>,
    /// The form of the tool, in place of the client's and the configured one.
    pub(in crate::proxy) form: Option<ResultForm>,
    pub(in crate::proxy) caller: &'a Caller,
    pub(in crate::proxy) view: &'a View,
}

impl Answers {
    /// The answer to a call: the result unchanged, the part that `select` produces, or its head.
    pub(in crate::proxy) async fn answer(
        &self,
        result: RawResult,
        asked: &AnsweredCall<'_>,
    ) -> Reply {
        if result.required_input().is_some() {
            return Reply::Relayed(result);
        }
        let config = asked.view.config();
        let options = config.results;
        let client = asked.caller.client.software_name().unwrap_or_default();
        let budget = match asked.budget.unwrap_or(options.budget) {
            0 => usize::MAX,
            budget => budget,
        };
        if asked.select.is_none()
            && config.result_form(asked.form, client) == ResultForm::Compact
            && let Some(compact) = self.compacted(&result, asked.name, budget, false).await
        {
            return Reply::Relayed(compact.into());
        }
        let kept = KeptForm::of(options.duplicates, asked.caller.shows);
        if asked.select.is_none() && result.len() <= budget {
            return Reply::Relayed(
                kept.and_then(|kept| without_duplicate(&result, kept))
                    .map_or(result, RawResult::from),
            );
        }
        Box::pin(self.less(result, asked, budget, kept)).await
    }

    /// The result in compact form; `None` if that saves nothing or is over the budget.
    async fn compacted(
        &self,
        result: &Bytes,
        name: &QualifiedName,
        budget: usize,
        has_schema: bool,
    ) -> Option<Bytes> {
        let compact = {
            let result = result.clone();
            move || compacted(&result, has_schema)
        };
        let compact = match result.len() <= LARGE {
            true => compact(),
            // The panic message is on stderr, and the result comes as it is.
            false => self.tasks.spawn_blocking(compact).await.ok().flatten(),
        };
        let compact = compact.filter(|compact| {
            compact.len() <= budget || text_of(compact).chars().count() <= budget
        })?;
        let tokens = |result: &[u8]| tokens_of(&String::from_utf8_lossy(result));
        let (server, tool) = (name.server.as_str(), name.tool.as_str());
        let (whole, shown) = (tokens(result), tokens(&compact));
        self.statistics.reduced(server, tool, false, whole, shown);
        Some(compact)
    }

    /// The result of a call by the tool's own name: whole, the part that the user's own `select` of the tool produces, or in
    /// compact form. Nothing of it is stored.
    pub(in crate::proxy) async fn direct(
        &self,
        result: RawResult,
        asked: &AnsweredCall<'_>,
    ) -> Reply {
        // A filter gets the server's own data.
        let compact = match asked.select {
            Some(_) => None,
            None => self.in_form(&result, asked).await,
        };
        let result = compact.map_or(result, RawResult::from);
        if asked.select.is_none() && asked.budget.is_none() {
            return Reply::Relayed(result);
        }
        self.selected(result, asked.select, asked.budget).await
    }

    /// The result of a call by the tool's own name in compact form, if that is configured and saves something. The definition
    /// has no schema of results if the tool's own form is compact.
    async fn in_form(&self, result: &RawResult, asked: &AnsweredCall<'_>) -> Option<Bytes> {
        let client = asked.caller.client.software_name().unwrap_or_default();
        let form = asked.view.config().result_form(asked.form, client);
        if form != ResultForm::Compact || result.required_input().is_some() {
            return None;
        }
        let has_schema = asked.form.is_none();
        self.compacted(result, asked.name, usize::MAX, has_schema)
            .await
    }

    /// A result that is not stored: the part that the user's own `select` of the tool produces, or the whole if it cannot be
    /// applied, and of that as many characters as `budget` permits.
    pub(in crate::proxy) async fn selected(
        &self,
        result: RawResult,
        select: Option<Selector<'_>>,
        budget: Option<usize>,
    ) -> Reply {
        if result.required_input().is_some() {
            return Reply::Relayed(result);
        }
        let budget = budget.filter(|budget| *budget > 0).unwrap_or(usize::MAX);
        let looked = self.looked_into(&result, select.is_some()).await;
        let part = match (select, &looked.input) {
            (Some(filter), Some(data)) if !looked.failed => {
                self.projection.select(OF_THE_USER, filter, data).await.ok()
            }
            _ => None,
        };
        let text = match part {
            Some(text) => text,
            None if looked.characters <= budget => return Reply::Relayed(result),
            None => text_of(&result),
        };
        let text = match text.chars().count() {
            length if length > budget => first(&text, budget, length),
            _ => text,
        };
        looked.with_text(&text, looked.failed)
    }

    /// The part that `select` produces, or the head of the result.
    async fn less(
        &self,
        result: RawResult,
        asked: &AnsweredCall<'_>,
        budget: usize,
        kept: Option<KeptForm>,
    ) -> Reply {
        let looked = self.looked_into(&result, asked.select.is_some()).await;
        let (reply, is_stored, is_part) = match asked.select {
            // An error must not be filtered out.
            Some(filter) if !looked.failed => {
                let projected = self.projected(&result, &looked, filter, budget, asked);
                let (reply, is_part) = projected.await;
                (reply, false, is_part)
            }
            _ if looked.characters <= budget => {
                return Reply::Relayed(
                    kept.and_then(|kept| without_duplicate(&result, kept))
                        .map_or(result, RawResult::from),
                );
            }
            _ if self.results.is_absent() => {
                let shown = first(&text_of(&result), budget, looked.length);
                let text = format!(
                    "{shown} The rest is not stored, because there is no directory for it."
                );
                (looked.with_text(&text, looked.failed), false, true)
            }
            _ => match self.shortened(&result, &looked, &place_of(asked)).await {
                Some(reply) => (reply, true, true),
                None => {
                    return Reply::Relayed(
                        kept.and_then(|kept| without_duplicate(&result, kept))
                            .map_or(result, RawResult::from),
                    );
                }
            },
        };
        if let Reply::Result(body) = &reply
            && is_part
        {
            let shown = tokens_of(&String::from_utf8_lossy(body));
            let (server, tool) = (asked.name.server.as_str(), asked.name.tool.as_str());
            self.statistics
                .reduced(server, tool, is_stored, looked.tokens, shown);
        }
        reply
    }

    async fn looked_into(&self, result: &Bytes, with_input: bool) -> Looked {
        let look = {
            let result = result.clone();
            move || Looked::into(&result, with_input)
        };
        if result.len() <= LARGE {
            return look();
        }
        self.tasks
            .spawn_blocking(look)
            .await
            .expect("looking into what was read as JSON does not panic")
    }

    /// The part that `filter` takes, and whether it took one. An agent calls again after a filter that failed, so that saves nothing.
    async fn projected(
        &self,
        result: &Bytes,
        looked: &Looked,
        filter: Selector<'_>,
        budget: usize,
        asked: &AnsweredCall<'_>,
    ) -> (Reply, bool) {
        let place = &place_of(asked);
        let share = asked.caller.client.share();
        let Some(data) = &looked.input else {
            let text = "The call was made. Nothing was selected of its result, which has neither text nor data.";
            return (looked.with_text(text, false), false);
        };
        match self.projection.select(share, filter, data).await {
            Ok(text) if text.chars().count() <= budget => {
                let is_less = result.len() > text.len() + WORTH_STORING;
                let note = if is_less {
                    self.source(place, result, looked.length).await
                } else {
                    String::new()
                };
                (looked.with_text(&format!("{text}{note}"), false), true)
            }
            Ok(text) => {
                let text = match self.kept(place, result).await {
                    Some(whole) => {
                        let (head, length) = (head(&text, HEAD), text.chars().count());
                        format!("{head}\n… the selection has {length} characters. {whole}")
                    }
                    None => format!("{text}\n{REST_LOST}"),
                };
                (looked.with_text(&text, false), true)
            }
            Err(error) => {
                let shape = format!("The data: {}", shape_of(data));
                let (whole, shown) = self.kept_or_shown(place, result, &shape).await;
                let text = format!("{error}. The call was made. {whole}\n{shown}");
                (looked.with_text(&text, true), false)
            }
        }
    }

    /// The head of a result; `None` if the whole cannot be stored and must be the answer itself.
    async fn shortened(
        &self,
        result: &Bytes,
        looked: &Looked,
        place: &ResultLocation,
    ) -> Option<Reply> {
        let shape = looked
            .shape
            .as_deref()
            .map(|shape| format!("\nThe data: {shape}"))
            .unwrap_or_default();
        let whole = self.kept(place, result).await?;
        let Looked {
            head,
            length,
            failed,
            ..
        } = looked;
        Some(looked.with_text(
            &format!("{head}\n… these are the first of {length} characters. {whole}{shape}"),
            *failed,
        ))
    }

    /// Stores a result of which only a part is shown, and returns a short note about it.
    async fn source(&self, place: &ResultLocation, result: &Bytes, length: usize) -> String {
        let id = self.stored(place, result).await;
        id.map_or_else(
            || format!("\n… of {length} characters. {REST_LOST}"),
            |id| format!("\n… of {length} characters, all in mcpzip__read_result `{id}`"),
        )
    }

    /// Stores a result and returns a note on how to read it; `None` if it cannot be stored.
    async fn kept(&self, place: &ResultLocation, result: &Bytes) -> Option<String> {
        let id = self.stored(place, result).await?;
        let how = match executable::is_mcpzip() {
            true => r#","select":"a jq filter"}}, or"#,
            false => "}}, with",
        };
        Some(format!(
            r#"The whole result is stored; read on with execute_tool {{"name":"mcpzip__read_result","arguments":{{"id":"{id}"{how} "offset" and "limit" in characters, or "grep"."#
        ))
    }

    /// A note on how to read a stored result, with `part` of it. If it cannot be stored, its whole text.
    async fn kept_or_shown(
        &self,
        place: &ResultLocation,
        result: &Bytes,
        part: &str,
    ) -> (String, String) {
        match self.kept(place, result).await {
            Some(whole) => (whole, part.to_owned()),
            None => (
                "Its result could not be stored, so here it is whole:".to_owned(),
                text_of(result),
            ),
        }
    }

    pub(in crate::proxy) async fn stored(
        &self,
        place: &ResultLocation,
        result: &Bytes,
    ) -> Option<ResultId> {
        let (results, bytes, place) = (self.results.clone(), result.clone(), place.clone());
        let kept = self
            .tasks
            .spawn_blocking(move || results.keep(&place, &bytes))
            .await;
        match kept {
            Ok(Ok(id)) => Some(id),
            Ok(Err(error)) => {
                tracing::error!(%error, "a result cannot be stored");
                None
            }
            // The panic message is on stderr.
            Err(_) => None,
        }
    }
}

/// The start of a text of `length` characters.
fn first(text: &str, budget: usize, length: usize) -> String {
    let start = head(text, budget);
    format!("{start}\n… these are the first of {length} characters.")
}

/// The place of the results of a call.
fn place_of(asked: &AnsweredCall<'_>) -> ResultLocation {
    place(asked.view, asked.caller)
}

/// The place of a caller's results. Without a handshake there is no session for them.
pub(in crate::proxy) fn place(view: &View, caller: &Caller) -> ResultLocation {
    let config = view.config();
    let shelf = match config.results.kept_for {
        Lifetime::For(time) => Shelf::Common(time),
        Lifetime::Session if caller.revision.is_modern() => Shelf::Run,
        Lifetime::Session => Shelf::Client(caller.client.number()),
    };
    let holder = || {
        let replica = caller.client.replica()?;
        let session = match shelf {
            Shelf::Client(_) => replica.session()?,
            Shelf::Run | Shelf::Common(_) => "",
        };
        let kind = match shelf {
            Shelf::Client(_) => "session",
            Shelf::Run => "run",
            Shelf::Common(_) => "common",
        };
        let identity = caller.client.person().unwrap_or_default();
        let owner = if identity.is_empty() {
            session
        } else {
            identity
        };
        let scope = config.results_scope()?;
        Some(Holder::of(owner, &[kind, identity, session, &scope]))
    };
    ResultLocation {
        shelf,
        holder: holder(),
    }
}
