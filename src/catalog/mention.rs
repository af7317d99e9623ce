//! Bare names that mention a server.
//!
//! Clients and agents put their own words around a server's name: `functions.github.delete_repo`,
//! `mcp_my_proxy_github_delete_repo`, `delete_repo_github`. Such a name was meant for that server, so no other server
//! answers to it unless the name also contains that other server's name.

use super::Snapshot;
use super::names::{fold, word_ends};

/// Server names with fewer letters are searched as whole words only: `git` is a part of `digit`.
const SHORTEST: usize = 4;

/// Whether a server has an entry with a folded name. `None` if its entries are not known.
pub(crate) type Has<'h> = &'h dyn Fn(&str, &str) -> Option<bool>;

impl Snapshot {
    /// Whether `name`, which matches entries of `owners`, may have been meant for another server.
    #[must_use]
    pub(crate) fn mentions_another(&self, name: &str, owners: &[&str], has: Has<'_>) -> bool {
        let words = words(name);
        let mut others = self.known().filter(|known| !owners.contains(known));
        others.any(|known| mentions(&words, known, has))
    }
}

fn mentions(words: &[String], server: &str, has: Has<'_>) -> bool {
    let wanted = fold(server);
    if wanted.is_empty() {
        return false;
    }
    let is_of_it = |part: &str| !part.is_empty() && has(server, part) == Some(true);
    let is_unknown = has(server, "").is_none();
    let is_prefixed = words.first().is_some_and(|first| is_prefix(first));
    let at_words = around_words(words, &wanted).any(|(before, after)| {
        let is_all = before.is_empty() && after.is_empty();
        let is_behind = is_prefixed && !before.is_empty();
        !is_all && (is_unknown || is_behind || is_of_it(&before) || is_of_it(&after))
    });
    let whole = words.concat();
    let run_together = || {
        whole.match_indices(&wanted).any(|(at, found)| {
            let (before, after) = (&whole[..at], &whole[at + found.len()..]);
            is_of_it(after) || is_of_it(before) || is_unknown && is_prefix(before) && at > 0
        })
    };
    at_words || wanted.chars().count() >= SHORTEST && run_together()
}

/// The texts before and after each run of whole words that is `server`.
fn around_words<'w>(
    words: &'w [String],
    server: &'w str,
) -> impl Iterator<Item = (String, String)> + 'w {
    (0..words.len()).filter_map(move |start| {
        let mut run = String::new();
        for (end, word) in words.iter().enumerate().skip(start) {
            run.push_str(word);
            if run == server {
                return Some((words[..start].concat(), words[end + 1..].concat()));
            }
            if !server.starts_with(&run) {
                break;
            }
        }
        None
    })
}

/// Whether `text` is one of the words that clients put before tool names.
fn is_prefix(text: &str) -> bool {
    ["mcp", "mcpmcpzip", "mcpzip", "functions", "tools"].contains(&text)
}

fn words(name: &str) -> Vec<String> {
    let mut from = 0;
    let mut words = Vec::new();
    for end in word_ends(name).chain([name.len()]) {
        match fold(&name[from..end]) {
            word if word.is_empty() => {}
            word => words.push(word),
        }
        from = end;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_anothers_words_around_it_mentions_its_server() {
        let listed: Has<'_> = &|_, part| Some(part == "deleterepo");
        let unknown: Has<'_> = &|_, _| None;
        for name in [
            "mcp_my_proxy_github_delete_repo",
            "functions.github.delete_repo",
            "default_api.github_delete_repo",
            "mcpgithub_delete_repo",
            "mcpgithubdelete_repo",
            "delete_repo_github",
            "DeleteRepoGithub",
        ] {
            assert!(mentions(&words(name), "github", listed), "{name}");
            assert!(mentions(&words(name), "git-hub", unknown), "{name}");
        }
        for name in [
            "search_github_repos",
            "delete_repo",
            "github",
            "gitlab_delete_repo",
        ] {
            assert!(!mentions(&words(name), "github", listed), "{name}");
        }
        assert!(mentions(&words("search_github_repos"), "github", unknown));
        assert!(!mentions(&words("digit_sum"), "git", unknown));
        assert!(!mentions(&words("digit_sum"), "git", &|_, part| Some(
            part == "sum"
        )));
    }
}
