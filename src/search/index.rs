//! One state of the index: built or opened, then read-only.

use std::sync::Arc;

use parking_lot::Mutex;

use super::cache::{Cache, Key};
use super::explain::{self, Explained, Explanation};
use super::fingerprint::Fingerprint;
use super::fitting;
use super::lexical::{self, Scores};
use super::meaning::{Embedded, Meaning, Similarity, in_parallel};
use super::postings::{Candidate, Postings};
use super::query::Query;
use super::vocabulary::LazyVocabulary;
use super::{Document, Error, Hit, Request, Semantic, writing};
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
    /// Opens the index in a file's bytes. `None` if they are damaged.
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

    /// Builds an index without a file.
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

    /// Whether it has no file.
    pub(super) fn is_in_memory(&self) -> bool {
        !self.is_on_disk
    }

    pub(super) fn cached(&self, request: &Request<'_>, is_by_meaning: bool) -> Option<Arc<[Hit]>> {
        self.cache
            .get(&self.key(request, &Query::parse(request.query), is_by_meaning))
    }

    /// The best tools by words, and by meaning if `semantic` is given and works.
    pub(super) fn search(
        &self,
        request: &Request<'_>,
        semantic: Option<&Semantic>,
    ) -> Result<Arc<[Hit]>, Error> {
        let query = Query::parse(request.query);
        let key = self.key(request, &query, semantic.is_some());
        if let Some(hits) = self.cache.get(&key) {
            return Ok(hits);
        }
        let hits = self.find(request, &query, semantic)?;
        self.cache.insert(key, Arc::clone(&hits));
        Ok(hits)
    }

    /// The best tools by words. The answer is not cached, because the next one may include meaning.
    pub(super) fn search_words(&self, request: &Request<'_>) -> Result<Arc<[Hit]>, Error> {
        self.find(request, &Query::parse(request.query), None)
    }

    fn find(
        &self,
        request: &Request<'_>,
        query: &Query,
        semantic: Option<&Semantic>,
    ) -> Result<Arc<[Hit]>, Error> {
        let is_word = |word: &str| semantic.is_some_and(|semantic| semantic.embedder.is_word(word));
        let words = lexical::score(&self.postings, &self.vocabulary, query, &is_word);
        let similarity = semantic.and_then(|semantic| self.similarity(semantic, query, &words));
        let scores = Scores::of(&words, similarity.as_ref());
        let fits =
            similarity.map(|similarity| self.fits(request, query, &scores, &words, &similarity));
        let found = lexical::rank(&self.postings, query, scores, request, fits);
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

    fn key(&self, request: &Request<'_>, query: &Query, is_by_meaning: bool) -> Key {
        let is_name = |name: &str| self.postings.named(name).next().is_some();
        Key::of(request, query, is_by_meaning, is_name)
    }

    /// Like [`Index::search`], with the scores of each stage. Slow.
    pub(super) fn explain(
        &self,
        request: &Request<'_>,
        semantic: Option<&Semantic>,
    ) -> Result<Explanation, Error> {
        let query = Query::parse(request.query);
        let postings = &self.postings;
        let is_word = |word: &str| semantic.is_some_and(|semantic| semantic.embedder.is_word(word));
        let words = lexical::score(postings, &self.vocabulary, &query, &is_word);
        let similarity = semantic.and_then(|semantic| self.similarity(semantic, &query, &words));
        let scores = Scores::of(&words, similarity.as_ref());
        let fits = similarity
            .as_ref()
            .map(|similarity| self.fits(request, &query, &scores, &words, similarity));
        let fused = scores.whole.clone();
        let found = lexical::rank(postings, &query, scores, request, fits.map(|_| true));
        let mut servers = postings.row(1.0);
        lexical::prefer_servers(postings, &query, &mut servers);
        let mut named = postings.row(0.0);
        for name in &query.names {
            postings.named(name).for_each(|doc| named[doc] = 1.0);
        }
        let fields = explain::by_field(postings, &self.vocabulary, &query, &is_word);
        let parts = explain::Parts {
            words: &words,
            similarity: similarity.as_ref(),
            fields: &fields,
            fused: &fused,
            servers: &servers,
            named: &named,
        };
        let mut hits = Vec::new();
        for candidate in found.into_iter().take(request.limit) {
            hits.push(parts.of(self.hit(candidate)?, candidate.doc));
        }
        Ok(Explanation {
            needs: query.needs.iter().map(|need| need.text.clone()).collect(),
            is_by_meaning: similarity.is_some(),
            repairs: words.repairs,
            fits: fits.unwrap_or(true) || hits.iter().any(|hit: &Explained| hit.is_named),
            words_of_model: None,
            hits,
        })
    }

    /// Whether any tool that the request permits fits.
    fn fits(
        &self,
        request: &Request<'_>,
        query: &Query,
        scores: &Scores,
        words: &lexical::Words,
        similarity: &Similarity,
    ) -> bool {
        let mut permitted = self.postings.row(1.0);
        lexical::keep_wanted(&self.postings, request, &mut permitted);
        let asked = lexical::distinct_words(query);
        fitting::fits(&scores.whole, words, similarity, &permitted, asked)
    }

    /// The similarity of each tool to the query. `None` without any vector, or if the embedder fails.
    fn similarity(
        &self,
        semantic: &Semantic,
        query: &Query,
        words: &lexical::Words,
    ) -> Option<Similarity> {
        if query.needs.is_empty() {
            return None;
        }
        let ask = || Embedded::of(semantic, query, &words.repairs);
        let known = self.meaning.lock().clone();
        let (meaning, asked) = match known {
            Some(meaning) => (Some(meaning), ask()),
            None if !semantic.vectors.are_there() => return None,
            // The first search of a run opens the model at the same time.
            None => in_parallel(|| self.read_meaning(semantic), ask),
        };
        let asked = asked
            .inspect_err(|error| tracing::warn!(%error, "a search goes by words alone"))
            .ok()?;
        Some(meaning?.compare(&*semantic.embedder, &asked))
    }

    fn read_meaning(&self, semantic: &Semantic) -> Option<Arc<Meaning>> {
        let mut current = self.meaning.lock();
        if current.is_none() {
            *current = Meaning::new(self.postings.vector_keys(), semantic.table()).map(Arc::new);
        }
        current.clone()
    }

    /// Reloads the vectors, and drops the answers that were found with the old ones.
    pub(super) fn forget_meaning(&self) {
        *self.meaning.lock() = None;
        self.cache.clear();
    }

    fn hit(&self, candidate: Candidate) -> Result<Hit, Error> {
        let (server, tool) = self.postings.names(candidate.doc);
        Ok(Hit {
            server: ServerName::new(server).map_err(|_| Error::Damaged)?,
            tool: ToolName::new(tool).map_err(|_| Error::Damaged)?,
            score: candidate.score,
        })
    }
}
