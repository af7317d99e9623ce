//! Each layer of the program uses only lower ones, and the siblings of one layer do not know each other.

use std::path::Path;
use std::sync::LazyLock;

/// The modules of `src/` in the order of the table in `ARCHITECTURE.md`, lowest first. Modules of one group are apart from each other.
static LAYERS: LazyLock<Vec<Vec<String>>> = LazyLock::new(|| {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let rows = text.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.split(" |");
        let number: usize = cells.next()?.parse().ok()?;
        Some((number, cells.collect::<Vec<_>>()))
    });
    let mut layers = Vec::new();
    for (expected, (number, cells)) in rows.collect::<Vec<_>>().into_iter().rev().enumerate() {
        assert_eq!(number, expected, "the layers of ARCHITECTURE.md have gaps");
        assert!(cells.len() >= 2, "layer {number} has no cells");
        // What there is room for may have come by now.
        let (there, planned) = (cells[0], quoted(cells[1]));
        let mut groups: Vec<Vec<String>> = there.split(';').map(quoted).collect();
        for module in groups.iter().flatten() {
            assert!(exists(module), "layer {number} has no module `{module}`");
        }
        groups[0].extend(planned);
        layers.extend(groups);
    }
    layers
});

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn exists(module: &str) -> bool {
    let source = root().join("src");
    source.join(module).is_dir() || source.join(format!("{module}.rs")).is_file()
}

/// The words of a text in backticks.
fn quoted(text: &str) -> Vec<String> {
    let words = text.split('`').skip(1).step_by(2);
    words.map(str::to_owned).collect()
}

fn layer(module: &str) -> usize {
    let has = |modules: &Vec<String>| modules.iter().any(|known| known == module);
    let layer = LAYERS.iter().position(has);
    layer.unwrap_or_else(|| panic!("module `{module}` has no layer; ARCHITECTURE.md lists them"))
}

/// Says what is wrong with `module` using `used`.
fn fault(module: &str, used: &str) -> Option<String> {
    let (own, other) = (layer(module), layer(used));
    if module == used {
        return None;
    }
    let direction = if other > own { "up" } else { "sideways" };
    (other >= own).then(|| {
        format!("`{module}` (layer {own}) uses `{used}` (layer {other}), which is {direction}")
    })
}

/// The crate's modules that a source text names after `crate::`, in `use` lines and elsewhere.
fn used(source: &str) -> Vec<String> {
    let code = source
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n");
    code.match_indices("crate::")
        .filter(|(at, _)| {
            !code[..*at].ends_with(|before: char| {
                before.is_alphanumeric() || before == '_' || before == '$'
            })
        })
        .flat_map(|(at, found)| {
            let rest = &code[at + found.len()..];
            let names = match rest.strip_prefix('{') {
                Some(group) => top_level(group),
                None => vec![rest],
            };
            names
                .into_iter()
                .map(first_word)
                .filter(|name| !name.is_empty())
                .collect::<Vec<_>>()
        })
        .collect()
}

/// The items of a `{…}` group, up to its end.
fn top_level(group: &str) -> Vec<&str> {
    let (mut depth, mut start, mut items) = (0, 0, Vec::new());
    for (at, character) in group.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => {
                items.push(group[start..at].trim());
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                items.push(group[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    items
}

fn first_word(path: &str) -> String {
    path.chars()
        .take_while(|character| character.is_alphanumeric() || *character == '_')
        .collect()
}

fn check_directory(directory: &Path, module: Option<&str>, faults: &mut Vec<String>) -> usize {
    let mut files = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let module = module.unwrap_or(&name);
        if path.is_dir() {
            files += check_directory(&path, Some(module), faults);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files += 1;
            let source = std::fs::read_to_string(&path).unwrap();
            // Constants and types of the crate's root would be in `lib.rs`, which has none.
            let wrong = used(&source)
                .into_iter()
                .filter_map(|used| fault(module, &used));
            faults.extend(wrong.map(|fault| format!("{}: {fault}", path.display())));
        }
    }
    files
}

#[test]
fn each_layer_uses_only_lower_ones() {
    let mut faults = Vec::new();
    let files = check_directory(&root().join("src"), None, &mut faults);
    assert!(files > 50, "only {files} files were found");
    faults.dedup();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Files below `directory` that hold `text` outside of comments.
fn holding(directory: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(holding(&path, text));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = std::fs::read_to_string(&path).unwrap();
            let code = |line: &str| !line.trim_start().starts_with("//") && line.contains(text);
            if source.lines().any(code) {
                found.push(path.file_name().unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found
}

#[test]
fn threads_outside_the_pool_start_in_one_place() {
    let source = root().join("src");
    assert!(holding(&source, "thread::spawn(").is_empty());
    let mut builders = holding(&source, "thread::Builder");
    builders.sort();
    // The other one is scoped: its thread ends where the search that needs it does.
    assert_eq!(builders, ["meaning.rs", "shutdown.rs"]);
}

/// A process may serve sessions that other processes were started for: their directory and variables come as a `SessionEnv`.
#[test]
fn only_the_edge_asks_the_process_for_its_directory_and_variables() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let questions = [
        "env::var(",
        "env::var_os(",
        "env::vars(",
        "env::vars_os(",
        "env::current_dir(",
        "env::set_current_dir(",
        "path::absolute(",
        "Environment::process(",
        "SessionEnv::here(",
        // The HTTP client and its parts ask the process, unless they are told what to use.
        "Matcher::from_env(",
        "load_native_certs(",
    ];
    let mut found = Vec::new();
    files_asking(&source, &questions, &mut found);
    let mut found: Vec<String> = found
        .iter()
        .map(|path| path.strip_prefix(&source).unwrap().display().to_string())
        .map(|path| path.replace('\\', "/"))
        .filter(|path| !path.starts_with("cli/"))
        .collect();
    found.sort();
    let expected = [
        // Makes the variables of a process a value; `cli` calls it.
        "config/env.rs",
        // Makes paths of the command line absolute, before a session begins.
        "config/paths.rs",
        // Makes the directory of a process a value; `cli` calls it.
        "config/session_env.rs",
    ];
    assert_eq!(found, expected);
}

/// The files below `directory` whose code, tests aside, holds one of `questions`.
fn files_asking(directory: &Path, questions: &[&str], found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_asking(&path, questions, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = std::fs::read_to_string(&path).unwrap();
            let code = source.split("#[cfg(test)]\nmod tests").next().unwrap();
            let asks = |line: &str| {
                !line.trim_start().starts_with("//")
                    && questions.iter().any(|question| line.contains(question))
            };
            if code.lines().any(asks) {
                found.push(path);
            }
        }
    }
}

/// What works for a client gets its view with the request.
#[test]
fn only_wiring_and_what_belongs_to_no_client_sees_the_servers_of_all_projects() {
    let proxy = root().join("src/proxy");
    let mut users = holding(&proxy, "unscoped()");
    users.sort();
    let expected = [
        // What is listed for all clients.
        "configuration.rs",
        // The reason of a failed listing is masked with the secrets of all servers.
        "listing.rs",
        // Changes that are told to all clients, and what the user in person sees.
        "mod.rs",
        "mod.rs",
        "mod.rs",
        // Tools that are withheld from all clients.
        "pins.rs",
        // Resources that any client follows.
        "resources.rs",
        "status.rs",
        "subscriptions.rs",
        "view.rs",
    ];
    assert_eq!(users, expected);
}

#[test]
fn where_this_program_is_and_how_to_start_it_again_is_known_in_one_place() {
    let users = holding(&root().join("src"), "current_exe");
    assert_eq!(users, ["executable.rs"]);
}

#[test]
fn an_upward_or_sideways_arrow_is_found() {
    let source = "use crate::{mcp::{Frame, Line}, proxy};\n// use crate::cli;\nfn f() { crate::tool::g(); other_crate::x(); }";
    assert_eq!(used(source), ["mcp", "proxy", "tool"]);
    assert!(fault("catalog", "proxy").is_some_and(|fault| fault.contains("up")));
    assert!(fault("catalog", "search").is_some_and(|fault| fault.contains("sideways")));
    assert!(fault("config", "telemetry").is_some_and(|fault| fault.contains("up")));
    for (module, used) in [
        ("catalog", "catalog"),
        ("tool", "mcp"),
        ("proxy", "search"),
        ("cli", "app"),
    ] {
        assert_eq!(fault(module, used), None);
    }
}
