use std::fs;
use std::path::Path;

use super::*;

fn document(server: &str, tool: &str, description: &str) -> Document {
    Document {
        server: ServerName::new(server).unwrap(),
        tool: ToolName::new(tool).unwrap(),
        hash: ToolHash::of(description.as_bytes()),
        title: None,
        description: description.to_owned(),
        parameters: vec![(
            "limit".to_owned(),
            "The most results to give back".to_owned(),
        )],
    }
}

pub(super) fn documents() -> Vec<Document> {
    [
        (
            "github",
            "create_issue",
            "Create a new issue in a repository",
        ),
        ("github", "list_issues", "List the issues of a repository"),
        (
            "github",
            "list_pull_requests",
            "List pull requests of a repository",
        ),
        ("github", "whoami", "Tell the name of the account"),
        (
            "gitlab",
            "list_pull_requests",
            "List pull requests of a project, called merge requests here",
        ),
        ("gitlab", "createIssue", "Open an issue of a project"),
        ("slack", "post_message", "Post a message to a channel"),
        (
            "slack",
            "list_channels",
            "List the channels of the workspace",
        ),
        ("files", "read_file", "Read the contents of a file"),
        ("files", "write_file", "Write the contents of a file"),
        (
            "weather",
            "get-forecast",
            "Weather forecast for the next days",
        ),
        (
            "wetter",
            "vorhersage",
            "Wettervorhersage für die nächsten Tage in Österreich",
        ),
        ("tianqi", "查询天气", "查询城市的天气预报"),
    ]
    .map(|(server, tool, description)| document(server, tool, description))
    .into()
}

fn fingerprint(documents: &[Document]) -> Fingerprint {
    Fingerprint::of(
        documents
            .iter()
            .map(|document| (&document.server, &document.tool, document.hash)),
    )
}

fn build(directory: Option<&Path>, documents: &[Document]) -> Search {
    let search = Search::new(directory.map(Path::to_owned));
    search.rebuild(&fingerprint(documents), documents).unwrap();
    search
}

fn names(hits: &[Hit]) -> Vec<String> {
    hits.iter()
        .map(|hit| format!("{}/{}", hit.server, hit.tool))
        .collect()
}

fn find(search: &Search, query: &str) -> Vec<String> {
    names(
        &search
            .search(&Request {
                query,
                limit: 5,
                server: None,
                without: &[],
            })
            .unwrap(),
    )
}

#[test]
fn the_tool_that_is_meant_comes_first() {
    let search = build(None, &documents());
    for (query, first) in [
        // Exact names, in any spelling.
        ("create_issue", "github/create_issue"),
        ("gitlab__createIssue", "gitlab/createIssue"),
        ("github:create-issue", "github/create_issue"),
        ("use post_message please", "slack/post_message"),
        ("who am I", "github/whoami"),
        // Servers named in the usual positions.
        ("github: list pull requests", "github/list_pull_requests"),
        ("list pull requests on gitlab", "gitlab/list_pull_requests"),
        ("gitlab list pull requests", "gitlab/list_pull_requests"),
        ("list prs on github", "github/list_pull_requests"),
        // Typos, other forms, other languages.
        ("lsit chanels", "slack/list_channels"),
        ("forecasting", "weather/get-forecast"),
        ("WETTERVORHERSAGE osterreich", "wetter/vorhersage"),
        ("天气", "tianqi/查询天气"),
    ] {
        let hits = find(&search, query);
        assert_eq!(
            hits.first().map(String::as_str),
            Some(first),
            "{query}: {hits:?}"
        );
    }
}

#[test]
fn every_need_is_served() {
    let search = build(None, &documents());
    let hits = find(&search, "read the file and post it to slack");
    for tool in ["files/read_file", "slack/post_message"] {
        assert!(
            hits[..2].contains(&tool.to_owned()),
            "{tool} is not in front: {hits:?}"
        );
    }
}

#[test]
fn nothing_is_listed_when_nothing_fits() {
    let search = build(None, &documents());
    for query in ["", "  ", "?", "photosynthesis", "the", "xqzvwkjh"] {
        assert!(find(&search, query).is_empty(), "{query}");
    }
    assert!(
        search
            .search(&Request {
                query: "issue",
                limit: 0,
                server: None,
                without: &[]
            })
            .unwrap()
            .is_empty()
    );
}

#[test]
fn a_server_narrows() {
    let search = build(None, &documents());
    let of = |server| {
        names(
            &search
                .search(&Request {
                    query: "list issues",
                    limit: 9,
                    server: Some(server),
                    without: &[],
                })
                .unwrap(),
        )
    };
    assert!(of("gitlab").iter().all(|name| name.starts_with("gitlab/")));
    assert_eq!(of("gitlab").len(), 2);
    assert!(of("nobody").is_empty());
}

#[test]
fn equal_tools_come_in_the_order_of_their_names() {
    let mut equal: Vec<_> = ["c", "a", "d", "b"]
        .map(|server| document(server, "same", "Does the same"))
        .into();
    equal.push(document("e", "other", "Unlike these"));
    let search = build(None, &equal);
    assert_eq!(
        find(&search, "does same"),
        ["a/same", "b/same", "c/same", "d/same"]
    );
    let two = search
        .search(&Request {
            query: "does same",
            limit: 2,
            server: None,
            without: &[],
        })
        .unwrap();
    assert_eq!(
        names(&two),
        ["a/same", "b/same"],
        "a cut does not change the order"
    );
}

#[test]
fn scores_descend() {
    let search = build(None, &documents());
    let hits = search
        .search(&Request {
            query: "list repository issue",
            limit: 9,
            server: None,
            without: &[],
        })
        .unwrap();
    assert!(
        hits.len() > 3 && hits.is_sorted_by(|a, b| a.score >= b.score),
        "{hits:?}"
    );
}

#[test]
fn a_changed_catalog_is_never_answered_from_the_cache() {
    let mut tools = documents();
    let search = build(None, &tools);
    let request = Request {
        query: "delete the planet",
        limit: 5,
        server: None,
        without: &[],
    };
    assert!(search.cached(&request).is_none());
    assert!(search.search(&request).unwrap().is_empty());
    assert!(search.cached(&request).is_some());
    tools.push(document("space", "delete_planet", "Delete a planet"));
    tools.retain(|tool| tool.server.as_str() != "slack");
    search.rebuild(&fingerprint(&tools), &tools).unwrap();
    assert!(search.cached(&request).is_none());
    assert_eq!(find(&search, "delete the planet"), ["space/delete_planet"]);
    assert!(!find(&search, "post message").contains(&"slack/post_message".to_owned()));
}

#[test]
fn without_an_index_there_is_an_error_that_says_so() {
    let search = Search::new(None);
    let error = search
        .search(&Request {
            query: "x",
            limit: 5,
            server: None,
            without: &[],
        })
        .unwrap_err();
    assert!(matches!(error, Error::Missing) && error.is_rebuild_needed());
    assert!(!search.open(&fingerprint(&documents())).unwrap());
}

#[test]
fn an_index_is_shared_by_all_with_its_directory() {
    let home = tempfile::tempdir().unwrap();
    let tools = documents();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                assert_eq!(
                    find(&build(Some(home.path()), &tools), "read_file")[0],
                    "files/read_file"
                );
            });
        }
    });
    assert_eq!(
        index_files(home.path()).len(),
        1,
        "one was built, the others opened it"
    );
    let other = Search::new(Some(home.path().to_owned()));
    assert!(other.open(&fingerprint(&tools)).unwrap());
    assert_eq!(find(&other, "read_file")[0], "files/read_file");
}

#[test]
fn a_changed_tool_is_found_by_its_new_words_alone() {
    let home = tempfile::tempdir().unwrap();
    let mut tools = documents();
    drop(build(Some(home.path()), &tools));
    tools.remove(1);
    tools[0] = document("github", "create_issue", "File a bug");
    let search = build(Some(home.path()), &tools);
    assert_eq!(find(&search, "file a bug")[0], "github/create_issue");
    assert_eq!(
        find(&search, "repository"),
        ["github/list_pull_requests"],
        "the old state of the tool is gone"
    );
    assert!(
        find(&search, "list_issues")
            .iter()
            .all(|name| name != "github/list_issues")
    );
}

#[test]
fn a_tool_that_is_told_twice_is_one() {
    let search = build(None, &[documents(), documents()].concat());
    assert_eq!(
        find(&search, "read_file")
            .iter()
            .filter(|name| *name == "files/read_file")
            .count(),
        1
    );
}

#[test]
fn an_index_of_no_tools_finds_nothing() {
    let home = tempfile::tempdir().unwrap();
    assert!(find(&build(Some(home.path()), &[]), "read a file").is_empty());
    let other = Search::new(Some(home.path().to_owned()));
    assert!(other.open(&fingerprint(&[])).unwrap());
    assert!(find(&other, "read a file").is_empty());
}

/// The files of all indexes in a directory.
fn index_files(home: &Path) -> Vec<std::path::PathBuf> {
    let files = fs::read_dir(home.join(store::VERSION))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    files
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "index")
        })
        .collect()
}

#[test]
fn a_damaged_index_is_removed_and_built_again() {
    let tools = documents();
    let name = fingerprint(&tools);
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 8] = [
        ("a changed first byte", |file| {
            change(file, |bytes| bytes[0] ^= 0xff);
        }),
        ("a changed byte of the header", |file| {
            change(file, |bytes| bytes[14] ^= 0xff);
        }),
        ("a changed byte in the middle", |file| {
            change(file, |bytes| {
                let middle = bytes.len() / 2;
                bytes[middle] ^= 1;
            });
        }),
        ("a changed last byte", |file| {
            change(file, |bytes| *bytes.last_mut().unwrap() ^= 1);
        }),
        ("half a file", |file| {
            change(file, |bytes| bytes.truncate(bytes.len() / 2));
        }),
        ("a file of nothing", |file| change(file, Vec::clear)),
        ("more than was written", |file| {
            change(file, |bytes| bytes.push(0));
        }),
        ("a directory for a file", |file| {
            fs::remove_file(file).unwrap();
            fs::create_dir(file).unwrap();
        }),
    ];
    for (what, damage) in damages {
        let home = tempfile::tempdir().unwrap();
        drop(build(Some(home.path()), &tools));
        let file = index_files(home.path()).pop().unwrap();
        damage(&file);
        let search = Search::new(Some(home.path().to_owned()));
        assert!(!search.open(&name).unwrap(), "{what} was opened");
        assert!(!file.exists(), "{what}");
        search.rebuild(&name, &tools).unwrap();
        assert_eq!(find(&search, "read_file")[0], "files/read_file", "{what}");
        assert!(
            Search::new(Some(home.path().to_owned()))
                .open(&name)
                .unwrap(),
            "{what}"
        );
    }
}

#[test]
fn an_index_that_fails_in_use_is_removed_and_built_again() {
    let home = tempfile::tempdir().unwrap();
    let tools = documents();
    let search = build(Some(home.path()), &tools);
    let index = search.current().unwrap();
    search.set_aside(&index, &Error::Damaged);
    assert!(matches!(
        search.search(&Request {
            query: "x",
            limit: 5,
            server: None,
            without: &[]
        }),
        Err(Error::Missing)
    ));
    assert!(!search.open(&fingerprint(&tools)).unwrap(), "it is gone");
    search.rebuild(&fingerprint(&tools), &tools).unwrap();
    assert_eq!(find(&search, "read_file")[0], "files/read_file");
}

/// An embedder that knows three concepts, each by some words; a text with none of them has no meaning.
struct Concepts {
    fails: std::sync::atomic::AtomicBool,
    /// The number of calls.
    asked: std::sync::atomic::AtomicUsize,
}

impl Concepts {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            fails: false.into(),
            asked: 0.into(),
        })
    }
}

impl Embedder for Concepts {
    fn name(&self) -> String {
        "concepts".to_owned()
    }

    fn width(&self) -> usize {
        64
    }

    fn is_word(&self, word: &str) -> bool {
        word == "notify"
    }

    fn embed(&self, texts: &[&str], _longest: usize) -> Result<Vec<Vec<f32>>, Unavailable> {
        const CONCEPTS: [&[&str]; 3] = [
            &["message", "notify"],
            &["issue", "bug", "defect"],
            &["forecast", "umbrella", "sky"],
        ];
        self.asked
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if self.fails.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(Unavailable {
                reason: "told to fail".to_owned(),
            });
        }
        let vector = |text: &&str| {
            let mut vector = vec![0.0; 64];
            for (at, words) in CONCEPTS.iter().enumerate() {
                vector[at] = f32::from(u8::from(
                    words.iter().any(|word| text.to_lowercase().contains(word)),
                ));
            }
            // The other words make it unlike every other text.
            vector[3 + text.bytes().map(usize::from).sum::<usize>() % 61] += 0.3;
            let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
            vector.iter_mut().for_each(|x| *x /= length);
            vector
        };
        Ok(texts.iter().map(vector).collect())
    }
}

fn embed(search: &Search, documents: &[Document]) {
    let embedding = search.begin_embedding().unwrap();
    let tools = documents
        .iter()
        .map(|d| VectorKey::of(&d.server, d.hash))
        .collect();
    embedding.keep(
        &embedding.embed(documents).unwrap().into_iter().collect(),
        &tools,
    );
}

#[test]
fn a_need_in_other_words_is_understood() {
    let tools = documents();
    let search = build(None, &tools).with_embedder(Concepts::new());
    assert!(
        find(&search, "need an umbrella tomorrow").is_empty(),
        "there is no vector yet"
    );
    embed(&search, &tools);
    assert_eq!(
        find(&search, "need an umbrella tomorrow")[0],
        "weather/get-forecast"
    );
    assert_eq!(find(&search, "notify somebody")[0], "slack/post_message");
    assert_eq!(
        find(&search, "create_issue")[0],
        "github/create_issue",
        "an exact name still wins"
    );
    for query in ["photosynthesis", "photosynthesis of green plants"] {
        assert!(
            find(&search, query).is_empty(),
            "{query}: {:?}",
            find(&search, query)
        );
    }
    let both = find(
        &search,
        "notify somebody of it, then look whether the sky is clear",
    );
    for tool in ["slack/post_message", "weather/get-forecast"] {
        assert!(
            both[..2].contains(&tool.to_owned()),
            "{tool} is not in front: {both:?}"
        );
    }
}

/// An embedder for which an ounce has much to do with metals, and nothing with other texts.
struct Metals;

impl Embedder for Metals {
    fn name(&self) -> String {
        "metals".to_owned()
    }

    fn width(&self) -> usize {
        16
    }

    fn is_word(&self, _: &str) -> bool {
        true
    }

    fn embed(&self, texts: &[&str], _longest: usize) -> Result<Vec<Vec<f32>>, Unavailable> {
        let vector = |text: &&str| {
            let mut vector = vec![0.0; 16];
            if text.contains("ounce") {
                vector[0] = 1.0;
            } else if text.contains("metals") {
                (vector[0], vector[1]) = (0.9, 0.436);
            } else {
                vector[2] = 1.0;
            }
            vector
        };
        Ok(texts.iter().map(vector).collect())
    }
}

#[test]
fn many_tools_do_not_hide_what_another_server_has() {
    let some = |server: &dyn Fn(usize) -> String, count: usize| {
        let tool = |at: usize| document(&server(at), &format!("tool{at}"), &format!("Thing {at}"));
        (0..count).map(tool).collect::<Vec<_>>()
    };
    let own = |others: Vec<Document>| {
        let mut all = some(&|at| format!("own{at}"), 19);
        all.push(document("prices", "quote", "The price of metals"));
        all.extend(others);
        let search = build(None, &all).with_embedder(Arc::new(Metals));
        embed(&search, &all);
        search
    };
    let found = |search: &Search, query: &str, server: Option<&str>, without: &[ServerName]| {
        let request = Request {
            query,
            limit: 5,
            server,
            without,
        };
        let fits = search.explain(&request).unwrap().fits;
        let hits = names(&search.search(&request).unwrap());
        assert_eq!(fits, !hits.is_empty());
        hits
    };
    let of_one = own(some(&|_| "large".to_owned(), 400));
    let of_many = own(some(&|at| format!("other{at}"), 400));
    let prices = [ServerName::new("prices").unwrap()];
    for search in [own(Vec::new()), of_one, of_many] {
        assert_eq!(found(&search, "ounce", None, &[]), ["prices/quote"]);
        assert_eq!(
            found(&search, "ounce", Some("prices"), &[]),
            ["prices/quote"]
        );
        assert!(found(&search, "ounce", None, &prices).is_empty());
    }
}

#[test]
fn what_was_prepared_is_used_by_the_query_it_was_for() {
    let (home, tools) = (tempfile::tempdir().unwrap(), documents());
    let embedded = build(Some(home.path()), &tools).with_embedder(Concepts::new());
    embed(&embedded, &tools);
    for (prepared, query, asked) in [
        ("need an umbrella", "need an umbrella", 1),
        ("need an umbrella", "clear sky", 2),
        // A misspelt word is replaced before the query is embedded.
        ("notify a chanel", "notify a chanel", 2),
        // Its needs are embedded in addition to the whole.
        (
            "notify somebody, then look at the sky",
            "notify somebody, then look at the sky",
            2,
        ),
    ] {
        let concepts = Concepts::new();
        let search = Search::new(Some(home.path().to_owned())).with_embedder(concepts.clone());
        search.prepare(prepared);
        assert!(search.open(&fingerprint(&tools)).unwrap());
        assert_eq!(find(&search, query), find(&embedded, query), "{query}");
        assert_eq!(
            concepts.asked.load(std::sync::atomic::Ordering::Relaxed),
            asked,
            "{query}"
        );
        search.prepare("clear sky");
        assert_eq!(
            concepts.asked.load(std::sync::atomic::Ordering::Relaxed),
            asked,
            "there is an index"
        );
    }
}

#[test]
fn vectors_that_were_read_ahead_are_not_used_when_there_are_newer_ones() {
    let (home, tools) = (tempfile::tempdir().unwrap(), documents());
    let other = build(Some(home.path()), &tools).with_embedder(Concepts::new());
    embed(&other, &tools[..2]);
    let search = Search::new(Some(home.path().to_owned())).with_embedder(Concepts::new());
    search.prepare("need an umbrella");
    embed(&other, &tools);
    search.vectors_changed();
    assert!(search.open(&fingerprint(&tools)).unwrap());
    assert_eq!(find(&search, "need an umbrella")[0], "weather/get-forecast");
}

#[test]
fn tools_without_a_vector_are_found_by_their_words() {
    let tools = documents();
    let search = build(None, &tools).with_embedder(Concepts::new());
    embed(&search, &tools[..2]);
    assert_eq!(find(&search, "weather forecast")[0], "weather/get-forecast");
    let all: std::collections::HashSet<_> = tools
        .iter()
        .map(|d| VectorKey::of(&d.server, d.hash))
        .collect();
    assert_eq!(search.without_vector(&all).len(), tools.len() - 2);
}

#[test]
fn an_embedder_that_fails_costs_nothing_but_meaning() {
    let tools = documents();
    let concepts = Concepts::new();
    let search = build(None, &tools).with_embedder(concepts.clone());
    embed(&search, &tools);
    concepts
        .fails
        .store(true, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(find(&search, "weather forecast")[0], "weather/get-forecast");
    assert!(find(&search, "umbrella").is_empty());
    let embedding = search.begin_embedding().unwrap();
    assert!(embedding.embed(&tools).is_err());
}

#[test]
fn searches_share_an_index_but_not_each_others_way_of_searching() {
    let (home, tools) = (tempfile::tempdir().unwrap(), documents());
    let search = build(Some(home.path()), &tools).with_embedder(Concepts::new());
    embed(&search, &tools);
    let by_words = search.another();
    by_words.set_semantic(false);
    assert!(by_words.open(&fingerprint(&tools)).unwrap());
    let indexes = [&search, &by_words].map(|search| search.current().unwrap());
    assert!(Arc::ptr_eq(&indexes[0], &indexes[1]));
    assert_eq!(find(&search, "umbrella")[0], "weather/get-forecast");
    assert!(find(&by_words, "umbrella").is_empty());
    assert_eq!(find(&search, "umbrella")[0], "weather/get-forecast");
    // Another set of tools is another index, and the first one stays.
    let fewer = &tools[1..];
    by_words.rebuild(&fingerprint(fewer), fewer).unwrap();
    assert!(!Arc::ptr_eq(
        &search.current().unwrap(),
        &by_words.current().unwrap()
    ));
    // A damaged index is removed for both, once.
    search.set_aside(&indexes[0], &Error::Damaged);
    assert!(!by_words.open(&fingerprint(&tools)).unwrap());
}

#[test]
fn search_by_meaning_can_be_switched_off() {
    let tools = documents();
    let search = build(None, &tools).with_embedder(Concepts::new());
    embed(&search, &tools);
    assert_eq!(find(&search, "umbrella")[0], "weather/get-forecast");
    assert!(search.set_semantic(false) && !search.set_semantic(false));
    assert!(
        find(&search, "umbrella").is_empty(),
        "not even from the cache"
    );
    assert!(search.begin_embedding().is_none() && !search.is_semantic());
    search.set_semantic(true);
    assert_eq!(find(&search, "umbrella")[0], "weather/get-forecast");
}

#[test]
fn an_explanation_adds_up() {
    let tools = documents();
    let search = build(None, &tools).with_embedder(Concepts::new());
    embed(&search, &tools);
    let request = Request {
        query: "github: defect in a repositry",
        limit: 5,
        server: None,
        without: &[],
    };
    let explanation = search.explain(&request).unwrap();
    assert_eq!(
        explanation.repairs,
        [("repositry".to_owned(), "repository".to_owned())]
    );
    assert!(explanation.is_by_meaning);
    let found = search.search(&request).unwrap();
    assert_eq!(explanation.hits.len(), found.len());
    for (explained, hit) in explanation.hits.iter().zip(found.iter()) {
        assert_eq!(explained.hit, *hit);
        let fields: f32 = explained.fields.iter().map(|(_, score)| score).sum();
        assert!(
            (fields - explained.words).abs() < 1e-4,
            "{fields} is not {}",
            explained.words
        );
        assert!((explained.fused * explained.server - hit.score).abs() < 1e-4);
    }
    let first = &explanation.hits[0];
    assert_eq!(
        (first.rank_by_meaning, first.server > 1.0, first.is_named),
        (Some(1), true, false)
    );
}

fn change(file: &Path, how: fn(&mut Vec<u8>)) {
    let mut bytes = fs::read(file).unwrap();
    how(&mut bytes);
    fs::remove_file(file).unwrap();
    fs::write(file, bytes).unwrap();
}

#[test]
fn a_cache_that_cannot_be_written_is_done_without() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    fs::write(&file, "").unwrap();
    let search = build(Some(&file), &documents());
    assert_eq!(find(&search, "read_file")[0], "files/read_file");
}
