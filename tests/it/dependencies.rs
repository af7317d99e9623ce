//! What the program is made of: only what `deny.toml` allows, from the one registry. Advisories need the network, and are
//! checked by the workflow, with `cargo deny`.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn read(name: &str) -> String {
    std::fs::read_to_string(Path::new(ROOT).join(name)).unwrap()
}

/// The texts of a list in `deny.toml`: those in quotes between its `[` and its `]`.
fn listed(key: &str) -> Vec<String> {
    let text = read("deny.toml");
    let start = text
        .find(&format!("\n{key} = ["))
        .unwrap_or_else(|| panic!("deny.toml has no `{key}`"));
    let list = text[start..]
        .split_once("\n]")
        .map_or(&text[start..], |(list, _)| list);
    let lines = list
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'));
    lines
        .flat_map(|line| {
            line.split('"')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Whether a licence can be chosen that is allowed: `AND` asks for each part, `OR` and `/` for one.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    expression.replace('/', " OR ").split(" AND ").all(|part| {
        let part = part.trim().trim_matches(['(', ')']);
        part.split(" OR ")
            .any(|licence| allowed.iter().any(|known| known == licence.trim()))
    })
}

#[test]
fn every_licence_is_one_that_is_allowed() {
    let host = Command::new(env!("CARGO")).args(["-vV"]).output().unwrap();
    let host = String::from_utf8(host.stdout).unwrap();
    let host = host
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .expect("cargo says its host");
    let mut metadata = Command::new(env!("CARGO"));
    // Of other systems' dependencies nothing is there.
    metadata.args([
        "metadata",
        "--offline",
        "--locked",
        "--format-version",
        "1",
        "--filter-platform",
        host,
    ]);
    let output = metadata.current_dir(ROOT).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let allowed = listed("allow");
    let packages = metadata["packages"].as_array().unwrap();
    assert!(
        packages.len() > 100 && allowed.len() > 5,
        "{} packages, {allowed:?}",
        packages.len()
    );
    let odd: Vec<String> = packages
        .iter()
        .filter(|package| {
            !package["license"]
                .as_str()
                .is_some_and(|licence| is_allowed(licence, &allowed))
        })
        .map(|package| {
            format!(
                "{} {}: {}",
                package["name"], package["version"], package["license"]
            )
        })
        .collect();
    assert!(odd.is_empty(), "{odd:#?}");
}

#[test]
fn everything_comes_from_the_one_registry_and_nothing_that_is_banned() {
    let lock = read("Cargo.lock");
    let registry = format!("registry+{}", listed("allow-registry")[0]);
    let sources: Vec<&str> = lock
        .lines()
        .filter_map(|line| line.strip_prefix("source = "))
        .collect();
    assert!(sources.len() > 100);
    let others: Vec<_> = sources
        .iter()
        .filter(|source| source.trim_matches('"') != registry)
        .collect();
    assert!(others.is_empty(), "{others:?}");
    let banned = listed("deny");
    assert!(banned.len() > 2, "{banned:?}");
    for name in banned {
        assert!(
            !lock.contains(&format!("name = \"{name}\"")),
            "`{name}` is among the dependencies"
        );
    }
}

/// The names and versions of the packages in a lock.
fn versions(lock: &str) -> BTreeSet<(String, String)> {
    let packages = lock.split("[[package]]").skip(1);
    packages
        .map(|package| {
            let value = |key: &str| {
                let mut lines = package.lines();
                let line = lines.find_map(|line| line.strip_prefix(key)).unwrap();
                line.trim_matches('"').to_owned()
            };
            (value("name = "), value("version = "))
        })
        .collect()
}

/// With the same versions, dependencies are compiled once for both, and are those that are tested.
#[test]
fn other_workspaces_have_the_programs_versions() {
    // Versions that Cargo never has together: up to the first number that is not 0.
    let line = |(name, version): &(String, String)| {
        let end = version.find(|digit| ('1'..='9').contains(&digit));
        let end = end.map_or(version.len(), |at| {
            version[at..]
                .find('.')
                .map_or(version.len(), |dot| at + dot)
        });
        (name.clone(), version[..end].to_owned())
    };
    let own = versions(&read("Cargo.lock"));
    let lines: BTreeSet<_> = own.iter().map(line).collect();
    for workspace in ["python", "fuzz"] {
        let theirs = versions(&read(&format!("{workspace}/Cargo.lock")));
        let shared = theirs.iter().filter(|one| lines.contains(&line(one)));
        let others: Vec<_> = shared.filter(|one| !own.contains(*one)).collect();
        assert!(
            others.is_empty(),
            "`cargo update --manifest-path {workspace}/Cargo.toml NAME --precise VERSION` gives them the program's: {others:?}"
        );
    }
}

#[test]
fn an_expression_is_allowed_by_what_can_be_chosen() {
    let allowed = ["MIT", "Apache-2.0"].map(str::to_owned);
    for (expression, expected) in [
        ("MIT OR GPL-3.0", true),
        ("Apache-2.0 / MPL-2.0", true),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", false),
        ("MIT AND Apache-2.0", true),
        ("GPL-2.0-only", false),
        ("MITX", false),
    ] {
        assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
    }
}
