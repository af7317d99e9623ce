//! Corpora of real tools, which are outside of this repository.

use std::path::Path;

use serde_json::Value;

/// The variable that skips the tests with corpora.
const SKIP: &str = "MCPZIP_TEST_SKIP_CORPORA";

/// The directory of the corpora.
const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/search-bench");

/// A tool and its server.
#[derive(Debug, Clone)]
pub(crate) struct CorpusTool {
    pub(crate) server: String,
    pub(crate) definition: Value,
}

/// The tools of a corpus such as `dev/corpus.json`. `None` if these tests are skipped, which is printed.
#[track_caller]
pub(crate) fn tools(corpus: &str) -> Option<Vec<CorpusTool>> {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests have no configuration of their own"
    )]
    let skip = std::env::var_os(SKIP);
    if skip.is_some_and(|value| !value.is_empty() && value != "0") {
        eprintln!("LEFT OUT: a test with real tools, because {SKIP} is set");
        return None;
    }
    let path = Path::new(DIRECTORY).join(corpus);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| {
        panic!(
            "{}: {error}\nThis test needs the corpora beside the repository; {SKIP}=1 leaves it out.",
            path.display()
        )
    });
    let servers: Vec<Value> = serde_json::from_str(&text).unwrap();
    let tools = servers.into_iter().flat_map(|server| {
        let name = server["server"].as_str().unwrap().to_owned();
        let tools = server["tools"].as_array().unwrap().clone();
        tools.into_iter().map(move |definition| CorpusTool {
            server: name.clone(),
            definition,
        })
    });
    Some(tools.collect())
}
