//! Learning from calls: the way from a search, and from a call after it, to the habits of the caller.

use std::sync::Arc;

use super::Tools;
use crate::catalog::Tool;
use crate::proxy::Reply;
use crate::proxy::answers::reply::is_error;
use crate::proxy::view::View;
use crate::search::{Error, Explained, Explanation, Habits, Hit, Request};

impl Tools {
    /// The habits of the clients; `None` if `search.learn` is off.
    async fn habits(&self, view: &View) -> Option<&Arc<Habits>> {
        if !view.config().search.learn {
            return None;
        }
        self.habits.refresh(&self.tasks).await;
        Some(&self.habits)
    }

    /// The best hits by words and meaning, with those raised that were called after such searches.
    ///
    /// # Errors
    /// Like [`crate::search::Search::search`].
    pub(super) async fn local_hits(
        &self,
        view: &View,
        request: &Request<'_>,
    ) -> Result<Arc<[Hit]>, Error> {
        let habits = self.habits(view).await;
        let considered = habits.and_then(|habits| habits.considered(request.limit));
        let Some((habits, limit)) = habits.zip(considered) else {
            return self.inventory.index().search(request).await;
        };
        let all = Request { limit, ..*request };
        let mut hits = self.inventory.index().search(&all).await?.to_vec();
        habits.raise(request.query, &mut hits);
        hits.truncate(request.limit);
        Ok(hits.into())
    }

    /// [`Self::local_hits`] with the scores of each stage.
    ///
    /// # Errors
    /// Like [`Self::local_hits`].
    pub(super) async fn local_explanation(
        &self,
        view: &View,
        request: &Request<'_>,
    ) -> Result<Explanation, Error> {
        let habits = self.habits(view).await;
        let considered = habits.and_then(|habits| habits.considered(request.limit));
        let Some((habits, limit)) = habits.zip(considered) else {
            return self.inventory.index().explain(request).await;
        };
        let all = Request { limit, ..*request };
        let mut explanation = self.inventory.index().explain(&all).await?;
        let hits = &mut explanation.hits;
        let raises = habits.raises(request.query, hits.iter().map(|explained| &explained.hit));
        for (explained, raise) in hits.iter_mut().zip(raises) {
            explained.habit = raise;
            explained.hit.score += raise;
        }
        hits.sort_by(|a: &Explained, b| b.hit.score.total_cmp(&a.hit.score));
        hits.truncate(request.limit);
        Ok(explanation)
    }

    /// Notes a search, which calls may follow.
    pub(super) fn note_search(&self, view: &View, query: &str, hits: &[Hit]) {
        if view.config().search.learn {
            self.habits.searched(query, hits);
        }
    }

    /// Learns from a call of an agent that has its result.
    pub(super) fn note_call(&self, view: &View, tool: &Tool, reply: &Reply) {
        let has_succeeded = || matches!(reply, Reply::Relayed(result) if !is_error(result));
        let name = tool.qualified_name();
        let (server, tool) = (name.server.as_str(), name.tool.as_str());
        if view.config().search.learn && self.habits.called(server, tool, has_succeeded) {
            self.habits.write_soon(&self.tasks);
        }
    }

    /// Writes what was learnt and is not on the disk yet, at the end of a run.
    pub(in crate::proxy) async fn write_habits(&self) {
        if !self.habits.is_unwritten() {
            return;
        }
        let habits = self.habits.clone();
        // A panic while writing is printed to stderr and loses only this.
        let _ = self.tasks.spawn_blocking(move || habits.flush()).await;
    }
}
