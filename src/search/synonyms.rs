//! Synonyms between the words of agents and those of tools: verbs of APIs, and common abbreviations.
//!
//! Only synonyms that hold for every subject belong here, not those of one product or trade. A synonym weighs far less
//! than the word, so it decides only if the word is missing.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::tokenizer::stem;

const GROUPS: &[&[&str]] = &[
    &["list", "show", "view", "display"],
    &["get", "fetch", "retrieve", "read", "show"],
    &["create", "add", "new", "make", "post"],
    &["delete", "remove", "drop", "erase"],
    &["update", "edit", "modify", "change", "set"],
    &["search", "find", "lookup", "query"],
    &["run", "execute", "start", "launch"],
    &["stop", "kill", "terminate", "cancel"],
    &["disable", "pause", "suspend"],
    &["send", "post"],
    &["folder", "directory", "dir"],
    &["image", "picture", "photo", "img"],
    &["documentation", "docs"],
    &["repository", "repo"],
    &["database", "db"],
    &["message", "msg"],
    &["configuration", "config", "settings"],
    &["environment", "env"],
    &["statistics", "stats", "metrics"],
    &["application", "app"],
    &["information", "info", "details"],
    &["kubernetes", "k8s"],
    &["email", "mail"],
    &["web", "internet", "online"],
    &["job", "task"],
    &["website", "site", "webpage"],
    &["user", "member", "person"],
    &["pr", "prs", "pull"],
    &["organization", "org"],
    &["authentication", "auth"],
    &["javascript", "js"],
    &["postgresql", "postgres"],
    &["document", "doc"],
];

/// The stems that are synonyms of a stem.
pub(super) fn synonyms(stem: &str) -> impl Iterator<Item = &'static str> {
    STEMS.get(stem).into_iter().flatten().map(String::as_str)
}

static STEMS: LazyLock<HashMap<String, Vec<String>>> = LazyLock::new(|| {
    let mut synonyms: HashMap<String, Vec<String>> = HashMap::new();
    for group in GROUPS {
        let stems: Vec<String> = group.iter().map(|word| stem(word)).collect();
        for stem in &stems {
            let known = synonyms.entry(stem.clone()).or_default();
            for other in &stems {
                if other != stem && !known.contains(other) {
                    known.push(other.clone());
                }
            }
        }
    }
    synonyms
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_has_the_synonyms_of_all_its_groups_but_not_itself() {
        let of_show: Vec<_> = synonyms("show").collect();
        assert_eq!(
            of_show,
            ["list", "view", "display", "get", "fetch", "retriev", "read"]
        );
        assert_eq!(
            synonyms(&stem("repositories")).collect::<Vec<_>>(),
            ["repo"]
        );
        assert_eq!(synonyms("forecast").count(), 0);
    }
}
