use super::*;

#[track_caller]
fn check_set(before: &str, path: &[&str], json: &str, after: &str) {
    let mut document = Document::parse(before).unwrap();
    document.set(path, json).unwrap();
    assert_eq!(document.text(), after, "\nof\n{before}");
}

#[track_caller]
fn check_remove(before: &str, path: &[&str], after: &str) {
    let mut document = Document::parse(before).unwrap();
    document.remove(path).unwrap();
    assert_eq!(document.text(), after, "\nof\n{before}");
}

#[test]
fn a_new_key_comes_behind_the_others_as_they_are_written() {
    check_set("{}", &["a"], "1", "{\n  \"a\": 1\n}");
    check_set("", &["a"], "1", "{\n  \"a\": 1\n}\n");
    check_set(
        "// nothing yet",
        &["a"],
        "1",
        "// nothing yet\n{\n  \"a\": 1\n}\n",
    );
    check_set(
        "{\"a\": 1}",
        &["b"],
        "{\"c\":[1,2]}",
        "{\"a\": 1, \"b\": {\"c\": [1, 2]}}",
    );
    check_set("{\"a\":1,}", &["b"], "2", "{\"a\":1, \"b\": 2,}");
    check_set(
        "{\n\t\"a\": {\n\t\t\"x\": 1 // one\n\t} /* end */ // of a\n\t// more to come\n}\n",
        &["a", "y"],
        "{\"z\":true}",
        "{\n\t\"a\": {\n\t\t\"x\": 1, // one\n\t\t\"y\": {\n\t\t\t\"z\": true\n\t\t}\n\t} /* end */ // of a\n\t// more to come\n}\n",
    );
    check_set(
        "{\r\n    \"a\": 1, // one\r\n    // last\r\n}\r\n",
        &["b"],
        "2",
        "{\r\n    \"a\": 1, // one\r\n    // last\r\n    \"b\": 2,\r\n}\r\n",
    );
    check_set(
        "{\n  \"a\": {}\n}",
        &["a", "b"],
        "1",
        "{\n  \"a\": {\n    \"b\": 1\n  }\n}",
    );
    check_set("{\"a\": {}}", &["a", "b"], "1", "{\"a\": {\"b\": 1}}");
    check_set(
        "{\n  \"a\": {\n    // empty\n  }\n}",
        &["a", "b"],
        "1",
        "{\n  \"a\": {\n    // empty\n    \"b\": 1\n  }\n}",
    );
    check_set(
        "{\"x\": 1}",
        &["a", "b c", "d"],
        "[]",
        "{\"x\": 1, \"a\": {\"b c\": {\"d\": []}}}",
    );
    check_set(
        "{\n  \"a\": null\n}",
        &["a", "b"],
        "1",
        "{\n  \"a\": {\n    \"b\": 1\n  }\n}",
    );
}

#[test]
fn a_value_is_replaced_in_its_place() {
    check_set(
        "{\"a\" : 1 /* x */, \"b\":2}",
        &["a"],
        "1e400",
        "{\"a\" : 1e400 /* x */, \"b\":2}",
    );
    check_set("{\"a\":1,\"a\":2}", &["a"], "3", "{\"a\":1,\"a\":3}");
    check_set(
        "\u{feff}{\"a\":1}",
        &["a"],
        "\"\\u00e9\"",
        "\u{feff}{\"a\":\"\\u00e9\"}",
    );
    check_set(
        "{\n  \"s\": {\n    \"a\": {\"x\": 1} // keep\n  }\n}",
        &["s", "a"],
        "{\"y\":[{\"z\":1}]}",
        "{\n  \"s\": {\n    \"a\": {\n      \"y\": [\n        {\n          \"z\": 1\n        }\n      ]\n    } // keep\n  }\n}",
    );
}

#[test]
fn a_removed_key_takes_its_comma_and_the_comment_on_its_line() {
    check_remove("{\"a\": 1}", &["a"], "{}");
    check_remove("{\"a\": 1, \"b\": 2}", &["a"], "{\"b\": 2}");
    check_remove("{\"a\": 1, \"b\": 2}", &["b"], "{\"a\": 1}");
    check_remove("{\"a\":1,\"b\":2,}", &["b"], "{\"a\":1,}");
    check_remove(
        "{\n  // first\n  \"a\": 1, // one\n  \"b\": 2, // two\n  \"c\": 3 // three\n}\n",
        &["b"],
        "{\n  // first\n  \"a\": 1, // one\n  \"c\": 3 // three\n}\n",
    );
    check_remove(
        "{\n  \"a\": 1, // one\n  \"c\": 3 // three\n  // last\n}\n",
        &["c"],
        "{\n  \"a\": 1 // one\n  // last\n}\n",
    );
    check_remove(
        "{\r\n  \"a\": 1,\r\n  \"b\": 2\r\n}\r\n",
        &["b"],
        "{\r\n  \"a\": 1\r\n}\r\n",
    );
    check_remove("{\"a\":1,\"a\":2,\"b\":3}", &["a"], "{\"b\":3}");
    check_remove("{\"s\": {\"a\": 1}}", &["s", "b"], "{\"s\": {\"a\": 1}}");
    check_remove("{\"s\": 1}", &["s", "b"], "{\"s\": 1}");
}

#[test]
fn several_keys_leave_as_if_one_after_the_other() {
    let keys = ["a", "b", "c", "d"];
    for text in [
        "{\"a\": 1, \"b\": 2, \"c\": 3, \"d\": 4}",
        "{\"a\":1,\"b\":2,\"c\":3,\"d\":4,}",
        "{\n  \"a\": 1, // one\n  \"b\": {\n    \"x\": 1\n  },\n  // three\n  \"c\": 3,\n  \"d\": 4 // four\n  // last\n}\n",
        "{\r\n  \"a\": 1,\r\n  \"b\": 2,\r\n  \"c\": 3,\r\n  \"d\": 4\r\n}\r\n",
    ] {
        for chosen in 0..16 {
            let paths: Vec<&[&str]> = (0..4)
                .filter(|at| chosen & (1 << at) != 0)
                .map(|at| std::slice::from_ref(&keys[at]))
                .collect();
            let mut whole = Document::parse(text).unwrap();
            let mut single = whole.clone();
            whole.remove_all(&paths).unwrap();
            for path in &paths {
                single.remove(path).unwrap();
            }
            assert_eq!(whole.text(), single.text(), "\n{paths:?} of\n{text}");
        }
    }
}

#[test]
fn what_is_no_object_is_not_overwritten_on_the_way() {
    let mut document = Document::parse("{\"a\": {\"b\": [1]}}").unwrap();
    let refused = document.set(&["a", "b", "c"], "1").unwrap_err();
    assert_eq!(
        refused.to_string(),
        "1:13: `a.b` must be an object, found a list"
    );
    assert!(document.set(&["a"], "{").is_err());
    assert_eq!(document.text(), "{\"a\": {\"b\": [1]}}");
    assert_eq!(
        Document::parse("[]").unwrap_err().to_string(),
        "1:1: `configuration` must be an object, found a list"
    );
}

#[test]
fn what_stands_there_is_read_without_comments() {
    let document = Document::parse(
        "{\"s\": {\"a\": {/* x */ \"n\": 1e400, \"t\": [\"\\u00e9\",],}, \"a b\": 2}}",
    )
    .unwrap();
    assert_eq!(
        document.get(&["s", "a"]).unwrap(),
        "{\"n\": 1e400, \"t\": [\"\\u00e9\"]}"
    );
    assert_eq!(document.keys(&["s"]), ["a", "a b"]);
    assert_eq!(document.get(&["s", "c"]), None);
    assert!(document.keys(&["s", "c", "d"]).is_empty());
}

/// For any document and any edits, the values are those that a map would have.
#[test]
fn edits_change_what_they_should_and_nothing_else() {
    let mut random = Random(7);
    for _ in 0..400 {
        let mut text = String::new();
        random.object(&mut text, 0);
        let text = random.maybe(&text, "// head\n");
        let mut document = Document::parse(&text).unwrap();
        for step in 0..12 {
            let (top, key) = (random.key(), random.key());
            let path = if random.below(3) == 0 {
                vec![top.as_str()]
            } else {
                vec![top.as_str(), key.as_str()]
            };
            let before = document.clone();
            let mut expected: serde_json::Value =
                serde_json::from_str(&before.get(&[]).unwrap()).unwrap();
            if random.below(2) == 0 {
                let json = ["1", "{\"k\":[1,{\"x\":2}]}", "\"t\\n\"", "{}"][random.below(4)];
                match document.set(&path, json) {
                    Ok(()) => {
                        let value: serde_json::Value = serde_json::from_str(json).unwrap();
                        match path[..] {
                            [top] => expected[top] = value,
                            _ => expected[path[0]][path[1]] = value,
                        }
                    }
                    Err(_) => assert_eq!(document, before),
                }
            } else {
                document.remove(&path).unwrap();
                match path[..] {
                    [top] => drop(expected.as_object_mut().unwrap().remove(top)),
                    _ => drop(
                        expected
                            .get_mut(path[0])
                            .and_then(|v| v.as_object_mut()?.remove(path[1])),
                    ),
                }
            }
            let now: serde_json::Value = serde_json::from_str(&document.get(&[]).unwrap()).unwrap();
            assert_eq!(
                now,
                expected,
                "step {step}: {path:?} in\n{}\nbecame\n{}",
                before.text(),
                document.text()
            );
            assert_eq!(
                document.text().matches("// head").count(),
                text.matches("// head").count()
            );
        }
    }
}

/// A small generator of repeatable documents (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }

    fn key(&mut self) -> String {
        ["a", "b", "c\\\"d", "e"][self.below(4)].replace("\\\"", "\"")
    }

    fn maybe(&mut self, text: &str, before: &str) -> String {
        if self.below(2) == 0 {
            format!("{before}{text}")
        } else {
            text.to_owned()
        }
    }

    fn gap(&mut self, text: &mut String) {
        text.push_str(
            [
                "",
                " ",
                "\n",
                "\n\t",
                "\r\n  ",
                " // c, }\n",
                " /* stay */ ",
                "\n\n  /* { */\n",
            ][self.below(8)],
        );
    }

    fn object(&mut self, text: &mut String, depth: usize) {
        text.push('{');
        let mut keys = vec!["a", "b", "c\\\"d", "e"];
        for at in 0..self.below(4) {
            if at > 0 {
                self.gap(text);
                text.push(',');
            }
            self.gap(text);
            let key = keys.remove(self.below(keys.len()));
            text.push_str(&format!("\"{key}\""));
            self.gap(text);
            text.push(':');
            self.gap(text);
            match self.below(3) {
                0 if depth < 2 => self.object(text, depth + 1),
                1 => text.push_str("[1, /* x */ \"//\"]"),
                _ => text.push_str("\"v\""),
            }
        }
        self.gap(text);
        if keys.len() < 4 && self.below(3) == 0 {
            text.push(',');
            self.gap(text);
        }
        text.push('}');
    }
}

#[test]
fn what_is_not_one_value_is_refused_however_deep_it_would_stand() {
    for path in [&["a"][..], &["a", "b"], &["new", "way", "there"]] {
        for json in ["1,\"x\":2", "1},\"x\":{\"y\":2", "", "1 2", "// nothing"] {
            let mut document = Document::parse("{\"a\": {}}").unwrap();
            assert!(document.set(path, json).is_err(), "{path:?} {json}");
            assert_eq!(document.text(), "{\"a\": {}}");
        }
    }
}
