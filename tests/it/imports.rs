//! The files of `src/` and the files that each of them uses, read from its `use` lines and from paths in its code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The path of a module. A file is named by the module that it is.
pub(crate) type Module = Vec<String>;

/// The modules of `src/`, each with its code: no comments, no tests.
pub(crate) fn modules() -> BTreeMap<Module, String> {
    let mut modules = modules_with_tests();
    for code in modules.values_mut() {
        let tests = code.find("#[cfg(test)]\nmod tests {");
        code.truncate(tests.unwrap_or(code.len()));
    }
    modules
}

/// The modules of `src/`, each with its code and that of its tests. A `super::` in tests is taken for one of the module.
pub(crate) fn modules_with_tests() -> BTreeMap<Module, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = BTreeMap::new();
    add(&source, &source, &mut found);
    assert!(found.len() > 50, "only {} files were found", found.len());
    found
}

fn add(root: &Path, directory: &Path, found: &mut BTreeMap<Module, String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            add(root, &path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let relative = path.strip_prefix(root).unwrap().with_extension("");
            let mut module: Module = relative
                .iter()
                .map(|part| part.to_str().unwrap().to_owned())
                .collect();
            module.pop_if(|last| last == "mod");
            let source = std::fs::read_to_string(&path).unwrap();
            let lines = source
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"));
            found.insert(module, lines.collect::<Vec<_>>().join("\n"));
        }
    }
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

/// The paths in a text that begin at the crate, at a parent or at the module itself.
fn named(code: &str) -> Vec<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    code.split(|c: char| !is_word(c))
        .filter(|path| {
            ["crate::", "super::", "self::"]
                .iter()
                .any(|start| path.starts_with(start))
        })
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

/// Each file with the files that it uses, re-exports followed.
pub(crate) fn imports(all: &BTreeMap<Module, String>) -> BTreeMap<&Module, BTreeSet<Module>> {
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
                .filter_map(|path| definition(&path, &exports, all));
            (module, used.collect())
        })
        .collect()
}
