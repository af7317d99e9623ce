//! The names of programs, packages, images and addresses, in the one spelling of all that mean the same.

use percent_encoding::percent_decode_str;
use reqwest::Url;

use super::Kind;
use crate::config::runner::program_name;

/// The name of a program for comparisons: without directory, ending and version, in lower case.
pub(super) fn bare(word: &str) -> String {
    let word = word.to_lowercase();
    let name = program_name(&word);
    let endings = [".bat", ".ps1"];
    let name = endings
        .iter()
        .find_map(|ending| name.strip_suffix(ending))
        .unwrap_or(name);
    let is_version = |rest: &str| rest.chars().all(|c| c.is_ascii_digit() || c == '.');
    match name {
        "nodejs" => "node".to_owned(),
        name if name.strip_prefix("python").is_some_and(is_version) => "python".to_owned(),
        name => name.to_owned(),
    }
}

/// The name of a package without a version, a tag, extras or the address of a repository: as it is spelled, and in the spelling
/// of all that mean the same, which comes last.
pub(super) fn names(kind: Kind, spec: &str) -> [String; 2] {
    let spec = spec.trim();
    let spelled = unversioned(kind, spec);
    let usual = match kind {
        Kind::Pypi if !spelled.starts_with(['.', '/']) => {
            let parts = spelled
                .split(['-', '_', '.'])
                .filter(|part| !part.is_empty());
            parts.collect::<Vec<_>>().join("-").to_lowercase()
        }
        Kind::Npm => {
            let spec = spec.split_once("@npm:").map_or(spec, |(_, meant)| meant);
            let spec = spec
                .strip_prefix("npm:")
                .unwrap_or(spec)
                .trim_start_matches('/');
            unversioned(kind, spec).to_lowercase()
        }
        Kind::Image => {
            let name = spelled.to_lowercase();
            let name = name.strip_prefix("docker://").unwrap_or(&name);
            let hosts = ["docker.io/", "index.docker.io/", "registry-1.docker.io/"];
            let name = hosts
                .iter()
                .find_map(|host| name.strip_prefix(host))
                .unwrap_or(name);
            name.strip_prefix("library/").unwrap_or(name).to_owned()
        }
        _ => spelled.clone(),
    };
    [spelled, usual]
}

fn unversioned(kind: Kind, word: &str) -> String {
    let name = match kind {
        Kind::Pypi => {
            let word = word.rsplit_once(" @ ").map_or(word, |(name, _)| name);
            let url = word.strip_prefix("git+");
            let last = |url: &'_ str| url.trim_end_matches('/').rfind('/').map_or(0, |at| at + 1);
            let word = url.map_or(word, |url| &url[last(url)..]);
            let end = word.find(['@', '=', '[', '<', '>', '~', '!']);
            let name = end.map_or(word, |end| &word[..end]);
            let repository = url.and_then(|_| name.strip_suffix(".git"));
            repository.unwrap_or(name)
        }
        Kind::Image => {
            let word = word.split_once('@').map_or(word, |(name, _)| name);
            let last = word.rfind('/').map_or(0, |at| at + 1);
            let end = word[last..].find(':').map_or(word.len(), |at| last + at);
            word[..end]
                .strip_prefix("docker.io/")
                .unwrap_or(&word[..end])
        }
        _ => before_at(word),
    };
    name.to_owned()
}

/// A package without its version: `@scope/name@1.2`, `name==1.2`.
pub(super) fn versionless(arg: &str) -> &str {
    before_at(arg.split("==").next().unwrap_or(arg))
}

/// The part before `@`, if that is not its first letter.
fn before_at(word: &str) -> &str {
    let mut marks = word.char_indices().skip(1).filter(|(_, c)| *c == '@');
    marks.next().map_or(word, |(at, _)| &word[..at])
}

/// The address of a URL, without its query: as it is written, and as programs understand it.
pub(in crate::config) fn addresses(url: &str) -> Vec<String> {
    let mut all = vec![written(url)];
    if let Ok(parsed) = Url::parse(url)
        && let Some(host) = parsed.host_str()
    {
        let port = parsed
            .port()
            .map(|port| format!(":{port}"))
            .unwrap_or_default();
        let path = percent_decode_str(parsed.path())
            .decode_utf8_lossy()
            .to_lowercase();
        let parts = path.split('/').filter(|part| !part.is_empty());
        let path: String = parts.map(|part| format!("/{part}")).collect();
        let host = host.trim_end_matches('.').to_lowercase();
        all.push(format!("{}://{host}{port}{path}", parsed.scheme()));
    }
    all
}

fn written(url: &str) -> String {
    let url = url.to_lowercase();
    let address = url.split(['?', '#']).next().unwrap_or_default();
    let (start, path) = address.split_once("://").unwrap_or(("", address));
    let (host, path) = path.split_at(path.find('/').unwrap_or(path.len()));
    let usual = match start {
        "https" => ":443",
        "http" => ":80",
        _ => "",
    };
    let host = host.strip_suffix(usual).unwrap_or(host);
    let address = format!("{start}://{host}{path}");
    address.trim_end_matches('/').to_owned()
}

/// Whether a shell makes a part of this word: from a variable, another command or braces.
pub(super) fn is_made(word: &str) -> bool {
    let is_name = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    // `%NAME%`, and `!NAME!`.
    let has_between =
        |mark: char| word.split(mark).skip(1).any(is_name) && word.matches(mark).count() > 1;
    word.contains(['$', '`'])
        || word.contains('{') && word.contains([',', '}'])
        || has_between('%')
        || has_between('!')
}
