//! One state of the index: built or opened, then only read.

use std::sync::{Arc, Mutex, PoisonError};

use super::cache::{Cache, Key};
use super::explain::{self, Explained, Explanation};
use super::fingerprint::Fingerprint;
use super::fusion::Scores;
use super::meaning::{Asked, Likeness, Meaning, beside};
use super::postings::{Candidate, Postings};
use super::query::Query;
use super::vocabulary::LazyVocabulary;
use super::{Document, Error, Hit, Request, Senses, lexical, writing};
use crate::tool::{ServerName, ToolName};

pub(super) struct Index {
    pub(super) fingerprint: Fingerprint,
    is_on_disk: bool,
    postings: Postings,
    vocabulary: LazyVocabulary,
    cache: Cache,
    meaning: Mutex<Option<Arc<Meaning>>>,
}

impl Index {
    /// The index that a file's bytes are; `None` when they are damaged.
    pub(super) fn open(fingerprint: &Fingerprint, bytes: Vec<u8>) -> Option<Self> {
        Some(Self {
            fingerprint: fingerprint.clone(),
            is_on_disk: true,
            postings: Postings::open(bytes)?,
            vocabulary: LazyVocabulary::default(),
            cache: Cache::default(),
            meaning: Mutex::default(),
        })
    }

    /// Builds an index that has no file.
    pub(super) fn in_memory(
        fingerprint: &Fingerprint,
        documents: &[Document],
    ) -> Result<Self, Error> {
        let bytes = writing::write(documents).map_err(|_| Error::TooLarge)?;
        let index = Self::open(fingerprint, bytes).ok_or(Error::Damaged)?;
        Ok(Self {
            is_on_disk: false,
            ..index
        })
    }

    /// Whether it is in memory only.
    pub(super) fn is_in_memory(&self) -> bool {
        !self.is_on_disk
    }

    pub(super) fn cached(&self, request: &Request<'_>) -> Option<Arc<[Hit]>> {
        self.cache
            .get(&self.key(request, &Query::parse(request.query)))
    }

    /// The best tools by words, and by meaning where `senses` are given and work.
    pub(super) fn search(
        &self,
        request: &Request<'_>,
        senses: Option<&Senses>,
    ) -> Result<Arc<[Hit]>, Error> {
        let query = Query::parse(request.query);
        let key = self.key(request, &query);
        if let Some(hits) = self.cache.get(&key) {
            return Ok(hits);
        }
        let hits = self.find(request, &query, senses)?;
        self.cache.insert(key, Arc::clone(&hits));
        Ok(hits)
    }

    /// The best tools by words. Not remembered: the next time, meaning may be in time.
    pub(super) fn search_words(&self, request: &Request<'_>) -> Result<Arc<[Hit]>, Error> {
        self.find(request, &Query::parse(request.query), None)
    }

    fn find(
        &self,
        request: &Request<'_>,
        query: &Query,
        senses: Option<&Senses>,
    ) -> Result<Arc<[Hit]>, Error> {
        let is_word = |word: &str| senses.is_some_and(|senses| senses.embedder.is_word(word));
        let words = lexical::score(&self.postings, &self.vocabulary, query, &is_word);
        let likeness = senses.and_then(|senses| self.likeness(senses, query, &words));
        let (scores, least) = Scores::of(&words, likeness.as_ref());
        let found = lexical::rank(&self.postings, query, scores, request, least);
        let mut hits = found
            .into_iter()
            .map(|candidate| self.hit(candidate))
            .collect::<Result<Vec<_>, _>>()?;
        hits.sort_by(|a, b| {
            b.score
                .total_cmp(&a.score)
                .then_with(|| (&a.server, &a.tool).cmp(&(&b.server, &b.tool)))
        });
        hits.truncate(request.limit);
        Ok(hits.into())
    }

    pub(super) fn vocabulary(&self) -> &LazyVocabulary {
        &self.vocabulary
    }

    fn key(&self, request: &Request<'_>, query: &Query) -> Key {
        let is_name = |name: &str| self.postings.named(name).next().is_some();
        Key::of(request, query, is_name)
    }

    /// As [`Index::search`], with what each stage says; takes its time.
    pub(super) fn explain(
        &self,
        request: &Request<'_>,
        senses: Option<&Senses>,
    ) -> Result<Explanation, Error> {
        let query = Query::parse(request.query);
        let postings = &self.postings;
        let is_word = |word: &str| senses.is_some_and(|senses| senses.embedder.is_word(word));
        let words = lexical::score(postings, &self.vocabulary, &query, &is_word);
        let likeness = senses.and_then(|senses| self.likeness(senses, &query, &words));
        let (scores, least) = Scores::of(&words, likeness.as_ref());
        let fused = scores.whole.clone();
        let found = lexical::rank(postings, &query, scores, request, least.map(|_| 0.0));
        let best = found
            .iter()
            .map(|candidate| fused[candidate.place])
            .fold(0.0, f32::max);
        let mut servers = postings.row(1.0);
        lexical::prefer_servers(postings, &query, &mut servers);
        let mut named = postings.row(0.0);
        for name in &query.names {
            postings.named(name).for_each(|place| named[place] = 1.0);
        }
        let fields = explain::by_field(postings, self, &query, &is_word);
        let parts = explain::Parts {
            words: &words,
            likeness: likeness.as_ref(),
            fields: &fields,
            fused: &fused,
            servers: &servers,
            named: &named,
        };
        let mut hits = Vec::new();
        for candidate in found.into_iter().take(request.limit) {
            hits.push(parts.of(self.hit(candidate)?, candidate.place));
        }
        Ok(Explanation {
            needs: query.needs.iter().map(|need| need.text.clone()).collect(),
            is_by_meaning: likeness.is_some(),
            repairs: words.repairs,
            fits: least.is_none_or(|least| best >= least)
                || hits.iter().any(|hit: &Explained| hit.is_named),
            hits,
        })
    }

    /// How like each tool is to the query. Without a vector of any tool, and where the embedder fails, it is not told.
    fn likeness(&self, senses: &Senses, query: &Query, words: &lexical::Words) -> Option<Likeness> {
        if query.needs.is_empty() {
            return None;
        }
        let ask = || Asked::of(senses, query, &words.repairs);
        let known = self
            .meaning
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let (meaning, asked) = match known {
            Some(meaning) => (Some(meaning), ask()),
            None if !senses.vectors.are_there() => return None,
            // The first search of a run opens the model meanwhile.
            None => beside(|| self.read_meaning(senses), ask),
        };
        let asked = asked
            .inspect_err(|error| tracing::warn!(%error, "a search goes by words alone"))
            .ok()?;
        Some(meaning?.compare(&*senses.embedder, &asked))
    }

    fn read_meaning(&self, senses: &Senses) -> Option<Arc<Meaning>> {
        let mut current = self.meaning.lock().unwrap_or_else(PoisonError::into_inner);
        if current.is_none() {
            *current = Meaning::new(self.postings.vector_keys(), senses.table()).map(Arc::new);
        }
        current.clone()
    }

    /// Has the vectors read again, and no answer given that was found with the old ones.
    pub(super) fn forget_meaning(&self) {
        *self.meaning.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.cache.clear();
    }

    fn hit(&self, candidate: Candidate) -> Result<Hit, Error> {
        let (server, tool) = self.postings.names(candidate.place);
        Ok(Hit {
            server: ServerName::new(server).map_err(|_| Error::Damaged)?,
            tool: ToolName::new(tool).map_err(|_| Error::Damaged)?,
            score: candidate.score,
        })
    }
}
