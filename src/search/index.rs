//! One state of the index: built or opened, then only read.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tantivy::directory::{MmapDirectory, RamDirectory};
use tantivy::indexer::{IndexWriterOptions, NoMergePolicy};
use tantivy::schema::{IndexRecordOption, Term, Value};
use tantivy::{Directory, DocSet, ReloadPolicy, Searcher, TERMINATED, TantivyDocument};

use super::cache::{Cache, Key};
use super::explain::{self, Explained, Explanation};
use super::fingerprint::{Fingerprint, key};
use super::fusion::Scores;
use super::meaning::{Likeness, Meaning};
use super::postings::{Candidate, Postings};
use super::query::Query;
use super::schema::SCHEMA;
use super::store::Held;
use super::vocabulary::LazyVocabulary;
use super::{Document, Error, Hit, Request, Senses, lexical, tokenizer};
use crate::tool::{ServerName, ToolName};

/// What indexing may hold in memory before it writes a segment; hardly more than the least tantivy takes.
const MEMORY: usize = 15 << 20;
/// With more segments than this, or more than a quarter of its tools gone, an index is written anew.
const SEGMENTS: usize = 8;

pub(super) struct Index {
    pub(super) fingerprint: Fingerprint,
    searcher: Searcher,
    place: Place,
    vocabulary: LazyVocabulary,
    cache: Cache,
    meaning: Mutex<Option<Arc<Meaning>>>,
}

/// Where an index lies. Its files are never changed.
enum Place {
    Memory(RamDirectory),
    Disk(Held),
}

impl Index {
    /// Opens what `write` wrote; every file's checksum is compared first.
    pub(super) fn open(fingerprint: &Fingerprint, held: Held) -> Result<Self, Error> {
        let directory = MmapDirectory::open(&held.path).map_err(tantivy::TantivyError::from)?;
        Self::read(fingerprint, directory.into(), Place::Disk(held))
    }

    /// Builds an index in memory, from `base` what it has.
    pub(super) fn in_memory(
        fingerprint: &Fingerprint,
        base: Option<&Self>,
        documents: &[Document],
    ) -> Result<Self, Error> {
        let directory = RamDirectory::create();
        match base.map(|base| (base, Changes::since(base, documents))) {
            Some((Self { place: Place::Memory(files), .. }, Ok(Some(changes)))) => {
                files.persist(&directory)?;
                changes.write(directory.clone().into())?;
            }
            _ => write_all(directory.clone().into(), documents)?,
        }
        Self::read(fingerprint, directory.clone().into(), Place::Memory(directory))
    }

    /// Writes an index into the empty directory `path`, from `base` what it has.
    pub(super) fn write(path: &Path, base: Option<&Self>, documents: &[Document]) -> Result<(), Error> {
        if let Some(base) = base
            && let Place::Disk(held) = &base.place
            && let Some(changes) = Changes::since(base, documents)?
        {
            link_files(&held.path, path).map_err(|source| Error::Disk { path: path.to_owned(), source })?;
            return changes.write(open_directory(path)?);
        }
        write_all(open_directory(path)?, documents)
    }

    fn read(fingerprint: &Fingerprint, directory: Box<dyn Directory>, place: Place) -> Result<Self, Error> {
        let index = tantivy::Index::open(directory)?;
        if index.schema() != SCHEMA.schema || !index.validate_checksum()?.is_empty() {
            return Err(Error::Damaged);
        }
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        let searcher = reader.searcher();
        Ok(Self {
            fingerprint: fingerprint.clone(),
            searcher,
            place,
            vocabulary: LazyVocabulary::default(),
            cache: Cache::default(),
            meaning: Mutex::default(),
        })
    }

    /// Whether it is in memory only.
    pub(super) fn is_in_memory(&self) -> bool {
        matches!(self.place, Place::Memory(_))
    }

    pub(super) fn cached(&self, request: &Request<'_>) -> Option<Arc<[Hit]>> {
        self.cache.get(&self.key(request, &Query::parse(request.query)))
    }

    /// The best tools by words, and by meaning where `senses` are given and work.
    pub(super) fn search(&self, request: &Request<'_>, senses: Option<&Senses>) -> Result<Arc<[Hit]>, Error> {
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

    fn find(&self, request: &Request<'_>, query: &Query, senses: Option<&Senses>) -> Result<Arc<[Hit]>, Error> {
        let postings = Postings::new(&self.searcher)?;
        let is_word = |word: &str| senses.is_some_and(|senses| senses.embedder.is_word(word));
        let words = lexical::score(&postings, &self.vocabulary, query, &is_word)?;
        let likeness = senses.map(|senses| self.likeness(&postings, senses, query, &words)).transpose()?.flatten();
        let (scores, least) = Scores::of(&words, likeness.as_ref());
        let found = lexical::rank(&postings, query, scores, request, least)?;
        let mut hits = found.into_iter().map(|candidate| self.hit(candidate)).collect::<Result<Vec<_>, _>>()?;
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| (&a.server, &a.tool).cmp(&(&b.server, &b.tool))));
        hits.truncate(request.limit);
        Ok(hits.into())
    }

    pub(super) fn vocabulary(&self) -> &LazyVocabulary {
        &self.vocabulary
    }

    fn key(&self, request: &Request<'_>, query: &Query) -> Key {
        let is_name = |name: &str| {
            // Where it cannot be told, the search that follows tells why.
            self.searcher.doc_freq(&Term::from_field_text(SCHEMA.exact, name)).is_ok_and(|tools| tools > 0)
        };
        Key::of(request, query, is_name)
    }

    /// As [`Index::search`], with what each stage says; takes its time.
    pub(super) fn explain(&self, request: &Request<'_>, senses: Option<&Senses>) -> Result<Explanation, Error> {
        let query = Query::parse(request.query);
        let postings = Postings::new(&self.searcher)?;
        let is_word = |word: &str| senses.is_some_and(|senses| senses.embedder.is_word(word));
        let words = lexical::score(&postings, &self.vocabulary, &query, &is_word)?;
        let likeness = senses.map(|senses| self.likeness(&postings, senses, &query, &words)).transpose()?.flatten();
        let (scores, least) = Scores::of(&words, likeness.as_ref());
        let fused = scores.whole.clone();
        let found = lexical::rank(&postings, &query, scores, request, least.map(|_| 0.0))?;
        let best = found.iter().map(|candidate| fused[candidate.place]).fold(0.0, f32::max);
        let mut servers = postings.row(1.0);
        lexical::prefer_servers(&postings, &query, &mut servers)?;
        let mut named = postings.row(0.0);
        for name in &query.names {
            postings.each(SCHEMA.exact, name, |place, _, _| named[place] = 1.0)?;
        }
        let fields = explain::by_field(&postings, self, &query, &is_word)?;
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
            fits: least.is_none_or(|least| best >= least) || hits.iter().any(|hit: &Explained| hit.is_named),
            hits,
        })
    }

    /// How like each tool is to the query. Without a vector of any tool, and where the embedder fails, it is not told.
    fn likeness(
        &self,
        postings: &Postings<'_>,
        senses: &Senses,
        query: &Query,
        words: &lexical::Words,
    ) -> Result<Option<Likeness>, Error> {
        if query.needs.is_empty() {
            return Ok(None);
        }
        let Some(meaning) = self.meaning(postings, senses)? else { return Ok(None) };
        let likeness = meaning.compare(&*senses.embedder, query, &words.repairs);
        Ok(likeness.inspect_err(|error| tracing::warn!(%error, "a search goes by words alone")).ok())
    }

    fn meaning(&self, postings: &Postings<'_>, senses: &Senses) -> Result<Option<Arc<Meaning>>, Error> {
        let mut current = self.meaning.lock().unwrap_or_else(PoisonError::into_inner);
        if current.is_none() {
            let table = senses.vectors.load();
            *current = Meaning::new(&postings.vector_keys()?, &table, senses.embedder.width()).map(Arc::new);
        }
        Ok(current.clone())
    }

    /// Has the vectors read again, and no answer given that was found with the old ones.
    pub(super) fn forget_meaning(&self) {
        *self.meaning.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.cache.clear();
    }

    fn hit(&self, candidate: Candidate) -> Result<Hit, Error> {
        let document: TantivyDocument = self.searcher.doc(candidate.address)?;
        let text = |field| document.get_first(field).and_then(|value| value.as_str()).ok_or(Error::Damaged);
        Ok(Hit {
            server: ServerName::new(text(SCHEMA.server)?).map_err(|_| Error::Damaged)?,
            tool: ToolName::new(text(SCHEMA.tool)?).map_err(|_| Error::Damaged)?,
            score: candidate.score,
        })
    }

    /// The keys of the tools it has.
    fn keys(&self) -> tantivy::Result<HashSet<String>> {
        let mut keys = HashSet::new();
        for segment in self.searcher.segment_readers() {
            let index = segment.inverted_index(SCHEMA.key)?;
            let mut terms = index.terms().stream()?;
            while let Some((term, info)) = terms.next() {
                let mut postings = index.read_postings_from_terminfo(info, IndexRecordOption::Basic)?;
                while postings.doc() != TERMINATED && segment.is_deleted(postings.doc()) {
                    postings.advance();
                }
                if postings.doc() != TERMINATED {
                    keys.insert(String::from_utf8_lossy(term).into_owned());
                }
            }
        }
        Ok(keys)
    }
}

/// What makes one index of another.
struct Changes<'a> {
    removed: Vec<String>,
    added: Vec<&'a Document>,
}

impl<'a> Changes<'a> {
    /// The changes since `base`; `None` when it is better written anew.
    fn since(base: &Index, documents: &'a [Document]) -> tantivy::Result<Option<Self>> {
        let documents = unique(documents);
        let before = base.keys()?;
        let after: HashSet<&String> = documents.iter().map(|(key, _)| key).collect();
        let removed: Vec<String> = before.iter().filter(|key| !after.contains(key)).cloned().collect();
        let added: Vec<&Document> =
            documents.iter().filter(|(key, _)| !before.contains(key)).map(|(_, document)| *document).collect();
        let segments = base.searcher.segment_readers();
        let gone = removed.len() + segments.iter().map(|segment| segment.num_deleted_docs() as usize).sum::<usize>();
        let is_small = segments.len() < SEGMENTS && gone * 4 <= documents.len() && added.len() * 2 <= documents.len();
        Ok(is_small.then_some(Self { removed, added }))
    }

    fn write(&self, directory: Box<dyn Directory>) -> Result<(), Error> {
        let mut index = tantivy::Index::open_or_create(directory, SCHEMA.schema.clone())?;
        index.set_tokenizers(tokenizer::analyzers());
        let options =
            IndexWriterOptions::builder().num_worker_threads(1).num_merge_threads(1).memory_budget_per_thread(MEMORY);
        let mut writer = index.writer_with_options(options.build())?;
        writer.set_merge_policy(Box::new(NoMergePolicy));
        for key in &self.removed {
            writer.delete_term(Term::from_field_text(SCHEMA.key, key));
        }
        for document in &self.added {
            writer.add_document(SCHEMA.document(document))?;
        }
        writer.commit()?;
        writer.wait_merging_threads()?;
        Ok(())
    }
}

/// Writes all documents as one segment. The writer that does it works on this thread, without the queue of the usual
/// one, which would hold all documents at once.
fn write_all(directory: Box<dyn Directory>, documents: &[Document]) -> Result<(), Error> {
    let index = tantivy::Index::builder().schema(SCHEMA.schema.clone()).tokenizers(tokenizer::analyzers());
    let mut writer = index.single_segment_index_writer(directory, MEMORY)?;
    for (_, document) in unique(documents) {
        writer.add_document(SCHEMA.document(document))?;
    }
    writer.finalize()?;
    Ok(())
}

/// The documents with their keys, each once.
fn unique(documents: &[Document]) -> Vec<(String, &Document)> {
    let mut seen = HashSet::new();
    let keyed = documents.iter().map(|document| (key(&document.server, &document.tool, document.hash), document));
    keyed.filter(|(key, _)| seen.insert(key.clone())).collect()
}

fn open_directory(path: &Path) -> Result<Box<dyn Directory>, Error> {
    Ok(MmapDirectory::open(path).map_err(tantivy::TantivyError::from)?.into())
}

/// Fills `to` with the files of the index in `from`. Those that never change are linked where the disk can, the few
/// that are replaced with each change are copied.
fn link_files(from: &Path, to: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_lock = name.to_string_lossy().ends_with(".lock");
        let is_replaced = name.to_string_lossy().ends_with(".json");
        if is_lock {
            continue;
        }
        if is_replaced || fs::hard_link(entry.path(), to.join(&name)).is_err() {
            fs::copy(entry.path(), to.join(&name))?;
        }
    }
    Ok(())
}
