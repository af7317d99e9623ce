//! The corpora and queries of `search-bench`, and an index of a corpus.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context as _;
use mcpzip::internals::search::{Bundled, Document, Fingerprint, Search, VectorKey};
use mcpzip::internals::tool::{Definition, ServerName, ToolHash, ToolName};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Server {
    server: String,
    tools: Vec<Box<RawValue>>,
}

/// A tool as `mcpzip tools --json --schemas` prints it.
#[derive(Deserialize)]
struct Listed {
    server: String,
    definition: Box<RawValue>,
}

#[derive(Deserialize, Clone)]
pub(crate) struct Query {
    pub(crate) id: String,
    pub(crate) query: String,
    pub(crate) kind: String,
    #[serde(default = "one")]
    pub(crate) n_intents: usize,
    pub(crate) relevant: Vec<Label>,
}

#[derive(Deserialize, Clone)]
pub(crate) struct Label {
    pub(crate) server: String,
    pub(crate) tool: String,
    pub(crate) grade: u32,
    #[serde(default = "first_intent")]
    pub(crate) intents: Vec<usize>,
}

fn one() -> usize {
    1
}

fn first_intent() -> Vec<usize> {
    vec![0]
}

/// The server and the name of a tool.
pub(crate) fn names(document: &Document) -> (&str, &str) {
    (document.server.as_str(), document.tool.as_str())
}

/// An index of a corpus with a vector for every tool.
pub(crate) fn open(corpus: &[Document], cache: Option<&Path>) -> anyhow::Result<Search> {
    let search = Search::new(cache.map(Path::to_owned)).with_embedder(Arc::new(Bundled::default()));
    let fingerprint = fingerprint(corpus);
    if !search.open(&fingerprint)? {
        search.rebuild(&fingerprint, corpus)?;
    }
    embed(&search, corpus)?;
    Ok(search)
}

/// Computes the vectors that the cache does not have.
fn embed(search: &Search, corpus: &[Document]) -> anyhow::Result<()> {
    let keys: HashSet<VectorKey> = corpus
        .iter()
        .map(|d| VectorKey::of(&d.server, d.hash))
        .collect();
    let lacking = search.without_vector(&keys);
    let embedding = search.begin_embedding().context("another process embeds")?;
    let documents: Vec<Document> = corpus
        .iter()
        .filter(|d| lacking.contains(&VectorKey::of(&d.server, d.hash)))
        .cloned()
        .collect();
    let mut vectors = HashMap::new();
    let start = Instant::now();
    for some in documents.chunks(8) {
        vectors.extend(embedding.embed(some)?);
    }
    if !documents.is_empty() {
        eprintln!(
            "{} tools embedded in {:.1} s",
            documents.len(),
            start.elapsed().as_secs_f64()
        );
        embedding.keep(&vectors, &keys);
    }
    Ok(())
}

pub(crate) fn fingerprint(corpus: &[Document]) -> Fingerprint {
    Fingerprint::of(
        corpus
            .iter()
            .map(|document| (&document.server, &document.tool, document.hash)),
    )
}

pub(crate) fn read_corpus(path: &Path) -> anyhow::Result<Vec<Document>> {
    let servers: Vec<Server> = serde_json::from_str(&fs::read_to_string(path)?)?;
    let mut documents = Vec::new();
    for Server { server, tools } in &servers {
        let server = ServerName::new(server)?;
        for raw in tools {
            let Ok(definition) = Definition::parse(raw) else {
                continue;
            };
            documents.push(document(&server, raw, definition));
        }
    }
    Ok(documents)
}

/// At most `most` of the tools that `mcpzip tools NAME --json --schemas` printed, in an order that does not follow the list.
pub(crate) fn read_listed(path: &Path, most: usize) -> anyhow::Result<Vec<Document>> {
    let mut listed: Vec<Listed> = serde_json::from_str(&fs::read_to_string(path)?)?;
    listed.sort_by_key(|tool| ToolHash::of(tool.definition.get().as_bytes()));
    let mut documents = Vec::new();
    for tool in listed.iter().take(most) {
        let server = ServerName::new(&tool.server)?;
        let definition = Definition::parse(&tool.definition)
            .map_err(|error| anyhow::anyhow!("{}: {error}", tool.server))?;
        documents.push(document(&server, &tool.definition, definition));
    }
    Ok(documents)
}

fn document(server: &ServerName, raw: &RawValue, definition: Definition<'_>) -> Document {
    Document {
        server: server.clone(),
        tool: ToolName::clone(&definition.name),
        hash: ToolHash::of(raw.get().as_bytes()),
        title: definition.title,
        description: definition.description,
        parameters: definition
            .parameters
            .into_iter()
            .map(|p| (p.name, p.description))
            .collect(),
    }
}

pub(crate) fn read_queries(path: &Path) -> anyhow::Result<Vec<Query>> {
    Ok(fs::read_to_string(path)?
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?)
}
