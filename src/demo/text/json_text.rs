//! JSON laid out anew without being read into values, so that the order of members and every digit of a number stay.

/// Lays out `json`, which must be valid, with `indent` spaces for each level; on one line when that is 0.
pub(super) fn laid_out(json: &str, indent: usize) -> String {
    let mut output = String::with_capacity(json.len() * 2);
    let mut depth = 0;
    let line = |output: &mut String, depth: usize| {
        if indent > 0 {
            output.push('\n');
            output.extend(std::iter::repeat_n(' ', depth * indent));
        }
    };
    let mut rest = json.trim_start();
    while let Some(c) = rest.chars().next() {
        let mut length = c.len_utf8();
        match c {
            '"' => {
                length = string_length(rest);
                output.push_str(&rest[..length]);
            }
            '{' | '[' => {
                output.push(c);
                let inner = rest[1..].trim_start();
                if inner.starts_with(['}', ']']) {
                    output.push_str(&inner[..1]);
                    length = rest.len() - inner.len() + 1;
                } else {
                    depth += 1;
                    line(&mut output, depth);
                }
            }
            '}' | ']' => {
                depth -= 1;
                line(&mut output, depth);
                output.push(c);
            }
            ',' => {
                output.push(c);
                line(&mut output, depth);
            }
            ':' => output.push_str(if indent > 0 { ": " } else { ":" }),
            _ => output.push(c),
        }
        rest = rest[length..].trim_start();
    }
    output
}

/// The length of the string literal that `json` begins with.
fn string_length(json: &str) -> usize {
    let mut escaped = false;
    for (at, c) in json.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_layout_changes_nothing_else() {
        for json in [
            r#"{"a":{"":[[],{},[ ]]},"q\"\\":"x\\\" : ,"}"#,
            " [ 1 , -2.50e+3 ,true,null ] ",
            "\"a b\"",
            "7",
            "{}",
        ] {
            for indent in [0, 2] {
                let laid_out = laid_out(json, indent);
                let value = |json| serde_json::from_str::<Value>(json).unwrap();
                assert_eq!(value(&laid_out), value(json), "{laid_out}");
            }
        }
        assert_eq!(
            laid_out("[1 ,[ ],{\"b\" : 1.00}]", 1),
            "[\n 1,\n [],\n {\n  \"b\": 1.00\n }\n]"
        );
    }
}
