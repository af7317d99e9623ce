//! Formats a server's entry for a configuration file.

use serde_json::json;

/// The members of an entry, in the order in which they are written; empty ones are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct EntryText {
    members: Vec<(String, String)>,
}

impl EntryText {
    /// Adds a text, if there is one.
    pub(crate) fn text(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.json(key, json!(value).to_string());
        }
    }

    /// Adds a list of texts.
    pub(crate) fn texts(&mut self, key: &str, values: &[String]) {
        if !values.is_empty() {
            self.json(key, json!(values).to_string());
        }
    }

    /// Adds an object of texts.
    pub(crate) fn map(&mut self, key: &str, pairs: &[(String, String)]) {
        if !pairs.is_empty() {
            let pairs = pairs
                .iter()
                .map(|(name, value)| format!("{}:{}", json!(name), json!(value)));
            self.json(key, format!("{{{}}}", pairs.collect::<Vec<_>>().join(",")));
        }
    }

    /// Adds any value, as JSON.
    pub(crate) fn json(&mut self, key: &str, json: String) {
        self.members.push((key.to_owned(), json));
    }

    /// A copy in which the member `key` has the value of `other`: in its place, or after the command or URL if it had
    /// none.
    #[must_use]
    pub(crate) fn with(mut self, key: &str, other: &Self) -> Self {
        let Some(new) = other.members.iter().find(|(known, _)| known == key) else {
            return self;
        };
        match self.members.iter_mut().find(|(known, _)| known == key) {
            Some(member) => *member = new.clone(),
            None => {
                let is_target = |(known, _): &(String, String)| {
                    matches!(known.as_str(), "command" | "args" | "url")
                };
                let behind = self
                    .members
                    .iter()
                    .rposition(is_target)
                    .map_or(0, |at| at + 1);
                self.members.insert(behind, new.clone());
            }
        }
        self
    }

    /// The entry as JSON.
    #[must_use]
    pub(crate) fn to_json(&self) -> String {
        let members = self
            .members
            .iter()
            .map(|(key, value)| format!("{}:{value}", json!(key)));
        format!("{{{}}}", members.collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_stand_in_the_order_they_came_in() {
        let mut entry = EntryText::default();
        entry.text("command", Some("a \"b\""));
        entry.texts("args", &["z".to_owned(), "a".to_owned()]);
        entry.map(
            "env",
            &[
                ("Z".to_owned(), "1".to_owned()),
                ("A".to_owned(), "${A}".to_owned()),
            ],
        );
        entry.text("cwd", None);
        entry.texts("none", &[]);
        entry.map("none", &[]);
        let expected = r#"{"command":"a \"b\"","args":["z","a"],"env":{"Z":"1","A":"${A}"}}"#;
        assert_eq!(entry.to_json(), expected);
    }
}
