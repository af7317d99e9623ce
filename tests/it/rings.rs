//! The files of one module do not import each other in a ring: a ring means that a type stands above code that it should stand
//! below. A file may use what its own folder's `mod.rs` defines.

use std::collections::{BTreeMap, BTreeSet};

use crate::imports::{Module, imports, modules};

/// Each file with the files of its own top module that it uses, but for the `mod.rs` files above it.
fn arrows(all: &BTreeMap<Module, String>) -> BTreeMap<&Module, BTreeSet<Module>> {
    let mut arrows = imports(all);
    for (module, used) in &mut arrows {
        used.retain(|used| used.first() == module.first() && !module.starts_with(used));
    }
    arrows
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
    let all = modules();
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
    let all = modules();
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
