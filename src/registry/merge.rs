//! Three-way merge of an entry that came from a registry: the entry as installed, the user's entry now, and the
//! registry's current one. The user's changes win.

use serde_json::Value;
use similar::{Algorithm, DiffTag, capture_diff_slices};

/// The members of an entry that come from a registry; all others are the user's.
const MEMBERS: &[&str] = &["type", "command", "args", "env", "url", "headers"];

/// The members that are merged key by key.
const MAPS: &[&str] = &["env", "headers"];

/// The result of a merge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Merged {
    /// The path of each changed member, and its new value; `None` removes it.
    pub changes: Vec<(Vec<String>, Option<Value>)>,
    /// The members that both the user and the registry changed; the user's values stay.
    pub kept: Vec<String>,
}

/// Merges entries, each an object.
#[must_use]
pub(crate) fn merge(then: &Value, now: &Value, today: &Value) -> Merged {
    let mut merged = Merged::default();
    for &member in MEMBERS {
        let (then, now, today) = (then.get(member), now.get(member), today.get(member));
        if MAPS.contains(&member) {
            let keys = [then, today]
                .into_iter()
                .flatten()
                .filter_map(Value::as_object)
                .flat_map(|object| object.keys());
            let mut keys: Vec<&String> = keys.collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let [then, now, today] =
                    [then, now, today].map(|object| object.and_then(|object| object.get(key)));
                merged.value(&[member, key], then, now, today);
            }
        } else if member == "args" {
            merged.list(member, then, now, today);
        } else {
            merged.value(&[member], then, now, today);
        }
    }
    merged
}

impl Merged {
    fn value(
        &mut self,
        path: &[&str],
        then: Option<&Value>,
        now: Option<&Value>,
        today: Option<&Value>,
    ) {
        if today == then || today == now {
            return;
        }
        if now == then {
            self.changes.push((
                path.iter().map(|key| (*key).to_owned()).collect(),
                today.cloned(),
            ));
        } else {
            self.kept.push(path.join("."));
        }
    }

    fn list(
        &mut self,
        member: &str,
        then: Option<&Value>,
        now: Option<&Value>,
        today: Option<&Value>,
    ) {
        let (Some(then), Some(now), Some(today)) = (texts(then), texts(now), texts(today)) else {
            return self.value(&[member], then, now, today);
        };
        let (list, conflicts) = merge_lists(&then, &now, &today);
        self.kept.extend(
            conflicts
                .into_iter()
                .map(|text| format!("{member} (`{text}`)")),
        );
        if list != now {
            let value = (!list.is_empty()).then(|| Value::from(list));
            self.changes.push((vec![member.to_owned()], value));
        }
    }
}

/// A list of texts; a missing list is an empty one.
fn texts(value: Option<&Value>) -> Option<Vec<String>> {
    let Some(value) = value else {
        return Some(Vec::new());
    };
    value
        .as_array()?
        .iter()
        .map(|item| item.as_str().map(str::to_owned))
        .collect()
}

/// The differences between two lists: the fate of each item, and the items inserted before each and after the last.
struct Edits {
    items: Vec<Item>,
    inserted: Vec<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Item {
    Kept,
    Replaced(String),
    Removed,
}

/// The merged list, and the items of `now` that conflict with `today`.
fn merge_lists(then: &[String], now: &[String], today: &[String]) -> (Vec<String>, Vec<String>) {
    let (ours, theirs) = (Edits::between(then, now), Edits::between(then, today));
    let (mut list, mut conflicts) = (Vec::new(), Vec::new());
    for (place, (our, their)) in ours.inserted.iter().zip(&theirs.inserted).enumerate() {
        list.extend(their.iter().cloned());
        if our != their {
            list.extend(our.iter().cloned());
        }
        let Some(item) = then.get(place) else { break };
        let (our, their) = (&ours.items[place], &theirs.items[place]);
        if *our != Item::Kept && *their != Item::Kept && our != their {
            conflicts.push(match our {
                Item::Replaced(text) => text.clone(),
                Item::Kept | Item::Removed => item.clone(),
            });
        }
        match if *our == Item::Kept { their } else { our } {
            Item::Kept => list.push(item.clone()),
            Item::Replaced(text) => list.push(text.clone()),
            Item::Removed => {}
        }
    }
    (list, conflicts)
}

impl Edits {
    fn between(old: &[String], new: &[String]) -> Self {
        let mut edits = Self {
            items: vec![Item::Removed; old.len()],
            inserted: vec![Vec::new(); old.len() + 1],
        };
        let (mut old_at, mut new_at) = (0, 0);
        let ends = common(old, new)
            .into_iter()
            .map(|pair| (pair, true))
            .chain([((old.len(), new.len()), false)]);
        for ((old_end, new_end), is_common) in ends {
            // Items between two common ones replace each other pairwise.
            let pairs = (old_end - old_at).min(new_end - new_at);
            for step in 0..pairs {
                edits.items[old_at + step] = Item::Replaced(new[new_at + step].clone());
            }
            edits.inserted[old_at + pairs].extend(new[new_at + pairs..new_end].iter().cloned());
            if is_common {
                edits.items[old_end] = Item::Kept;
            }
            (old_at, new_at) = (old_end + 1, new_end + 1);
        }
        edits
    }
}

/// The items common to both lists, in order: the index in each.
fn common(old: &[String], new: &[String]) -> Vec<(usize, usize)> {
    let ops = capture_diff_slices(Algorithm::Lcs, old, new);
    let equal = ops.iter().filter(|op| op.tag() == DiffTag::Equal);
    equal
        .flat_map(|op| op.old_range().zip(op.new_range()))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn lists(then: &[&str], now: &[&str], today: &[&str], expected: &[&str], conflicts: &[&str]) {
        let owned = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| (*text).to_owned())
                .collect::<Vec<_>>()
        };
        let (list, found) = merge_lists(&owned(then), &owned(now), &owned(today));
        assert_eq!(
            (list, found),
            (owned(expected), owned(conflicts)),
            "{then:?} {now:?} {today:?}"
        );
    }

    #[test]
    fn lists_are_merged_item_by_item() {
        lists(
            &["-y", "p@1"],
            &["-y", "p@1"],
            &["-y", "p@2"],
            &["-y", "p@2"],
            &[],
        );
        lists(
            &["-y", "p@1"],
            &["-y", "p@1", "--mine"],
            &["-y", "p@2"],
            &["-y", "p@2", "--mine"],
            &[],
        );
        lists(
            &["-y", "p@1", "/x"],
            &["-y", "p@1", "/y"],
            &["-y", "p@2", "/x"],
            &["-y", "p@2", "/y"],
            &[],
        );
        lists(
            &["p@1", "a"],
            &["p@1", "a", "mine"],
            &["p@2", "a", "new"],
            &["p@2", "a", "new", "mine"],
            &[],
        );
        lists(&["p@1", "a"], &["p@1"], &["p@2", "a"], &["p@2"], &[]);
        lists(
            &["p@1", "a"],
            &["-q", "p@1", "a"],
            &["p@2"],
            &["-q", "p@2"],
            &[],
        );
        lists(&["p@1"], &["p@0"], &["p@2"], &["p@0"], &["p@0"]);
        lists(
            &["-y", "p@1"],
            &["server.js"],
            &["-y", "p@2"],
            &["server.js"],
            &["p@1"],
        );
        lists(&["p@1"], &["p@2"], &["p@2"], &["p@2"], &[]);
        lists(&[], &["mine"], &["new"], &["new", "mine"], &[]);
        lists(&["a"], &[], &[], &[], &[]);
    }

    #[test]
    fn what_the_user_changed_stays_and_the_rest_follows() {
        let then = json!({ "command": "npx", "args": ["p@1"], "env": { "A": "1", "B": "1", "C": "1", "D": "1" } });
        let now = json!({ "command": "npx", "args": ["p@1", "-v"], "env": { "A": "1", "B": "mine", "C": "1", "E": "mine" }, "timeout": 5 });
        let today = json!({ "command": "npx", "args": ["p@2"], "env": { "A": "2", "B": "2", "D": "1", "F": "1" } });
        let path = |path: &[&str]| path.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
        let merged = merge(&then, &now, &today);
        assert_eq!(
            merged.changes,
            [
                (path(&["args"]), Some(json!(["p@2", "-v"]))),
                (path(&["env", "A"]), Some(json!("2"))),
                (path(&["env", "C"]), None),
                (path(&["env", "F"]), Some(json!("1"))),
            ]
        );
        assert_eq!(merged.kept, ["env.B"]);
        assert_eq!(merge(&then, &now, &then), Merged::default());
        assert_eq!(merge(&then, &today, &today), Merged::default());
    }

    #[test]
    fn a_server_may_move_to_another_way() {
        let then = json!({ "url": "https://a.example/sse", "type": "sse" });
        let today = json!({ "url": "https://a.example/mcp" });
        let merged = merge(&then, &then, &today);
        assert_eq!(
            merged.changes,
            [
                (vec!["type".to_owned()], None),
                (vec!["url".to_owned()], Some(json!("https://a.example/mcp")))
            ]
        );
    }
}
