//! The properties of an index and of vectors that hold for every content of their files.
//!
//! A checksum would keep a fuzzer out of the code after it. So the checksum is also corrected, as only a writer could
//! do, and the opened index must be harmless: it answers, or it is reported as damaged.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use super::embedding::VectorKey;
use super::fingerprint::Fingerprint;
use super::index::Index;
use super::layout::fuzzing_seal;
use super::tokenizer::compact;
use super::vectors::Vectors;
use super::{Document, Embedder, Error, Hit, Request, Semantic, Unavailable, writing};
use crate::tool::{ServerName, ToolHash, ToolName};

/// More tools than this only take time.
const TOOLS: usize = 40;
const WIDTH: u32 = 16;

/// Fuzzes an index and a query. The first byte selects the form of the data, and the first line after it is the query. The rest is
/// an index file as it is, an index file with a corrected checksum, or tools, one per line, whose index is searched whole and then
/// damaged.
pub(crate) fn index(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let (query, rest) = line(rest);
    let mut bytes = rest.to_vec();
    match first % 3 {
        0 => {}
        1 => fuzzing_seal(&mut bytes),
        _ => {
            let documents = documents(rest);
            bytes = writing::write(&documents).expect("what a fuzzer makes is small");
            let whole = open(bytes.clone()).expect("what was just written is whole");
            check_found(&whole, &documents);
            ask(&whole, query, None);
            for (at, change) in changes(query, bytes.len()) {
                bytes[at] ^= change;
                assert!(
                    open(bytes.clone()).is_none(),
                    "byte {at} was changed, and nobody saw it"
                );
                fuzzing_seal(&mut bytes);
            }
        }
    }
    if let Some(index) = open(bytes) {
        ask(&index, query, None);
    }
}

/// Vectors of a few tools, and a query on the first line. Its first byte selects the rest: a file as it is, a file
/// with a corrected checksum, or the vectors, which are read back from their file and are then damaged in it.
pub(crate) fn vectors(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let (query, rest) = line(rest);
    let mut bytes = rest.to_vec();
    match first % 3 {
        0 => {}
        1 => Vectors::fuzzing_seal(&mut bytes, WIDTH),
        _ => {
            let vectors = made_of(rest);
            bytes = vectors.fuzzing_bytes();
            let read = Vectors::fuzzing_open(bytes.clone(), WIDTH as usize)
                .expect("what was just written is whole");
            assert_eq!(read.fuzzing_bytes(), bytes);
            for (at, change) in changes(query, bytes.len()) {
                let mut damaged = bytes.clone();
                damaged[at] ^= change;
                // The last four bytes of the header are unused.
                let is_seen = Vectors::fuzzing_open(damaged, WIDTH as usize).is_none();
                assert!(
                    is_seen || (20..24).contains(&at),
                    "byte {at} was changed, and nobody saw it"
                );
            }
        }
    }
    let Some(vectors) = Vectors::fuzzing_open(bytes, WIDTH as usize) else {
        return;
    };
    let known = HashSet::from([VectorKey(0)]);
    vectors.add(
        &HashMap::from([(VectorKey(0), vec![1.0; WIDTH as usize])]),
        &known,
    );
    assert!(
        vectors.load().has(VectorKey(0)),
        "a vector is added to whatever was there"
    );
    let index = open(some().1.clone()).expect("what was written is whole");
    ask(
        &index,
        query,
        Some(&Semantic::new(Arc::new(Letters), Arc::new(vectors))),
    );
}

fn line(data: &[u8]) -> (&str, &[u8]) {
    let end = data
        .iter()
        .position(|byte| *byte == b'\n')
        .unwrap_or(data.len());
    // A query is text; other bytes are not a query.
    (
        str::from_utf8(&data[..end]).unwrap_or_default(),
        data.get(end + 1..).unwrap_or_default(),
    )
}

fn open(bytes: Vec<u8>) -> Option<Index> {
    Index::open(&Fingerprint::of([]), bytes)
}

/// Runs every kind of search. Each gives a valid answer, or reports a damaged index.
fn ask(index: &Index, query: &str, semantic: Option<&Semantic>) {
    let without = [ServerName::new("s").expect("it is a name")];
    for (limit, server, without) in [
        (5, None, &[][..]),
        (1, Some("s"), &[]),
        (50, None, &without),
    ] {
        let request = Request {
            query,
            limit,
            server,
            without,
        };
        match index.search(&request, semantic) {
            Ok(hits) => {
                assert!(
                    hits.len() <= limit && hits.is_sorted_by(|a, b| a.score >= b.score),
                    "{hits:?}"
                );
                assert!(hits.iter().all(|hit| hit.score > 0.0), "{hits:?}");
                let is_wanted =
                    |hit: &Hit| server.is_none_or(|server| hit.server.as_str() == server);
                assert!(
                    hits.iter()
                        .all(|hit| is_wanted(hit) && !without.contains(&hit.server)),
                    "{hits:?}"
                );
                assert_eq!(index.cached(&request, semantic.is_some()), Some(hits));
            }
            Err(error) => assert!(matches!(error, Error::Damaged), "{error}"),
        }
        match index.explain(&request, semantic) {
            Ok(explanation) => assert!(explanation.hits.len() <= limit),
            Err(error) => assert!(matches!(error, Error::Damaged), "{error}"),
        }
    }
}

/// Each tool is found by its name, with all tools that share it.
fn check_found(index: &Index, documents: &[Document]) {
    for Document { server, tool, .. } in documents {
        let name = compact(tool.as_str());
        let request = Request {
            query: tool.as_str(),
            limit: TOOLS,
            server: Some(server.as_str()),
            without: &[],
        };
        let hits = index.search_words(&request).expect("it is whole");
        let is_found = hits
            .iter()
            .any(|hit| hit.server == *server && hit.tool == *tool);
        assert!(
            is_found || name.is_empty() || tool.as_str().len() > 900,
            "`{server}` has `{tool}`, not found: {hits:?}"
        );
    }
}

/// One tool per line: its server, name and description, and after bars its title and parameters.
fn documents(data: &[u8]) -> Vec<Document> {
    let text = String::from_utf8_lossy(data);
    let document = |line: &str| {
        let mut parts = line.split('|');
        let mut words = parts.next().unwrap_or_default().splitn(3, ' ');
        let server = words.next().and_then(|word| ServerName::new(word).ok());
        Some(Document {
            server: server.unwrap_or_else(|| ServerName::new("s").expect("it is a name")),
            tool: words.next().and_then(|word| ToolName::new(word).ok())?,
            hash: ToolHash::of(line.as_bytes()),
            description: words.next().unwrap_or_default().to_owned(),
            title: parts.next().map(str::to_owned),
            parameters: parts
                .map(|text| (text.to_owned(), text.to_owned()))
                .collect(),
        })
    };
    text.lines().take(TOOLS).filter_map(document).collect()
}

/// Offsets that bytes of the query select, each with the changed byte.
fn changes(query: &str, length: usize) -> impl Iterator<Item = (usize, u8)> {
    let (chunks, _) = query.as_bytes().as_chunks::<3>();
    chunks.iter().take(8).map(move |[low, high, change]| {
        (
            usize::from(u16::from_le_bytes([*low, *high])) % length,
            change | 1,
        )
    })
}

/// Vectors for the tools of [`some`], one row each, made of the bytes.
fn made_of(data: &[u8]) -> Vectors {
    let (rows, _) = data.as_chunks::<{ WIDTH as usize }>();
    let keys = some()
        .0
        .iter()
        .map(|document| VectorKey::of(&document.server, document.hash));
    let vector = |row: &[u8; WIDTH as usize]| {
        row.iter()
            .map(|byte| f32::from(byte.cast_signed()))
            .collect()
    };
    let new: HashMap<VectorKey, Vec<f32>> = keys.zip(rows.iter().map(vector)).collect();
    let vectors = Vectors::new(None, "", WIDTH as usize);
    vectors.add(&new, &HashSet::new());
    vectors
}

/// A few tools, and their index.
fn some() -> &'static (Vec<Document>, Vec<u8>) {
    static SOME: OnceLock<(Vec<Document>, Vec<u8>)> = OnceLock::new();
    SOME.get_or_init(|| {
        let documents = documents(
            b"s read_file read a file\ns write_file\ng list list issues|Issues\ng x the weather",
        );
        let bytes = writing::write(&documents).expect("it is small");
        (documents, bytes)
    })
}

/// An embedder that uses the first letters as the meaning.
struct Letters;

impl Embedder for Letters {
    fn name(&self) -> String {
        "letters".to_owned()
    }

    fn width(&self) -> usize {
        WIDTH as usize
    }

    fn is_word(&self, _: &str) -> bool {
        false
    }

    fn embed(&self, texts: &[&str], _: usize) -> Result<Vec<Vec<f32>>, Unavailable> {
        let vector = |text: &&str| {
            let letters = text
                .bytes()
                .chain(std::iter::repeat(0))
                .take(WIDTH as usize);
            letters.map(|byte| f32::from(byte) / 255.0).collect()
        };
        Ok(texts.iter().map(vector).collect())
    }
}
