//! The 43 real calls of docs/answers.md, replayed: `select` gives the answer that the whole result has, in far fewer tokens.
//!
//! `tests/fixtures/answers.json.gz` has the results of the servers named there, in the order of `answer_tokens/calls.json`. The answer
//! that each filter has to give is computed here from the whole result, without the language of filters.

use std::collections::BTreeSet;
use std::io::Read as _;

use serde_json::{Map, Value, json};

use crate::support::script::result;
use crate::support::{Client, Server, Setup};

/// A call with its filter, as the measurement makes it, and its result.
struct Replayed {
    tool: String,
    select: Option<String>,
    result: Value,
}

fn calls() -> Vec<Replayed> {
    let root = env!("CARGO_MANIFEST_DIR");
    let read = |path: &str| std::fs::read(format!("{root}/{path}")).unwrap();
    let plan = read("crates/bench/examples/answer_tokens/calls.json");
    let plan: Value = serde_json::from_slice(&plan).unwrap();
    let packed = read("tests/fixtures/answers.json.gz");
    let mut text = String::new();
    let mut unpacked = flate2::read::GzDecoder::new(&packed[..]);
    unpacked.read_to_string(&mut text).unwrap();
    let results: Vec<Value> = serde_json::from_str(&text).unwrap();
    let planned = plan["calls"].as_array().unwrap();
    assert_eq!(planned.len(), results.len());
    let calls = planned.iter().zip(results).map(|(call, replayed)| {
        assert_eq!(call["tool"], replayed["tool"]);
        Replayed {
            tool: call["tool"].as_str().unwrap().to_owned(),
            select: call["select"].as_str().map(str::to_owned),
            result: replayed["result"].clone(),
        }
    });
    calls.collect()
}

impl Replayed {
    /// The text of the result.
    fn text(&self) -> String {
        let blocks = self.result["content"].as_array().into_iter().flatten();
        let texts = blocks.filter_map(|block| block["text"].as_str());
        texts.collect::<Vec<_>>().join("\n")
    }

    /// The text as JSON.
    fn data(&self) -> Value {
        serde_json::from_str(&self.text()).unwrap()
    }

    /// The lines of the text that begin in this way.
    fn lines_with(&self, is_meant: impl Fn(&str) -> bool) -> Value {
        let text = self.text();
        let lines: Vec<&str> = text.lines().filter(|line| is_meant(line)).collect();
        json!(lines.join("\n"))
    }

    /// What stands between two texts, each time.
    fn between(&self, before: &str, after: &str) -> Vec<String> {
        let text = self.text();
        let parts = text.split(before).skip(1);
        let found = parts.filter_map(|part| Some(part.split_once(after)?.0.to_owned()));
        found.collect()
    }

    /// The answer that its filter has to give.
    fn answer(&self) -> Value {
        let structured = &self.result["structuredContent"];
        let filter = self.select.as_deref().unwrap();
        let starts = |text: &str| {
            let text = text.to_owned();
            move |line: &str| line.to_lowercase().starts_with(&text)
        };
        match (&self.tool[..], filter) {
            ("everything__get-structured-content", _) => structured["temperature"].clone(),
            ("filesystem__list_directory_with_sizes", _) => {
                self.lines_with(|line| starts("total")(line) || starts("combined")(line))
            }
            ("filesystem__directory_tree", filter) if filter.contains("length") => {
                json!(files_in(&self.data()))
            }
            ("filesystem__directory_tree", _) => {
                let entries = self.data();
                let entries = entries.as_array().unwrap().iter();
                let directories = entries.filter(|entry| entry["type"] == "directory");
                directories.map(|entry| entry["name"].clone()).collect()
            }
            ("filesystem__read_text_file", filter) if filter.contains("dependencies") => {
                keys(&self.data()["dependencies"])
            }
            ("filesystem__read_text_file", filter) if filter.contains("email") => {
                let users = self.data();
                let users = users.as_array().unwrap().iter();
                let gone = users.filter(|user| user["active"] == false);
                gone.map(|user| user["email"].clone()).collect()
            }
            ("filesystem__read_text_file", filter) if filter.contains("length") => {
                let text = self.text();
                json!(text.lines().filter(|line| line.contains(" ERROR ")).count())
            }
            ("filesystem__read_text_file", _) => {
                self.lines_with(|line| line.to_lowercase().contains("error"))
            }
            ("filesystem__search_files", _) => json!(self.text().lines().count()),
            ("memory__read_graph", _) => {
                let relations = structured["relations"].as_array().unwrap().iter();
                let told = relations.map(|one| {
                    let of = |key: &str| one[key].as_str().unwrap();
                    format!("{} {} {}", of("from"), of("relationType"), of("to"))
                });
                json!(told.collect::<Vec<_>>())
            }
            ("memory__search_nodes", _) => each(&structured["entities"], "name"),
            ("memory__open_nodes", _) => structured["entities"][0]["observations"][1].clone(),
            ("git__git_log", _) => {
                let all = self.lines_with(starts("message"));
                let first: Vec<&str> = all.as_str().unwrap().lines().take(10).collect();
                json!(first.join("\n"))
            }
            ("git__git_show", _) => {
                self.lines_with(|line| line.starts_with("+++") || line.starts_with("@@"))
            }
            ("git__git_diff", _) => self.lines_with(starts("diff")),
            ("time__get_current_time", _) => self.data()["datetime"].clone(),
            ("time__convert_time", _) => self.data()["target"]["datetime"].clone(),
            ("fetch__fetch", filter) if filter.contains("scan") => json!(self.between("<h1>", "<")),
            ("fetch__fetch" | "n8n__tools_documentation", _) => {
                self.lines_with(|line| line.starts_with('#'))
            }
            ("sqlite__describe_table", _) => json!(self.between("'name': '", "'")),
            ("sqlite__read_query", filter) if filter.contains("customer") => {
                let customers: BTreeSet<String> =
                    self.between("'customer': '", "'").into_iter().collect();
                json!(customers)
            }
            ("sqlite__read_query", _) => {
                let amounts = self.between("'amount': ", ",");
                let amounts = amounts.iter().map(|amount| amount.parse::<f64>().unwrap());
                json!(amounts.sum::<f64>())
            }
            ("n8n__search_nodes", filter) if filter.contains("nodeType)") => {
                each(&self.data()["results"], "nodeType")
            }
            ("n8n__search_nodes", _) => {
                let first = &self.data()["results"][0];
                json!({ "nodeType": first["nodeType"], "description": first["description"] })
            }
            ("n8n__get_node", ".description") => self.data()["description"].clone(),
            ("n8n__get_node", filter) => {
                let data = self.data();
                let required = data.get("requiredProperties");
                match required.filter(|_| filter.contains("requiredProperties")) {
                    Some(required) => required.clone(),
                    None => keys(&data),
                }
            }
            ("n8n__search_templates", _) => each(&self.data()["items"], "name"),
            ("n8n__validate_node", _) => each(&self.data()["errors"], "message"),
            (tool, filter) => panic!("{tool} has no answer for {filter}"),
        }
    }
}

fn files_in(tree: &Value) -> usize {
    let entries = tree.as_array().into_iter().flatten();
    let count = |entry: &Value| usize::from(entry["type"] == "file") + files_in(&entry["children"]);
    entries.map(count).sum()
}

fn keys(object: &Value) -> Value {
    let sorted: BTreeSet<&String> = object.as_object().unwrap().keys().collect();
    json!(sorted)
}

fn each(items: &Value, key: &str) -> Value {
    let items = items.as_array().unwrap().iter();
    items.map(|item| item[key].clone()).collect()
}

/// A home with one server whose tools are the calls, by their numbers.
fn replaying(calls: &[Replayed]) -> Setup {
    let tools = calls.iter().enumerate();
    let server = tools.fold(Server::new(), |server, (number, call)| {
        server.tool(
            &format!("call_{number}"),
            [result(&call.result.to_string())],
        )
    });
    Setup::new().server("real", server)
}

fn call(client: &mut Client, number: usize, more: Map<String, Value>) -> Value {
    let mut arguments = json!({ "name": format!("real__call_{number}") });
    arguments.as_object_mut().unwrap().extend(more);
    let answer = client.call("execute_tool", &arguments.to_string()).value();
    assert_ne!(answer["isError"], true, "{answer:.500}");
    answer
}

/// What a model gets to read.
fn shown(answer: &Value) -> String {
    let blocks = answer["content"].as_array().into_iter().flatten();
    let texts = blocks.map(|block| match block["text"].as_str() {
        Some(text) => text.to_owned(),
        None => block.to_string(),
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// A selection as data: JSON, or the text itself.
fn as_data(selection: &str) -> Value {
    serde_json::from_str(selection).unwrap_or_else(|_| json!(selection))
}

/// Equal, but for the rounding of sums.
fn is_equal(one: &Value, other: &Value) -> bool {
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => (one - other).abs() < 1e-6 * one.abs().max(1.0),
        _ => one == other,
    }
}

#[test]
fn select_gives_the_same_answer_as_the_whole_result_in_a_fifth_of_its_tokens() {
    let o200k = tiktoken_rs::o200k_base().unwrap();
    let tokens = |text: &str| o200k.encode_ordinary(text).len();
    let calls = calls();
    assert_eq!(calls.len(), 43);
    let mut client = replaying(&calls).connect();
    let (mut whole, mut selected, mut filters) = (0, 0, 0);
    for (number, replayed) in calls.iter().enumerate() {
        let Some(filter) = &replayed.select else {
            // Without a filter it comes as the server gave it.
            let answer = call(&mut client, number, Map::new());
            assert_eq!(answer["content"], replayed.result["content"], "{number}");
            continue;
        };
        let select = Map::from_iter([("select".to_owned(), json!(filter))]);
        let text = shown(&call(&mut client, number, select));
        let (selection, _) = text.split_once("\n… of ").unwrap_or((&text, ""));
        let (got, expected) = (as_data(selection), replayed.answer());
        assert!(
            is_equal(&got, &expected),
            "{} {filter}: {got} is not {expected}",
            replayed.tool
        );
        filters += 1;
        whole += tokens(&shown(&replayed.result));
        selected += tokens(&text);
    }
    client.finish();
    assert_eq!(filters, 30);
    assert!(selected * 5 <= whole, "{selected} of {whole} tokens");
}

#[test]
fn the_compact_form_saves_three_of_ten_tokens_of_results_that_are_json() {
    let o200k = tiktoken_rs::o200k_base().unwrap();
    let tokens = |text: &str| o200k.encode_ordinary(text).len();
    let calls = calls();
    let compact = json!({ "form": "compact", "budget": 0 });
    let mut client = replaying(&calls).setting("results", compact).connect();
    let (mut plain, mut compact) = (0, 0);
    for (number, replayed) in calls.iter().enumerate() {
        let data = serde_json::from_str::<Value>(&replayed.text());
        if !data.is_ok_and(|data| data.is_object() || data.is_array()) {
            continue;
        }
        let answer = call(&mut client, number, Map::new());
        plain += tokens(&shown(&replayed.result));
        compact += tokens(&shown(&answer));
    }
    client.finish();
    assert!(compact * 10 <= plain * 7, "{compact} of {plain} tokens");
}
