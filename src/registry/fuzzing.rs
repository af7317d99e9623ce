//! Fuzzes recipes: the properties that each has for every response of a registry.

use serde_json::Value;

use super::{Given, Listing, Recipe, Way, found_in, merge, read, wire};

/// An answer: a page of servers, or one server. The commands and URLs of its recipes must satisfy the promises of
/// `recipe`.
pub(crate) fn registry(data: &[u8]) {
    if let Ok(page) = read::<wire::Page>(data) {
        for server in page.servers {
            let Ok(response) = serde_json::from_value::<wire::Response>(server) else {
                continue;
            };
            if let Some(found) = found_in(&response) {
                assert!(wire::is_name(&found.name) && wire::is_version(&found.version));
                check_shown(&found.description);
            }
            check(response);
        }
    }
    if let Ok(response) = read::<wire::Response>(data) {
        check(response);
    }
}

fn check(response: wire::Response) {
    let wire::Response {
        server: detail,
        meta,
    } = response;
    let listing = Listing {
        detail,
        status: wire::status(meta.as_ref()).map(str::to_owned),
    };
    check_shown(&listing.description());
    for way in Way::ALL {
        if let Ok(recipe) = listing.recipe(Some(way)) {
            assert_eq!(recipe.way(), way);
            check_recipe(&recipe);
        }
    }
}

fn check_recipe(recipe: &Recipe<'_>) {
    let inputs = recipe.inputs("server");
    for input in &inputs {
        check_shown(&input.description);
        assert!(
            !input.is_secret || input.default.is_none(),
            "a secret that everybody knows"
        );
    }
    let given = |value: &str| -> Given {
        inputs
            .iter()
            .map(|input| (input.name.clone(), vec![value.to_owned()]))
            .collect()
    };
    for given in [Given::new(), given("given"), given("5$")] {
        let Ok(entry) = recipe.entry("server", &given) else {
            continue;
        };
        let json = entry.text().to_json();
        let value: Value = serde_json::from_str(&json).expect("an entry is JSON");
        match value.get("command").and_then(Value::as_str) {
            Some(command) => assert!(
                ["npx", "uvx", "docker", "podman", "dnx"].contains(&command),
                "{json}"
            ),
            None => {
                // An incomplete URL is left out.
                let Some(url) = value.get("url").and_then(Value::as_str) else {
                    continue;
                };
                let is_local =
                    url.starts_with("http://localhost") || url.starts_with("http://127.0.0.1");
                assert!(url.starts_with("https://") || is_local, "{json}");
            }
        }
        // A variable of the user appears only where a secret input names it.
        let secrets: Vec<String> = inputs
            .iter()
            .filter(|input| input.is_secret)
            .map(|input| input.variable.clone())
            .collect();
        for (at, _) in json.match_indices("${") {
            let is_escaped = json[..at].ends_with('$');
            let name: String = json[at + 2..]
                .chars()
                .take_while(|c| !matches!(c, '}' | ':'))
                .collect();
            assert!(
                is_escaped || secrets.contains(&name),
                "`{name}` of the user's is asked for: {json}"
            );
        }
        let same = merge(&value, &value, &value);
        assert!(
            same.changes.is_empty() && same.kept.is_empty(),
            "nothing changed"
        );
    }
}

fn check_shown(text: &str) {
    let is_hidden =
        |c: char| c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}');
    assert!(!text.contains(is_hidden), "{text:?}");
}
