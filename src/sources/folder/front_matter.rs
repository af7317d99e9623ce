//! The front matter of a file: YAML between two lines of `---`, or in a comment at the beginning of a script.
//!
//! Reading is lenient: text that is not YAML is read line by line, and a file without front matter has no fields.

use serde_json::{Map, Value};

use crate::sources::yaml;

/// A file in two parts.
#[derive(Debug, Default, PartialEq)]
pub(super) struct FrontMatter<'t> {
    pub(super) fields: Map<String, Value>,
    /// Whether it is YAML, as other readers expect.
    pub(super) is_yaml: bool,
    /// The text after the front matter.
    pub(super) body: &'t str,
}

/// Reads a Markdown file.
pub(super) fn of_markdown(text: &str) -> FrontMatter<'_> {
    let text = text.trim_start_matches('\u{feff}');
    let lines = || text.split_inclusive('\n');
    let is_fence = |line: &str| line.trim_end() == "---";
    let end = match lines().next().is_some_and(is_fence) {
        true => lines().skip(1).position(is_fence),
        false => None,
    };
    let Some(end) = end else {
        return FrontMatter {
            fields: Map::new(),
            is_yaml: false,
            body: text,
        };
    };
    let length = |count: usize| lines().take(count).map(str::len).sum::<usize>();
    let (head, body) = text.split_at(length(end + 1));
    let inside = head.split_once('\n').map_or("", |(_, inside)| inside);
    let body = body.split_once('\n').map_or("", |(_, body)| body);
    let read = fields(inside);
    FrontMatter {
        is_yaml: read.is_ok(),
        fields: read.unwrap_or_else(|_| by_lines(inside)),
        body,
    }
}

/// Reads the fields of a script, between `/*---` and `---*/` before anything else.
///
/// # Errors
/// The fault in them. A script without front matter has none.
pub(super) fn of_script(text: &str) -> Result<Map<String, Value>, String> {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let Some(rest) = text.strip_prefix("/*---") else {
        return Ok(Map::new());
    };
    let (inside, _) = rest
        .split_once("---*/")
        .ok_or("its front matter has no end (`---*/`)")?;
    fields(inside).map_err(|reason| format!("its front matter cannot be read: {reason}"))
}

fn fields(yaml: &str) -> Result<Map<String, Value>, String> {
    match yaml::parse(yaml)? {
        Value::Object(fields) => Ok(fields),
        Value::Null => Ok(Map::new()),
        _ => Err("it is not a mapping of keys to values".to_owned()),
    }
}

/// The fields of a text that is not YAML: `key: text` lines, where deeper lines belong to the key before them.
fn by_lines(text: &str) -> Map<String, Value> {
    let mut fields: Map<String, Value> = Map::new();
    let mut key = String::new();
    for line in text.lines() {
        match line.split_once(':') {
            Some((name, value))
                if !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '-') =>
            {
                name.clone_into(&mut key);
                let value = value.trim().trim_matches(['"', '\'']);
                let value = value.trim_start_matches(['>', '|']);
                fields.insert(key.clone(), value.into());
            }
            _ => {
                if let Some(Value::String(text)) = fields.get_mut(&key) {
                    *text = format!("{text} {}", line.trim()).trim().to_owned();
                }
            }
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(text: &str, fields: &Value, body: &str) {
        let read = of_markdown(text);
        assert_eq!((json!(read.fields), read.body), (fields.clone(), body));
    }

    #[test]
    fn front_matter_is_read_as_it_is_found() {
        check(
            "---\nname: a\ndescription: >\n  b\n  c\n---\n# A\n",
            &json!({ "name": "a", "description": "b c\n" }),
            "# A\n",
        );
        check(
            "\u{feff}---\r\nname: a\r\n---\r\nx",
            &json!({ "name": "a" }),
            "x",
        );
        check("# no front matter\n", &json!({}), "# no front matter\n");
        check("---\nname: a\nno end", &json!({}), "---\nname: a\nno end");
        check("---\n---", &json!({}), "");
        // A colon in a plain text is not valid YAML.
        check(
            "---\nname: a\ndescription: Use it: always\n  and more\n---\nx",
            &json!({ "name": "a", "description": "Use it: always and more" }),
            "x",
        );
    }

    #[test]
    fn the_front_matter_of_a_script_is_a_comment() {
        let fields = of_script("/*---\ndescription: d\n---*/\nreturn 1");
        assert_eq!(json!(fields.unwrap()), json!({ "description": "d" }));
        assert!(of_script("return 1").unwrap().is_empty());
        assert!(
            of_script("/*---\ndescription: d\n")
                .unwrap_err()
                .contains("no end")
        );
        assert!(
            of_script("/*---\na: [\n---*/")
                .unwrap_err()
                .contains("cannot be read")
        );
    }
}
