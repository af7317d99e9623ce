//! Ten tasks of several calls with real servers: the tokens and round trips of single calls, of `calls` with `select`, and of a script. All
//! three give the same answer. `docs/scripts.md` has the table.
//!
//! A round trip is a request to mcpzip. The tokens are those of its arguments, which the model writes, and of its answer, which it reads, each counted
//! once. How the model sums up what it has read is left to the test, which makes no mistakes.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tiktoken_rs::CoreBPE;

use super::servers::Entry;
use super::{announce, peers, table};
use crate::support::{Client, Setup};

const ORDERS: usize = 20;
const PAGES: usize = 8;
const COMMITS: usize = 12;
const ZONES: [&str; 6] = [
    "Asia/Tokyo",
    "America/New_York",
    "Africa/Cairo",
    "Asia/Kolkata",
    "Europe/London",
    "Australia/Sydney",
];

/// An agent without a model: it counts what one would write and read.
struct Agent<'a> {
    client: Client,
    o200k: &'a CoreBPE,
    root: String,
    trips: usize,
    tokens: usize,
}

impl Agent<'_> {
    fn ask(&mut self, arguments: &Value) -> Vec<String> {
        let arguments = arguments.to_string();
        let answer = self.client.call("execute_tool", &arguments);
        let content = answer.value()["content"].clone();
        let texts: Vec<String> = content
            .as_array()
            .unwrap()
            .iter()
            .map(|block| block["text"].as_str().unwrap_or_default().to_owned())
            .collect();
        assert!(!answer.is_tool_error(), "{arguments}: {texts:?}");
        self.trips += 1;
        self.tokens += self.o200k.encode_ordinary(&arguments).len();
        let read: usize = texts
            .iter()
            .map(|text| self.o200k.encode_ordinary(text).len())
            .sum();
        self.tokens += read;
        // A part of a result is followed by a line that says so.
        let whole = |text: String| text.split("\n… of ").next().unwrap_or_default().to_owned();
        texts.into_iter().map(whole).collect()
    }

    /// A single call.
    fn call(&mut self, name: &str, arguments: Value) -> String {
        self.ask(&json!({ "name": name, "arguments": arguments }))
            .concat()
    }

    /// A single call with a filter.
    fn select(&mut self, name: &str, arguments: Value, select: &str) -> String {
        self.ask(&json!({ "name": name, "arguments": arguments, "select": select }))
            .concat()
    }

    /// Calls side by side, with the same filter.
    fn calls(&mut self, name: &str, arguments: Vec<Value>, select: &str) -> Vec<String> {
        let calls: Vec<Value> = arguments
            .into_iter()
            .map(|arguments| json!({ "name": name, "arguments": arguments, "select": select }))
            .collect();
        let count = calls.len();
        let texts = self.ask(&json!({ "calls": calls }));
        // The text before each answer says whose it is.
        let is_head =
            |text: &&String| text.starts_with('[') && text.contains("] ") && text.contains(name);
        let answers: Vec<String> = texts
            .iter()
            .filter(|text| !is_head(text))
            .cloned()
            .collect();
        assert_eq!(answers.len(), count, "{texts:?}");
        answers
    }

    fn script(&mut self, code: &str) -> String {
        let code = code.replace("ROOT", &self.root);
        self.call("mcpzip__run", json!({ "code": code }))
    }

    fn path(&self, name: &str) -> Value {
        json!({ "path": format!("{}/data/{name}", self.root) })
    }

    fn repository(&self, more: Value) -> Value {
        let mut arguments = json!({ "repo_path": format!("{}/repository", self.root) });
        arguments
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        arguments
    }

    fn order_paths(&self) -> Vec<Value> {
        (1..=ORDERS)
            .map(|number| self.path(&order_file(number)))
            .collect()
    }

    /// All orders, each read by a call.
    fn orders(&mut self) -> Vec<Value> {
        let list = self.path("orders");
        self.call("files__list_directory", list);
        let paths = self.order_paths();
        paths
            .into_iter()
            .map(|path| parsed(&self.call(READ, path)))
            .collect()
    }

    /// A part of each order, read side by side.
    fn of_orders(&mut self, part: &str) -> Vec<Value> {
        let list = self.path("orders");
        self.select("files__list_directory", list, ".content | lines | length");
        let paths = self.order_paths();
        let answers = self.calls(READ, paths, &format!(".content | fromjson | {part}"));
        answers.iter().map(|answer| parsed(answer)).collect()
    }
}

const READ: &str = "files__read_text_file";

#[track_caller]
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| panic!("no JSON: {text}"))
}

fn order_file(number: usize) -> String {
    format!("orders/order-{number:02}.json")
}

fn order(number: usize) -> Value {
    let state = if number.is_multiple_of(3) {
        "open"
    } else {
        "paid"
    };
    json!({ "id": number, "customer": format!("c{}", number % 5), "total": number * 37 % 100, "state": state,
        "note": "Delivered to the back door, as agreed on the phone; the customer was friendly. ".repeat(6) })
}

const CUSTOMERS: [&str; 5] = ["Ada", "Bela", "Cleo", "Dora", "Egon"];

/// A task: its name, its answer, and the three ways to it.
struct Task {
    name: &'static str,
    answer: Value,
    single: fn(&mut Agent<'_>) -> Value,
    batched: fn(&mut Agent<'_>) -> Value,
    script: &'static str,
}

fn sum(values: &[Value]) -> Value {
    json!(
        values
            .iter()
            .map(|value| value.as_u64().unwrap())
            .sum::<u64>()
    )
}

/// The customers of these orders, by name.
fn open_customers(orders: &[Value], customers: &Value) -> Value {
    let mut names: Vec<&str> = orders
        .iter()
        .filter(|order| order["state"] == "open")
        .map(|order| {
            let all = customers.as_array().unwrap();
            all.iter()
                .find(|one| one["id"] == order["customer"])
                .unwrap()["name"]
                .as_str()
                .unwrap()
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    json!(names)
}

fn entities(ids: &[u64]) -> Value {
    let all = ids.iter().map(|id| json!({ "name": format!("order {id}"), "entityType": "order", "observations": ["large"] }));
    json!({ "entities": all.collect::<Vec<_>>() })
}

fn large(orders: &[Value]) -> Vec<u64> {
    let large = orders
        .iter()
        .filter(|order| order["total"].as_u64().unwrap() > 80);
    large.map(|order| order["id"].as_u64().unwrap()).collect()
}

fn log_lines() -> Vec<String> {
    let line = |number: usize| {
        let level = if number.is_multiple_of(97) {
            "ERROR"
        } else {
            "INFO"
        };
        let part = ["web", "db", "queue"][number % 3];
        format!(
            "2026-11-26T10:{:02}:{:02} {level} {part} request {number} took {} ms",
            number / 60 % 60,
            number % 60,
            number * 7 % 90
        )
    };
    (0..1500).map(line).collect()
}

/// The number of lines with an error, by part.
fn errors<'l>(lines: impl Iterator<Item = &'l str>) -> Value {
    let mut counts = json!({});
    for line in lines.filter(|line| line.contains(" ERROR ")) {
        let part = line.split(' ').nth(2).unwrap();
        counts[part] = json!(counts[part].as_u64().unwrap_or(0) + 1);
    }
    counts
}

fn authors<'t>(log: impl Iterator<Item = &'t str>) -> Value {
    let mut counts = json!({});
    for line in log {
        let name = CUSTOMERS
            .iter()
            .find(|name| line.contains(*name))
            .unwrap_or_else(|| panic!("{line}"));
        counts[*name] = json!(counts[*name].as_u64().unwrap_or(0) + 1);
    }
    counts
}

fn author_lines(log: &str) -> impl Iterator<Item = &str> {
    log.lines()
        .filter(|line| line.trim_start().starts_with("Author:"))
}

fn changed(text: &str) -> Option<String> {
    let line = text.lines().find_map(|line| line.strip_prefix("+++ b/"));
    line.map(str::to_owned)
}

fn tasks() -> Vec<Task> {
    let orders: Vec<Value> = (1..=ORDERS).map(order).collect();
    let totals: Vec<Value> = orders.iter().map(|order| order["total"].clone()).collect();
    let customers: Vec<Value> = (0..5)
        .map(|n| json!({ "id": format!("c{n}"), "name": CUSTOMERS[n] }))
        .collect();
    let log = log_lines();
    let by_author = json!({ "Ada": COMMITS / 3, "Bela": COMMITS / 3, "Cleo": COMMITS / 3 });
    vec![
        Task {
            name: "fan out: add up the totals of twenty orders",
            answer: sum(&totals),
            single: |agent| {
                let orders = agent.orders();
                sum(&orders
                    .iter()
                    .map(|order| order["total"].clone())
                    .collect::<Vec<_>>())
            },
            batched: |agent| sum(&agent.of_orders(".total")),
            script: "const list = await tools.files.list_directory({ path: 'ROOT/data/orders' });\n\
                const names = list.content.split('\\n').map((line) => line.replace('[FILE] ', ''));\n\
                const all_orders = await all(names.map((name) => tools.files.read_text_file({ path: 'ROOT/data/orders/' + name })));\n\
                return all_orders.reduce((sum, { content }) => sum + JSON.parse(content).total, 0);",
        },
        Task {
            name: "join: the customers with an open order, by name",
            answer: open_customers(&orders, &json!(customers)),
            single: |agent| {
                let orders = agent.orders();
                let path = agent.path("customers.json");
                let customers = parsed(&agent.call(READ, path));
                open_customers(&orders, &customers)
            },
            batched: |agent| {
                let orders = agent.of_orders("{customer, state}");
                let path = agent.path("customers.json");
                let customers =
                    parsed(&agent.select(READ, path, ".content | fromjson | map({id, name})"));
                open_customers(&orders, &customers)
            },
            script: "const read = async (name) => JSON.parse((await tools.files.read_text_file({ path: 'ROOT/data/' + name })).content);\n\
                const list = await tools.files.list_directory({ path: 'ROOT/data/orders' });\n\
                const orders = await all(list.content.split('\\n').map((line) => read('orders/' + line.replace('[FILE] ', ''))));\n\
                const customers = await read('customers.json');\n\
                const name = (id) => customers.find((one) => one.id === id).name;\n\
                return [...new Set(orders.filter(({ state }) => state === 'open').map(({ customer }) => name(customer)))].sort();",
        },
        Task {
            name: "filter and act: note the large orders in the graph",
            answer: json!(large(&orders)),
            single: |agent| {
                let large = large(&agent.orders());
                for id in &large {
                    agent.call("memory__create_entities", entities(&[*id]));
                }
                json!(large)
            },
            batched: |agent| {
                let large = large(&agent.of_orders("{id, total}"));
                agent.select("memory__create_entities", entities(&large), "length");
                json!(large)
            },
            script: "const list = await tools.files.list_directory({ path: 'ROOT/data/orders' });\n\
                const orders = await all(list.content.split('\\n').map(async (line) => JSON.parse((await tools.files.read_text_file({ path: 'ROOT/data/orders/' + line.replace('[FILE] ', '') })).content)));\n\
                const large = orders.filter(({ total }) => total > 80).map(({ id }) => id);\n\
                await tools.memory.create_entities({ entities: large.map((id) => ({ name: `order ${id}`, entityType: 'order', observations: ['large'] })) });\n\
                return large;",
        },
        Task {
            name: "count: the errors in a log, by part",
            answer: errors(log.iter().map(String::as_str)),
            single: |agent| {
                let path = agent.path("app.log");
                errors(agent.call(READ, path).lines())
            },
            batched: |agent| {
                let path = agent.path("app.log");
                errors(
                    agent
                        .select(READ, path, r#".content | grep(" ERROR ")"#)
                        .lines(),
                )
            },
            script: "const { content } = await tools.files.read_text_file({ path: 'ROOT/data/app.log' });\n\
                const counts = {};\n\
                for (const line of content.split('\\n')) if (line.includes(' ERROR ')) { const part = line.split(' ')[2]; counts[part] = (counts[part] ?? 0) + 1; }\n\
                return counts;",
        },
        Task {
            name: "paginate: add up the items of all pages to the end",
            answer: json!((1..=PAGES).map(|page| page * 3).sum::<usize>()),
            single: |agent| {
                let (mut next, mut sum) = (Some(1), 0);
                while let Some(page) = next {
                    let path = agent.path(&format!("pages/{page}.json"));
                    let read = parsed(&agent.call(READ, path));
                    sum += read["items"]
                        .as_array()
                        .unwrap()
                        .iter()
                        .map(|item| item["size"].as_u64().unwrap())
                        .sum::<u64>();
                    next = read["next"].as_u64();
                }
                json!(sum)
            },
            batched: |agent| {
                let (mut next, mut sum) = (Some(1), 0);
                while let Some(page) = next {
                    let path = agent.path(&format!("pages/{page}.json"));
                    let read = parsed(&agent.select(
                        READ,
                        path,
                        ".content | fromjson | [(.items | map(.size) | add), .next]",
                    ));
                    sum += read[0].as_u64().unwrap();
                    next = read[1].as_u64();
                }
                json!(sum)
            },
            script: "let sum = 0;\n\
                for (let next = 1; next; ) {\n\
                  const page = JSON.parse((await tools.files.read_text_file({ path: `ROOT/data/pages/${next}.json` })).content);\n\
                  for (const { size } of page.items) sum += size;\n\
                  next = page.next;\n\
                }\n\
                return sum;",
        },
        Task {
            name: "group: the commits of a repository, by author",
            answer: by_author,
            single: |agent| {
                let arguments = agent.repository(json!({ "max_count": 50 }));
                authors(author_lines(&agent.call("git__git_log", arguments)))
            },
            batched: |agent| {
                let arguments = agent.repository(json!({ "max_count": 50 }));
                authors(author_lines(&agent.select(
                    "git__git_log",
                    arguments,
                    r#"grep("Author:")"#,
                )))
            },
            script: "const log = await tools.git.git_log({ repo_path: 'ROOT/repository', max_count: 50 });\n\
                const counts = {};\n\
                for (const [, name] of log.matchAll(/^Author:\\W*(\\w+)/gm)) counts[name] = (counts[name] ?? 0) + 1;\n\
                return counts;",
        },
        Task {
            name: "join of two servers: the people in the graph who made no commit",
            answer: json!(["Dora", "Egon"]),
            single: |agent| {
                let graph = parsed(&agent.call("memory__read_graph", json!({})));
                let arguments = agent.repository(json!({ "max_count": 50 }));
                let log = agent.call("git__git_log", arguments);
                without_commit(&graph["entities"], &log)
            },
            batched: |agent| {
                let people =
                    r#"[.entities[] | select(.entityType == "person") | {name, entityType}]"#;
                let people = parsed(&agent.select("memory__read_graph", json!({}), people));
                let arguments = agent.repository(json!({ "max_count": 50 }));
                let log = agent.select("git__git_log", arguments, r#"grep("Author:")"#);
                without_commit(&people, &log)
            },
            script: "const [graph, log] = await all([tools.memory.read_graph({}), tools.git.git_log({ repo_path: 'ROOT/repository', max_count: 50 })]);\n\
                return graph.entities.filter(({ entityType, name }) => entityType === 'person' && !log.includes(name)).map(({ name }) => name);",
        },
        Task {
            name: "compare: the largest of ten files",
            answer: json!("part-7.txt"),
            single: |agent| {
                let sizes: Vec<(u64, usize)> = (0..10)
                    .map(|part| {
                        let path = agent.path(&format!("parts/part-{part}.txt"));
                        let info = agent.call("files__get_file_info", path);
                        let size = info.lines().find_map(|line| line.strip_prefix("size: "));
                        (size.unwrap().parse().unwrap(), part)
                    })
                    .collect();
                json!(format!("part-{}.txt", sizes.iter().max().unwrap().1))
            },
            batched: |agent| {
                let paths = (0..10)
                    .map(|part| agent.path(&format!("parts/part-{part}.txt")))
                    .collect();
                let sizes = agent.calls(
                    "files__get_file_info",
                    paths,
                    r#".content | capture("size: (?<n>[0-9]+)").n | tonumber"#,
                );
                let sizes = sizes
                    .iter()
                    .map(|size| size.parse::<u64>().unwrap())
                    .enumerate();
                json!(format!(
                    "part-{}.txt",
                    sizes.max_by_key(|(_, size)| *size).unwrap().0
                ))
            },
            script: "const names = [...Array(10).keys()].map((part) => `part-${part}.txt`);\n\
                const infos = await all(names.map((name) => tools.files.get_file_info({ path: 'ROOT/data/parts/' + name })));\n\
                const sizes = infos.map(({ content }) => Number(/size: (\\d+)/.exec(content)[1]));\n\
                return names[sizes.indexOf(Math.max(...sizes))];",
        },
        Task {
            name: "map: noon in Berlin in six other zones",
            answer: json!(6),
            single: |agent| {
                let texts: Vec<String> = ZONES
                    .iter()
                    .map(|zone| agent.call("time__convert_time", at_noon(zone)))
                    .collect();
                json!(
                    texts
                        .iter()
                        .filter(|text| parsed(text)["target"]["datetime"].is_string())
                        .count()
                )
            },
            batched: |agent| {
                let all = ZONES.iter().map(|zone| at_noon(zone)).collect();
                let times = agent.calls("time__convert_time", all, ".target.datetime");
                json!(times.iter().filter(|time| time.contains('T')).count())
            },
            script: "const zones = ['Asia/Tokyo', 'America/New_York', 'Africa/Cairo', 'Asia/Kolkata', 'Europe/London', 'Australia/Sydney'];\n\
                const times = await all(zones.map((target_timezone) => tools.time.convert_time({ source_timezone: 'Europe/Berlin', time: '12:00', target_timezone })));\n\
                return times.filter(({ target }) => target.datetime).length;",
        },
        Task {
            name: "follow: the file that each of the last five commits changed",
            answer: json!(
                (COMMITS - 5..COMMITS)
                    .rev()
                    .map(|number| format!("file-{}.txt", number % 4))
                    .collect::<Vec<_>>()
            ),
            single: |agent| {
                let names: Vec<String> = (0..5)
                    .map(|back| {
                        let arguments =
                            agent.repository(json!({ "revision": format!("HEAD~{back}") }));
                        changed(&agent.call("git__git_show", arguments)).unwrap()
                    })
                    .collect();
                json!(names)
            },
            batched: |agent| {
                let all = (0..5)
                    .map(|back| agent.repository(json!({ "revision": format!("HEAD~{back}") })))
                    .collect();
                let lines = agent.calls("git__git_show", all, r#"grep("^[+]{3} b/")"#);
                json!(
                    lines
                        .iter()
                        .map(|line| changed(line).unwrap())
                        .collect::<Vec<_>>()
                )
            },
            script: "const shown = await all([0, 1, 2, 3, 4].map((back) => tools.git.git_show({ repo_path: 'ROOT/repository', revision: `HEAD~${back}` })));\n\
                return shown.map((text) => /\\+\\+\\+ b\\/(.*)/.exec(text)[1]);",
        },
    ]
}

fn at_noon(zone: &str) -> Value {
    json!({ "source_timezone": "Europe/Berlin", "time": "12:00", "target_timezone": zone })
}

fn without_commit(people: &Value, log: &str) -> Value {
    let people = people
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["entityType"] == "person");
    let names = people.map(|one| one["name"].as_str().unwrap());
    json!(
        names
            .filter(|name| !log.contains(*name))
            .collect::<Vec<_>>()
    )
}

/// The files, repository and graph that the servers work on.
fn make(root: &Path) {
    let write = |name: &str, text: &str| {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    for number in 1..=ORDERS {
        write(
            &format!("data/{}", order_file(number)),
            &order(number).to_string(),
        );
    }
    let customers = CUSTOMERS.iter().enumerate().map(|(n, name)| {
        json!({ "id": format!("c{n}"), "name": name, "address": "Some street 1, a town that has a long name", "since": 2020 + n })
    });
    write(
        "data/customers.json",
        &json!(customers.collect::<Vec<_>>()).to_string(),
    );
    write("data/app.log", &log_lines().join("\n"));
    for page in 1..=PAGES {
        let item = |size: usize| json!({ "size": size, "title": "An item with a title of some length, as they have", "tags": ["one", "two"] });
        let mut content = json!({ "items": [item(page), item(page), item(page)] });
        content["next"] = if page == PAGES {
            Value::Null
        } else {
            json!(page + 1)
        };
        write(&format!("data/pages/{page}.json"), &content.to_string());
    }
    for part in 0..10 {
        let size = if part == 7 { 999 } else { part * 50 };
        write(&format!("data/parts/part-{part}.txt"), &"x".repeat(size));
    }
    let people = CUSTOMERS.map(|name| {
        json!({ "type": "entity", "name": name, "entityType": "person", "observations": ["works in the shop since it was opened", "knows all customers by name"] }).to_string()
    });
    write("memory.jsonl", &people.join("\n"));
    let repository = root.join("repository");
    std::fs::create_dir_all(&repository).unwrap();
    let git = |arguments: &[&str], author: &str| {
        let own = [
            format!("user.name={author}"),
            format!("user.email={author}@example.invalid"),
            "commit.gpgsign=false".to_owned(),
        ];
        let mut command = Command::new("git");
        for setting in &own {
            command.args(["-c", setting]);
        }
        command
            .args(arguments)
            .current_dir(&repository)
            .stdout(Stdio::null());
        assert!(command.status().unwrap().success(), "{command:?}");
    };
    git(&["init", "--quiet", "--initial-branch=main"], "Ada");
    for number in 0..COMMITS {
        let lines: String = (0..30)
            .map(|line| format!("line {line} as of change {number}\n"))
            .collect();
        write(&format!("repository/file-{}.txt", number % 4), &lines);
        git(&["add", "."], "Ada");
        git(
            &[
                "commit",
                "--quiet",
                &format!("--message=Change number {number}"),
            ],
            CUSTOMERS[number % 3],
        );
    }
}

fn configured(peers: &super::Peers, root: &Path) -> Setup {
    let python = |program| peers.python(2, program);
    let data = root.join("data").display().to_string();
    let repository = root.join("repository").display().to_string();
    let memory = root.join("memory.jsonl").display().to_string();
    let files = Entry::new(peers.npm("mcp-server-filesystem"), &[&data]);
    let memory =
        Entry::new(peers.npm("mcp-server-memory"), &[]).variable("MEMORY_FILE_PATH", memory);
    let git = Entry::new(python("mcp-server-git"), &["--repository", &repository]);
    let time = Entry::new(python("mcp-server-time"), &["--local-timezone", "UTC"]);
    Setup::new()
        .entry("files", &files.to_json())
        .entry("memory", &memory.to_json())
        .entry("git", &git.to_json())
        .entry("time", &time.to_json())
        .setting("scripts", json!({ "allow": "all" }))
        // Single calls read what the server says, whole.
        .setting("results", json!({ "budget": 0, "duplicates": "keep" }))
}

#[test]
fn a_script_gives_the_same_answers_for_fewer_tokens_and_round_trips() {
    let Some(peers) = peers() else { return };
    let o200k = tiktoken_rs::o200k_base().unwrap();
    let mut rows = vec![
        ["task", "single calls", "`calls` and `select`", "script"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let mut sums = [(0, 0); 3];
    for task in tasks() {
        let mut row = vec![task.name.to_owned()];
        for (way, sum) in sums.iter_mut().enumerate() {
            let scratch = tempfile::tempdir().unwrap();
            make(scratch.path());
            let setup = configured(peers, scratch.path());
            let mut client = setup.connect();
            client.call("proxy_refresh", "{}").text();
            let root = scratch.path().display().to_string();
            let mut agent = Agent {
                client,
                o200k: &o200k,
                root,
                trips: 0,
                tokens: 0,
            };
            let answer = match way {
                0 => (task.single)(&mut agent),
                1 => (task.batched)(&mut agent),
                _ => parsed_or_text(&agent.script(task.script)),
            };
            assert_eq!(answer, task.answer, "{} ({way})", task.name);
            row.push(format!("{} in {}", agent.tokens, agent.trips));
            sum.0 += agent.tokens;
            sum.1 += agent.trips;
            agent.client.finish();
        }
        rows.push(row);
    }
    let mut total = vec!["all".to_owned()];
    total.extend(sums.map(|(tokens, trips)| format!("{tokens} in {trips}")));
    rows.push(total);
    announce(&format!("Tokens and round trips\n{}", table(&rows)));
    let [single, batched, script] = sums;
    assert!(script.0 * 10 < single.0 && script.1 == 10, "{sums:?}");
    assert!(batched.0 < single.0 && script.0 < batched.0, "{sums:?}");
}

fn parsed_or_text(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}
