//! Faults, one after the other: what the client gets for each, and that nothing else suffers.
//!
//! `docs/faults.md` is made of these tables, and a test holds it to them: what stands there was seen to happen. The page is
//! written anew by `MCPZIP_WRITE_DOCS=1 cargo test --test it faults::page`.

#![cfg_attr(
    not(target_os = "linux"),
    allow(
        dead_code,
        unused_imports,
        reason = "the page is made on Linux, where all of its tests run"
    )
)]

#[cfg(target_os = "linux")]
mod crowds;
#[cfg(target_os = "linux")]
mod floods;
mod http;
#[cfg(unix)]
mod kills;
mod sse;
mod steps;
mod streamable;
#[cfg(unix)]
mod system;

use std::fmt::Write as _;
use std::path::Path;

use crate::{cache, http_faults, http_upstream, logins};

/// A line of the page: what goes wrong, what the client of it gets and after how long, and what is so afterwards.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome {
    pub(crate) fault: &'static str,
    pub(crate) gets: &'static str,
    pub(crate) after: &'static str,
    pub(crate) then: &'static str,
}

const INTRODUCTION: &str = "\
# Faults

The effects of faults on a client. Each row is a test that causes the fault in the real program, reads the answer that the client
gets, and checks that another server works before, during and after it (`cargo test --test it faults::`). Those tests write this page.
*At once* means without waiting for any limit. `…` stands for text that differs or is left out here.

`MCPZIP_TEST_KILLS=500 cargo test --test it faults::kills` kills five hundred times in place of twenty.
";

fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    let mut add = |title: &str, outcomes: &mut dyn Iterator<Item = Outcome>| {
        // Writing to memory cannot fail.
        let _ = writeln!(
            page,
            "\n## {title}\n\n| fault | what the client gets | after | then |\n|---|---|---|---|"
        );
        for Outcome {
            fault,
            gets,
            after,
            then,
        } in outcomes
        {
            let _ = writeln!(page, "| {fault} | {gets} | {after} | {then} |");
        }
    };
    add(
        "A server on stdin and stdout, step by step",
        &mut steps::outcomes(),
    );
    add(
        "A server over Streamable HTTP, in both eras",
        &mut streamable::outcomes(),
    );
    add("A server over HTTP+SSE", &mut sse::outcomes());
    add(
        "The way to a server over HTTP",
        &mut http_faults::OUTCOMES
            .iter()
            .chain(http_upstream::OUTCOMES)
            .chain(logins::OUTCOMES)
            .copied(),
    );
    #[cfg(unix)]
    add(
        "The system and the files",
        &mut system::OUTCOMES.iter().chain(cache::OUTCOMES).copied(),
    );
    #[cfg(target_os = "linux")]
    add(
        "Too much at once",
        &mut floods::OUTCOMES.iter().chain(crowds::OUTCOMES).copied(),
    );
    #[cfg(unix)]
    add("`kill -9`", &mut kills::OUTCOMES.iter().copied());
    page
}

#[cfg(target_os = "linux")]
#[test]
fn the_page_of_faults_says_what_the_tests_see() {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/faults.md"));
    #[expect(
        clippy::disallowed_methods,
        reason = "tests have no configuration of their own"
    )]
    if std::env::var_os("MCPZIP_WRITE_DOCS").is_some() {
        std::fs::write(path, page()).unwrap();
    }
    assert!(
        std::fs::read_to_string(path).unwrap() == page(),
        "docs/faults.md is not what the tests say; write it anew"
    );
}
