//! Builds an index from documents, all at once: 10,000 tools take a fraction of a second, so no older index is reused.
//!
//! A word is stemmed when it is first met, and postings are written in their final form as the tools are read, so
//! memory holds little more than the index.

use std::collections::{HashMap, HashSet};

use super::Document;
use super::embedding::VectorKey;
use super::layout::{Builder, Section, TooLarge};
use super::postings::Occurrences;
use super::schema::{FIELDS, telling, texts};
use super::tokenizer::{Words, compact, stem};

/// Builds the index of `documents`, without duplicates. A tool's document id is its position among them.
pub(super) fn write(documents: &[Document]) -> Result<Vec<u8>, TooLarge> {
    let mut seen = HashSet::new();
    let documents: Vec<&Document> = documents
        .iter()
        .filter(|document| seen.insert((&document.server, &document.tool, document.hash)))
        .collect();
    let mut text = Text::default();
    let mut servers = Numbered::default();
    let server_of: Vec<usize> = documents
        .iter()
        .map(|document| servers.number(document.server.as_str()))
        .collect();
    let tellings: Vec<String> = servers.texts.iter().map(|server| telling(server)).collect();
    for (doc, (document, server)) in documents.iter().zip(&server_of).enumerate() {
        text.add(doc, &texts(document, &tellings[*server]));
    }
    let tools: Vec<&str> = documents
        .iter()
        .map(|document| document.tool.as_str())
        .collect();
    let in_order = |name: fn(&Document) -> String| {
        let mut names: Vec<(String, usize)> = documents
            .iter()
            .map(|document| name(document))
            .zip(0..)
            .collect();
        names.sort_unstable();
        names.into_iter().map(|(_, doc)| doc)
    };

    let mut index = Builder::new(documents.len())?;
    index.add_list(Section::Servers, &servers.texts)?;
    index.add_numbers(Section::ServerOf, server_of)?;
    index.add_list(Section::Tools, &tools)?;
    index.add(Section::Vectors, |bytes| {
        let keys = documents
            .iter()
            .map(|document| VectorKey::of(&document.server, document.hash));
        bytes.extend(keys.flat_map(|key| key.0.to_le_bytes()));
        Ok(())
    })?;
    index.add(Section::Lengths, |bytes| {
        bytes.extend(text.lengths.iter().flat_map(|length| length.to_le_bytes()));
        Ok(())
    })?;
    index.add_numbers(Section::Totals, text.totals)?;
    index.add_numbers(
        Section::ByTool,
        in_order(|document| compact(document.tool.as_str())),
    )?;
    index.add_numbers(
        Section::ByName,
        in_order(|document| compact(&format!("{}{}", document.server, document.tool))),
    )?;
    let Text { stems, words, .. } = text;
    let (texts, postings): (Vec<&str>, Vec<&[u8]>) = stems
        .in_order()
        .map(|(stem, at)| (stem, &*text.stemmed[at].postings))
        .unzip();
    index.add_list(Section::Stems, &texts)?;
    index.add_list(Section::Postings, &postings)?;
    let (texts, tools): (Vec<&str>, Vec<usize>) = words
        .in_order()
        .map(|(word, at)| (word, text.written[at].tools))
        .unzip();
    index.add_list(Section::Words, &texts)?;
    index.add_numbers(Section::WordTools, tools)?;
    Ok(index.finish())
}

/// Distinct texts, numbered in the order of arrival.
#[derive(Default)]
struct Numbered {
    numbers: HashMap<String, usize>,
    texts: Vec<String>,
}

impl Numbered {
    fn number(&mut self, text: &str) -> usize {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.texts.len();
        self.numbers.insert(text.to_owned(), number);
        self.texts.push(text.to_owned());
        number
    }

    /// The texts in the order of their bytes, with their numbers.
    fn in_order(&self) -> impl Iterator<Item = (&str, usize)> {
        let mut order: Vec<(&str, usize)> =
            self.texts.iter().map(String::as_str).zip(0..).collect();
        order.sort_unstable();
        order.into_iter()
    }
}

/// The state after the tools read so far.
#[derive(Default)]
struct Text {
    words: Numbered,
    written: Vec<Written>,
    stems: Numbered,
    stemmed: Vec<Stemmed>,
    lengths: Vec<u16>,
    totals: [usize; FIELDS],
}

/// An unstemmed word.
struct Written {
    stem: usize,
    tools: usize,
    /// The last tool that has it, counted from 1.
    last: usize,
}

#[derive(Default)]
struct Stemmed {
    postings: Vec<u8>,
    /// The document id after the last tool that has it.
    next: usize,
    /// The occurrences in the current tool.
    times: [u32; FIELDS],
}

impl Text {
    /// Reads the next tool, whose document id is `doc`.
    fn add(&mut self, doc: usize, fields: &[Vec<&str>; FIELDS]) {
        let mut met = Vec::new();
        for (field, texts) in fields.iter().enumerate() {
            let mut length = 0;
            for text in texts {
                let mut words = Words::of(text);
                while let Some(word) = words.next() {
                    length += 1;
                    let stem = self.word(word, doc);
                    let times = &mut self.stemmed[stem].times;
                    if *times == [0; FIELDS] {
                        met.push(stem);
                    }
                    times[field] += 1;
                }
            }
            self.totals[field] += length;
            self.lengths.push(u16::try_from(length).unwrap_or(u16::MAX));
        }
        for stem in met {
            let Stemmed {
                postings,
                next,
                times,
            } = &mut self.stemmed[stem];
            Occurrences::append(postings, doc - *next, times);
            *next = doc + 1;
            *times = [0; FIELDS];
        }
    }

    /// Counts a word of the tool at `doc`. Returns the number of its stem.
    fn word(&mut self, word: &str, doc: usize) -> usize {
        let number = self.words.number(word);
        if number == self.written.len() {
            let stem = self.stems.number(&stem(word));
            if stem == self.stemmed.len() {
                self.stemmed.push(Stemmed::default());
            }
            self.written.push(Written {
                stem,
                tools: 0,
                last: 0,
            });
        }
        let written = &mut self.written[number];
        if written.last != doc + 1 {
            (written.tools, written.last) = (written.tools + 1, doc + 1);
        }
        written.stem
    }
}
