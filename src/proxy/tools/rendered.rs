//! The hits of the latest searches as text. Agents repeat searches, and reading and shortening the definitions of hits takes most of a repeated search.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::search::Found;
use crate::catalog::Snapshot;
use crate::search::Hit;

/// The number of searches whose hits are kept.
const KEPT: usize = 16;

/// The hits of the latest searches, with their texts.
#[derive(Debug, Default)]
pub(super) struct Rendered(Mutex<VecDeque<Search>>);

/// One search. A changed catalog has another snapshot, and another index other hits.
#[derive(Debug)]
struct Search {
    snapshot: Weak<Snapshot>,
    hits: Weak<[Hit]>,
    found: Vec<Found>,
}

impl Rendered {
    /// The texts of `hits`, made by `render` if they are not known.
    pub(super) fn of(
        &self,
        snapshot: &Arc<Snapshot>,
        hits: &Arc<[Hit]>,
        render: impl FnOnce() -> Vec<Found>,
    ) -> Vec<Found> {
        let (snapshot, hits) = (Arc::downgrade(snapshot), Arc::downgrade(hits));
        let is_it = |it: &&Search| it.snapshot.ptr_eq(&snapshot) && it.hits.ptr_eq(&hits);
        if let Some(known) = self.0.lock().iter().find(is_it) {
            return known.found.clone();
        }
        let found = render();
        // A definition that could not be read is read again next time, and hits that the index does not keep never come again.
        if hits.strong_count() > 1 && hits.upgrade().is_some_and(|hits| hits.len() == found.len()) {
            let mut kept = self.0.lock();
            kept.truncate(KEPT - 1);
            kept.push_front(Search {
                snapshot,
                hits,
                found: found.clone(),
            });
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::tool::{ServerName, ToolName};

    #[test]
    fn hits_are_rendered_again_only_after_another_search_or_with_another_catalog() {
        let rendered = Rendered::default();
        let (one, other) = (Catalog::new().snapshot(), Catalog::new().snapshot());
        let hits = |count: usize| -> Arc<[Hit]> {
            let hit = Hit {
                server: ServerName::new("a").unwrap(),
                tool: ToolName::new("b").unwrap(),
                score: 1.0,
            };
            vec![hit; count].into()
        };
        let (hits, more, unread) = (hits(1), hits(1), hits(2));
        let mut count = 0;
        let mut of = |snapshot: &Arc<Snapshot>, hits: &Arc<[Hit]>| {
            let _of_the_index = Arc::clone(hits);
            let found = rendered.of(snapshot, hits, || {
                count += 1;
                vec![Found {
                    name: count.to_string(),
                    score: 1.0,
                    text: String::new(),
                }]
            });
            found[0].name.clone()
        };
        assert_eq!(of(&one, &hits), "1");
        assert_eq!(of(&one, &hits), "1");
        assert_eq!(of(&other, &hits), "2");
        assert_eq!(of(&one, &more), "3");
        assert_eq!(of(&one, &hits), "1");
        assert_eq!(of(&one, &unread), "4");
        assert_eq!(of(&one, &unread), "5", "a hit without a text is read again");
        for _ in 0..KEPT {
            of(&one, &Arc::from(&hits[..]));
        }
        assert_eq!(of(&one, &hits), (5 + KEPT + 1).to_string(), "few are kept");
        let kept = || rendered.0.lock().front().map(|kept| kept.hits.clone());
        let before = kept();
        let _ = rendered.of(&one, &Arc::from(&unread[..1]), Vec::new);
        assert!(kept().unwrap().ptr_eq(&before.unwrap()), "of a reranker");
    }
}
