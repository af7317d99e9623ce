//! The public names and signatures, so that a change of them is a decision: `api.txt` is changed with them, and the changelog.

use std::path::Path;

/// The public declarations of a file, each on one line, with what public types derive and the variants of enums.
fn declarations(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    let (mut derived, mut is_enum) = ("", false);
    while let Some(line) = lines.next() {
        if line.starts_with("#[derive(") {
            derived = line;
        }
        if line.starts_with("pub struct") || line.starts_with("pub enum") {
            found.extend((!derived.is_empty()).then(|| derived.to_owned()));
        }
        if line.starts_with(['p', 's', 'e', '}']) {
            (derived, is_enum) = ("", line.starts_with("pub enum"));
        }
        let variant = line.strip_prefix("    ").filter(|_| is_enum);
        if let Some(variant) = variant.filter(|text| text.starts_with(char::is_uppercase)) {
            found.push(variant.trim_end_matches(['{', ' ', ',']).to_owned());
        }
        let is_public = line.trim_start().starts_with("pub ");
        let is_trait_method = line.starts_with("    fn ") && text.contains("pub trait");
        if !is_public && !is_trait_method || line.trim_start().starts_with("pub use") {
            continue;
        }
        let mut whole = line.trim().to_owned();
        let is_whole = |text: &str| {
            text.ends_with(['{', ';', ',']) && !text.contains('(')
                || text.ends_with(['{', ';', '}'])
                || text.ends_with(',') && text.matches('(').count() == text.matches(')').count()
        };
        while !is_whole(&whole) {
            let Some(more) = lines.next() else { break };
            whole = format!("{whole} {}", more.trim());
        }
        if let Some((name, _)) = whole
            .split_once('(')
            .filter(|_| whole.starts_with("pub struct"))
        {
            whole.truncate(name.len());
        }
        found.push(whole.trim_end_matches(['{', ' ', ',']).to_owned());
    }
    found
}

#[test]
fn the_public_names_are_those_that_were_decided() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> = std::fs::read_dir(root.join("src/runner"))
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    let lib = std::fs::read_to_string(root.join("src/lib.rs")).unwrap();
    let names = lib
        .split("pub use runner::{")
        .nth(1)
        .unwrap()
        .split('}')
        .next()
        .unwrap();
    let names: Vec<&str> = names
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect();
    assert!(names.len() <= 32, "{} names", names.len());
    let mut now = format!("{}\n", names.join(" "));
    for file in files {
        let own = declarations(&std::fs::read_to_string(&file).unwrap());
        if own.is_empty() {
            continue;
        }
        let name = file.file_stem().unwrap().to_str().unwrap();
        now.push_str(&format!("\n{name}\n{}\n", own.join("\n")));
    }
    let path = root.join("tests/library/api.txt");
    if std::env::var_os("MCPZIP_WRITE_API").is_some() {
        std::fs::write(&path, &now).unwrap();
    }
    let decided = std::fs::read_to_string(path).unwrap().replace("\r\n", "\n");
    assert!(
        now == decided,
        "the public names changed; MCPZIP_WRITE_API=1 writes them to tests/library/api.txt:\n{now}"
    );
}
