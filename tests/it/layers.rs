//! Each layer of the program uses only lower ones, and the siblings of one layer do not know each other.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::LazyLock;

use crate::imports::{Module, imports, modules, modules_with_tests};

/// A group of modules that are apart from each other. Layer 0 has several, each of which uses those before it.
struct Group {
    layer: usize,
    /// The position of the group in its layer.
    position: usize,
    modules: Vec<String>,
}

/// The groups of the table in `ARCHITECTURE.md`, lowest first.
static GROUPS: LazyLock<Vec<Group>> = LazyLock::new(|| {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let rows = text.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.split(" |");
        let layer: usize = cells.next()?.parse().ok()?;
        Some((layer, cells.collect::<Vec<_>>()))
    });
    let mut all = Vec::new();
    for (expected, (layer, cells)) in rows.collect::<Vec<_>>().into_iter().rev().enumerate() {
        assert_eq!(layer, expected, "the layers of ARCHITECTURE.md have gaps");
        let groups: Vec<Vec<String>> = cells[0].split(';').map(quoted).collect();
        for module in groups.iter().flatten() {
            assert!(exists(module), "layer {layer} has no module `{module}`");
        }
        let groups = groups.into_iter().enumerate();
        all.extend(groups.map(|(position, modules)| Group {
            layer,
            position,
            modules,
        }));
    }
    all
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

fn group(module: &str) -> &'static Group {
    let has = |group: &&Group| group.modules.iter().any(|known| known == module);
    let group = GROUPS.iter().find(has);
    group.unwrap_or_else(|| panic!("module `{module}` has no layer; ARCHITECTURE.md lists them"))
}

/// Says what is wrong with the top module `module` using `used`.
fn fault(module: &str, used: &str) -> Option<String> {
    if module == used {
        return None;
    }
    let (own, other) = (group(module), group(used));
    let name = |group: &Group| match GROUPS.iter().filter(|any| any.layer == group.layer).count() {
        1 => format!("layer {}", group.layer),
        _ => format!("layer {}, group {}", group.layer, group.position + 1),
    };
    let position = |group: &Group| (group.layer, group.position);
    let direction = match position(other).cmp(&position(own)) {
        Ordering::Less => return None,
        Ordering::Equal => "sideways",
        Ordering::Greater => "up",
    };
    Some(format!(
        "`{module}` ({}) uses `{used}` ({}), which is {direction}",
        name(own),
        name(other)
    ))
}

/// The faults of all files.
fn faults(all: &BTreeMap<Module, String>) -> Vec<String> {
    let mut faults = Vec::new();
    for (module, used) in imports(all) {
        let used: BTreeSet<&String> = used.iter().map(|used| &used[0]).collect();
        let wrong = used.into_iter().filter_map(|used| fault(&module[0], used));
        faults.extend(wrong.map(|fault| format!("{}: {fault}", module.join("::"))));
    }
    faults
}

#[test]
fn each_layer_uses_only_lower_ones() {
    let faults = faults(&modules_with_tests());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The files below `directory` whose code holds one of `texts`, by their paths in `src/`, in the order of the modules.
fn holding(directory: &str, texts: &[&str]) -> Vec<String> {
    let holds = |code: &str| texts.iter().any(|text| code.contains(text));
    let files = modules().into_iter().filter(|(_, code)| holds(code));
    let paths = files.map(|(module, _)| path(&module));
    paths.filter(|path| path.starts_with(directory)).collect()
}

/// The file of a module, in `src/`.
fn path(module: &Module) -> String {
    let path = module.join("/");
    if root().join("src").join(&path).is_dir() {
        format!("{path}/mod.rs")
    } else {
        format!("{path}.rs")
    }
}

#[test]
fn threads_outside_the_pool_start_in_one_place() {
    assert!(holding("", &["thread::spawn("]).is_empty());
    // The first is scoped: its thread ends where the search that needs it does.
    assert_eq!(
        holding("", &["thread::Builder"]),
        ["search/meaning.rs", "shutdown.rs"]
    );
}

/// A process may serve sessions that other processes were started for: their directory and variables come as a `SessionEnv`.
#[test]
fn only_the_edge_asks_the_process_for_its_directory_and_variables() {
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
    let mut found = holding("", &questions);
    found.retain(|path| !path.starts_with("cli/"));
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

/// What works for a client gets its view with the request.
#[test]
fn only_wiring_and_what_belongs_to_no_client_sees_the_servers_of_all_projects() {
    let users = holding("proxy/", &["unscoped()"]);
    let expected = [
        // Applies an edited configuration, and serves the commands of the user.
        "proxy/mod.rs",
        // Sends change notifications to all clients.
        "proxy/callers/mod.rs",
        // Resources that any client follows.
        "proxy/features/resources.rs",
        "proxy/features/subscriptions.rs",
        // Masks messages of servers that belong to no request.
        "proxy/inbound.rs",
        // Holds the lists of all servers.
        "proxy/inventory/mod.rs",
        // Decides which servers are listed.
        "proxy/inventory/configuration.rs",
        // The reason of a failed listing is masked with the secrets of all servers.
        "proxy/inventory/listing.rs",
        // Tools that are withheld from all clients.
        "proxy/inventory/pins.rs",
        // What the user in person sees.
        "proxy/inventory/status.rs",
        "proxy/view.rs",
    ];
    assert_eq!(users, expected);
}

#[test]
fn where_this_program_is_and_how_to_start_it_again_is_known_in_one_place() {
    let users = holding("", &["current_exe"]);
    assert_eq!(users, ["executable.rs"]);
}

#[test]
fn an_upward_or_sideways_arrow_is_found() {
    let file = |path: &str, code: &str| {
        let module: Module = path.split("::").map(str::to_owned).collect();
        (module, code.to_owned())
    };
    let all = BTreeMap::from([
        file("mcp", ""),
        file("tool", ""),
        file("proxy", "pub(crate) mod view;"),
        file("proxy::view", ""),
        file("search::index", "use super::super::{catalog, mcp};"),
        file("search", "use super::proxy::view::View;"),
        file(
            "catalog",
            "fn f() { crate::tool::g(); self::h(); other_crate::x(); }",
        ),
        file("config", "use crate::{mcp::{Frame, Line}, proxy};"),
    ]);
    assert_eq!(
        faults(&all),
        [
            "config: `config` (layer 0, group 5) uses `proxy` (layer 3), which is up",
            "search: `search` (layer 1) uses `proxy` (layer 3), which is up",
            "search::index: `search` (layer 1) uses `catalog` (layer 1), which is sideways",
        ]
    );
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
