//! Simulates users whose calls search learns from (`search.learn`): what that gains if their needs return, and whether it does harm if
//! they do not.
//!
//! A user has twenty needs, queries of the set with one need each. After each search one of the five tools that it showed is called.
//! The user asks each need three times. Then searches are compared with the same ones without habits.

use std::collections::HashSet;
use std::path::Path;

use mcpzip::internals::search::{Document, Habits, Hit, Request};

use crate::corpus::{Label, Query, open};
use crate::{LIMIT, Measures, interval, mean, measure};

const USERS: usize = 200;
const NEEDS: usize = 20;
const TIMES: usize = 3;
const SHOWN: usize = 5;

/// A query, and its hits without habits.
struct Asked<'q> {
    query: &'q Query,
    hits: Vec<Hit>,
}

/// How the measures change, a user at a time: S@1, S@5 and nDCG@10.
#[derive(Default)]
struct Change {
    before: [Vec<f64>; 3],
    after: [Vec<f64>; 3],
}

/// Numbers that look random and are the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// Prints the changes over the queries of one set.
pub(crate) fn report(
    name: &str,
    corpus: &[Document],
    queries: &[Query],
    cache: Option<&Path>,
) -> anyhow::Result<()> {
    let search = open(corpus, cache)?;
    let tools: HashSet<(&str, &str)> = corpus.iter().map(crate::corpus::names).collect();
    let is_there = |label: &&Label| tools.contains(&(label.server.as_str(), label.tool.as_str()));
    let mut cut = queries.to_vec();
    for query in &mut cut {
        query.relevant.retain(|label| is_there(&label));
    }
    cut.retain(|query| query.relevant.iter().any(|label| label.grade >= 2));
    let mut asked = Vec::new();
    for query in &cut {
        let request = Request {
            query: &query.query,
            limit: 50,
            server: None,
            without: &[],
        };
        let hits = search.search(&request)?.to_vec();
        asked.push(Asked { query, hits });
    }
    let mut random = Random(29);
    let [mut same, mut other_words, mut other_needs, mut chance] =
        [(); 4].map(|()| Change::default());
    for _ in 0..USERS {
        let habits = Habits::in_memory();
        // A need and the tool that this user takes for it, one of the right ones that are shown.
        let mut own: Vec<(&Asked<'_>, &Label)> = Vec::new();
        for _ in 0..NEEDS {
            let asked = &asked[random.below(asked.len())];
            let shown = |label: &&Label| asked.hits.iter().take(SHOWN).any(|hit| is_it(hit, label));
            let right: Vec<&Label> = right(asked.query).filter(shown).collect();
            if asked.query.n_intents == 1 && !right.is_empty() {
                own.push((asked, right[random.below(right.len())]));
            }
        }
        for _ in 0..TIMES {
            for (asked, tool) in &own {
                habits.searched(
                    &asked.query.query,
                    &raised(&habits, asked)[..SHOWN.min(asked.hits.len())],
                );
                habits.called(&tool.server, &tool.tool, || true);
            }
        }
        let mut of_user = [(); 3].map(|()| Change::default());
        for (need, tool) in &own {
            of_user[0].add(&habits, need, &with(need.query, tool));
            let is_known = |other: &Asked<'_>| {
                own.iter()
                    .any(|(known, _)| known.query.id == other.query.id)
            };
            for other in asked.iter().filter(|other| !is_known(other)) {
                if right(other.query).any(|label| is_same(label, tool))
                    && other.query.n_intents == 1
                {
                    of_user[1].add(&habits, other, &with(other.query, tool));
                }
            }
        }
        for other in &asked {
            let is_served = |label: &Label| own.iter().any(|(_, tool)| is_same(label, tool));
            if !right(other.query).any(is_served) {
                of_user[2].add(&habits, other, other.query);
            }
        }
        for (all, one) in [&mut same, &mut other_words, &mut other_needs]
            .into_iter()
            .zip(&of_user)
        {
            all.take(one);
        }

        // All needs again; each time another of the shown tools is called.
        let habits = Habits::in_memory();
        for _ in 0..TIMES {
            for (asked, _) in &own {
                let shown = raised(&habits, asked);
                let shown = &shown[..SHOWN.min(shown.len())];
                habits.searched(&asked.query.query, shown);
                let hit = &shown[random.below(shown.len())];
                habits.called(hit.server.as_str(), hit.tool.as_str(), || true);
            }
        }
        let mut of_user = Change::default();
        for asked in &asked {
            of_user.add(&habits, asked, asked.query);
        }
        chance.take(&of_user);
    }
    println!(
        "{name}: {USERS} users, means without and with habits, and the change with its 95 % interval"
    );
    for (what, change) in [
        ("own needs again, in the same words", &same),
        ("own needs again, in other words", &other_words),
        ("needs of other tools", &other_needs),
        ("all needs, after calls by chance", &chance),
    ] {
        change.print(what);
    }
    Ok(())
}

/// The labels of tools that serve a query.
fn right(query: &Query) -> impl Iterator<Item = &Label> {
    query.relevant.iter().filter(|label| label.grade >= 2)
}

fn is_it(hit: &Hit, label: &Label) -> bool {
    hit.server.as_str() == label.server && hit.tool.as_str() == label.tool
}

fn is_same(one: &Label, other: &Label) -> bool {
    (&one.server, &one.tool) == (&other.server, &other.tool)
}

/// The query of a user for whom one tool is right.
fn with(query: &Query, tool: &Label) -> Query {
    Query {
        relevant: vec![tool.clone()],
        ..query.clone()
    }
}

fn raised(habits: &Habits, asked: &Asked<'_>) -> Vec<Hit> {
    let mut hits = asked.hits.clone();
    habits.raise(&asked.query.query, &mut hits);
    hits
}

impl Change {
    fn add(&mut self, habits: &Habits, asked: &Asked<'_>, query: &Query) {
        let numbers = |hits: &[Hit]| {
            let Measures {
                success_1,
                success_5,
                gain,
                ..
            } = measure(query, &hits[..LIMIT.min(hits.len())]);
            [success_1, success_5, gain]
        };
        let (before, after) = (numbers(&asked.hits), numbers(&raised(habits, asked)));
        for at in 0..3 {
            self.before[at].push(before[at]);
            self.after[at].push(after[at]);
        }
    }

    /// Adds the means of one user, if there are any.
    fn take(&mut self, user: &Self) {
        if user.before[0].is_empty() {
            return;
        }
        for at in 0..3 {
            self.before[at].push(mean(&user.before[at]));
            self.after[at].push(mean(&user.after[at]));
        }
    }

    fn print(&self, what: &str) {
        print!("  {what:36} {:3}", self.before[0].len());
        if self.before[0].is_empty() {
            println!();
            return;
        }
        for (name, at) in [("S@1", 0), ("S@5", 1), ("nDCG@10", 2)] {
            let changes: Vec<f64> = self.before[at]
                .iter()
                .zip(&self.after[at])
                .map(|(a, b)| b - a)
                .collect();
            let (low, high) = interval(&changes);
            print!(
                "  {name} {:.3} {:.3} {:+.3} ({low:+.3} to {high:+.3})",
                mean(&self.before[at]),
                mean(&self.after[at]),
                mean(&changes)
            );
        }
        println!();
    }
}
