//! The files of one module do not import each other in a ring: a ring means that a type stands above code that it should stand
//! below. A file may use what its own folder's `mod.rs` defines.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

type Module = Vec<String>;

/// The modules of `src/` by path, each with its code: no comments, no tests.
fn modules(root: &Path, directory: &Path, found: &mut BTreeMap<Module, String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            modules(root, &path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let relative = path.strip_prefix(root).unwrap().with_extension("");
            let mut module: Module = relative
                .iter()
                .map(|part| part.to_str().unwrap().to_owned())
                .collect();
            module.pop_if(|last| last == "mod");
            found.insert(module, code(&std::fs::read_to_string(&path).unwrap()));
        }
    }
}

fn code(source: &str) -> String {
    let lines = source
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let code = lines.collect::<Vec<_>>().join("\n");
    let tests = code.find("#[cfg(test)]\nmod tests {");
    code[..tests.unwrap_or(code.len())].to_owned()
}

/// The `use` statements of a file: whether each is a re-export, and its path, one for each name.
fn uses(code: &str) -> Vec<(bool, String)> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find("use ") {
        let line = &rest[rest[..at].rfind('\n').map_or(0, |end| end + 1)..at];
        rest = &rest[at + 4..];
        let before = line.trim();
        if before.is_empty() || before.starts_with("pub") {
            let path = &rest[..rest.find(';').unwrap_or(0)];
            let path = path.split_whitespace().collect::<Vec<_>>().join(" ");
            expand("", &path, &mut |path| {
                found.push((!before.is_empty(), path));
            });
        }
    }
    found
}

/// Takes a `{…}` group apart into the paths that it stands for.
fn expand(prefix: &str, path: &str, take: &mut impl FnMut(String)) {
    let Some((head, group)) = path.split_once('{') else {
        return take(format!("{prefix}{}", path.trim()));
    };
    let prefix = format!("{prefix}{}", head.trim());
    let group = &group[..group.rfind('}').unwrap_or(group.len())];
    let (mut depth, mut start) = (0, 0);
    for (at, character) in group.char_indices().chain([(group.len(), ',')]) {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !group[start..at].trim().is_empty() {
                    expand(&prefix, group[start..at].trim(), take);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
}

/// The paths that the code itself names, beside those of its `use` statements.
fn named(code: &str) -> Vec<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    code.split(|c: char| !is_word(c))
        .filter(|path| path.starts_with("crate::") || path.starts_with("super::"))
        .map(|path| path.trim_end_matches(':').to_owned())
        .collect()
}

/// A path from the crate's root, if it leads into the crate.
fn absolute(module: &Module, path: &str, all: &BTreeMap<Module, String>) -> Option<Module> {
    let path = path.split(" as ").next().unwrap_or(path);
    let mut parts = path.split("::").map(str::to_owned).peekable();
    let mut from = module.clone();
    match parts.peek()?.as_str() {
        "crate" => {
            from.clear();
            parts.next();
        }
        "self" => _ = parts.next(),
        "super" => {
            while parts.next_if_eq("super").is_some() {
                from.pop();
            }
        }
        child => {
            let child: Module = module.iter().cloned().chain([child.to_owned()]).collect();
            all.contains_key(&child).then_some(())?;
        }
    }
    Some(from.into_iter().chain(parts).collect())
}

/// The file that defines what `path` names, re-exports followed.
fn definition(
    path: &Module,
    exports: &BTreeMap<Module, Module>,
    all: &BTreeMap<Module, String>,
) -> Option<Module> {
    let mut path = path.clone();
    for _ in 0..8 {
        let export = (1..=path.len()).find_map(|end| {
            let to = exports
                .get(&path[..end])
                .filter(|_| !all.contains_key(&path[..end]))?;
            Some(to.iter().chain(&path[end..]).cloned().collect())
        });
        match export {
            Some(next) => path = next,
            None => break,
        }
    }
    (1..=path.len())
        .rev()
        .map(|end| path[..end].to_vec())
        .find(|module| all.contains_key(module))
}

/// Each file with the files of its own top module that it uses, but for the `mod.rs` files above it.
fn arrows(all: &BTreeMap<Module, String>) -> BTreeMap<&Module, BTreeSet<Module>> {
    let mut exports = BTreeMap::new();
    for (module, code) in all {
        for (_, path) in uses(code).into_iter().filter(|(is_export, _)| *is_export) {
            let name = path
                .rsplit([' ', ':'])
                .next()
                .unwrap_or_default()
                .to_owned();
            if let Some(to) = absolute(module, &path, all) {
                exports.insert(module.iter().cloned().chain([name]).collect(), to);
            }
        }
    }
    all.iter()
        .map(|(module, code)| {
            let used = uses(code).into_iter().map(|(_, path)| path);
            let used = used
                .chain(named(code))
                .filter_map(|path| absolute(module, &path, all))
                .filter_map(|path| definition(&path, &exports, all))
                .filter(|used| used.first() == module.first() && !module.starts_with(used));
            (module, used.collect())
        })
        .collect()
}

/// The groups of files that reach each other.
fn rings(arrows: &BTreeMap<&Module, BTreeSet<Module>>) -> BTreeSet<BTreeSet<Module>> {
    let reach = |from: &Module| {
        let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(next) = open.pop() {
            for used in arrows.get(next).into_iter().flatten() {
                if reached.insert(used.clone()) {
                    open.push(used);
                }
            }
        }
        reached
    };
    let reached: BTreeMap<&Module, BTreeSet<Module>> = arrows
        .keys()
        .map(|module| (*module, reach(module)))
        .collect();
    let ring = |module: &&Module| -> BTreeSet<Module> {
        let back = |other: &&Module| reached.get(other).is_some_and(|all| all.contains(*module));
        reached[*module].iter().filter(back).cloned().collect()
    };
    reached
        .keys()
        .map(ring)
        .filter(|ring| ring.len() > 1)
        .collect()
}

#[test]
fn no_files_of_a_module_import_each_other_in_a_ring() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = BTreeMap::new();
    modules(&source, &source, &mut all);
    assert!(all.len() > 50, "only {} files were found", all.len());
    let found: Vec<String> = rings(&arrows(&all))
        .iter()
        .map(|ring| {
            ring.iter()
                .map(|file| file.join("::"))
                .collect::<Vec<_>>()
                .join(" <-> ")
        })
        .collect();
    assert!(found.is_empty(), "import rings:\n{}", found.join("\n"));
}

#[test]
fn the_parts_of_the_proxy_do_not_use_each_other_in_a_ring() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = BTreeMap::new();
    modules(&source, &source, &mut all);
    let part = |file: &Module| (file[0] == "proxy" && file.len() > 1).then(|| file[..2].to_vec());
    let mut parts: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (file, used) in arrows(&all) {
        if let Some(own) = part(file) {
            let others = used.iter().filter_map(part).filter(|other| *other != own);
            parts.entry(own.clone()).or_default().extend(others);
        }
    }
    assert!(parts.len() > 8, "only {parts:?} were found");
    let found = rings(
        &parts
            .iter()
            .map(|(part, used)| (part, used.clone()))
            .collect(),
    );
    assert_eq!(found, BTreeSet::new());
}

#[test]
fn a_ring_through_a_reexport_or_a_group_is_found() {
    let file = |path: &str, code: &str| {
        (
            path.split("::").map(str::to_owned).collect::<Module>(),
            code.to_owned(),
        )
    };
    let all = BTreeMap::from([
        file(
            "a",
            "mod one;\nmod two;\npub use two::Two as Second;\nstruct Own;",
        ),
        file("a::one", "use super::{Own,\n    Second};"),
        file("a::two", "fn f() { super::one::g(); }"),
        file("a::three", "use crate::a::{one, two::{self, Two}};"),
    ]);
    let rings = rings(&arrows(&all));
    let expected = [["a", "one"], ["a", "two"]].map(|path| path.map(str::to_owned).to_vec());
    assert_eq!(rings, BTreeSet::from([BTreeSet::from(expected)]));
}
