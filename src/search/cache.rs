//! The answers of one index to earlier queries, by the words of the query and its filters.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::query::{Need, Query, Word};
use super::{Hit, Request};
use crate::tool::ServerName;

const CAPACITY: usize = 1_000;

/// Answers of one index; the least recently used are removed first.
///
/// Each index has its own cache and drops it when it is replaced, so no answer outlives the tools it names. Queries
/// that differ only in case, spacing, punctuation or stop words share an entry, as do queries whose words are in
/// another order, unless that order makes a tool's exact name.
#[derive(Default)]
pub(super) struct Cache {
    // Locked for a look-up only, never during a search.
    entries: Mutex<Entries>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    needs: Vec<Vec<Word>>,
    names: Vec<String>,
    limit: usize,
    server: Option<String>,
    without: Vec<ServerName>,
    /// Searches that share an index may differ in this.
    is_by_meaning: bool,
}

impl Key {
    /// The key of a request with a parsed query. `is_name` knows the tools' names in compact form.
    pub(super) fn of(
        request: &Request<'_>,
        query: &Query,
        is_by_meaning: bool,
        is_name: impl Fn(&str) -> bool,
    ) -> Self {
        let sorted = |need: &Need| {
            let mut words = need.words.clone();
            words.sort_unstable();
            words
        };
        Self {
            needs: query.needs.iter().map(sorted).collect(),
            names: query
                .names
                .iter()
                .filter(|name| is_name(name))
                .cloned()
                .collect(),
            limit: request.limit,
            server: request.server.map(str::to_owned),
            without: request.without.to_vec(),
            is_by_meaning,
        }
    }
}

#[derive(Default)]
struct Entries {
    answers: HashMap<Key, (Arc<[Hit]>, u64)>,
    uses: u64,
}

impl Cache {
    pub(super) fn get(&self, key: &Key) -> Option<Arc<[Hit]>> {
        let mut entries = self.entries.lock();
        entries.uses += 1;
        let now = entries.uses;
        let (hits, used) = entries.answers.get_mut(key)?;
        *used = now;
        Some(Arc::clone(hits))
    }

    pub(super) fn insert(&self, key: Key, hits: Arc<[Hit]>) {
        let mut entries = self.entries.lock();
        if entries.answers.len() >= CAPACITY {
            entries.forget_oldest();
        }
        entries.uses += 1;
        let now = entries.uses;
        entries.answers.insert(key, (hits, now));
    }
}

impl Cache {
    pub(super) fn clear(&self) {
        self.entries.lock().answers.clear();
    }
}

impl Entries {
    /// Removes a tenth of the entries at once, so that the scan is rare.
    fn forget_oldest(&mut self) {
        let mut uses: Vec<u64> = self.answers.values().map(|(_, used)| *used).collect();
        uses.sort_unstable();
        let oldest_kept = uses[CAPACITY / 10];
        self.answers.retain(|_, (_, used)| *used >= oldest_kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        let request = Request {
            query: text,
            limit: 5,
            server: None,
            without: &[],
        };
        Key::of(&request, &Query::parse(text), true, |name| {
            name == "createissue"
        })
    }

    #[test]
    fn what_was_used_lately_stays() {
        let cache = Cache::default();
        let nothing: Arc<[Hit]> = Arc::new([]);
        for n in 0..CAPACITY {
            cache.insert(key(&format!("word{n}")), Arc::clone(&nothing));
        }
        assert!(cache.get(&key("word0")).is_some());
        cache.insert(key("one more"), nothing);
        assert!(cache.get(&key("word0")).is_some());
        assert!(cache.get(&key("word1")).is_none());
        assert!(cache.get(&key(&format!("word{}", CAPACITY - 1))).is_some());
        assert!(cache.entries.lock().answers.len() <= CAPACITY);
    }

    #[test]
    fn what_hardly_changes_an_answer_does_not_distinguish() {
        assert_eq!(key("Create  an ISSUE"), key("create an issue"));
        assert_eq!(
            key("send mail, then list files"),
            key("Mail send; files list!")
        );
        assert_ne!(key("create issue"), key("delete issue"));
        assert_ne!(
            key("create issue"),
            key("issue create"),
            "one of them is a name"
        );
        assert_ne!(
            key("list files, then send mail"),
            key("list mail, then send files")
        );
        assert_ne!(
            key("create issue"),
            Key {
                limit: 6,
                ..key("create issue")
            }
        );
    }
}
