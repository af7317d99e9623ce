use std::time::{Duration, Instant};

use super::*;

fn is_unchecked(schema: &Schema) -> bool {
    matches!(schema.0, State::Unchecked)
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

fn outcome(schema: &str, sent: &str) -> String {
    let schema = Schema::compile(Some(&raw(schema)));
    assert!(!is_unchecked(&schema));
    let sent = raw(sent);
    match schema.check(Some(&sent)) {
        Ok(Checked::AsSent(json)) => {
            assert_eq!(
                json.get().as_ptr(),
                sent.get().as_ptr(),
                "not the bytes that were sent"
            );
            "as sent".to_owned()
        }
        Ok(Checked::Repaired { arguments, repairs }) => {
            assert!(!repairs.is_empty(), "nothing tells of a repair");
            arguments.get().to_owned()
        }
        Err(faults) => {
            assert!(!faults.is_empty());
            faults
                .iter()
                .map(|fault| format!("! {}", fault.message))
                .collect::<Vec<_>>()
                .join("\n")
        }
    }
}

#[track_caller]
fn check(schema: &str, cases: &[(&str, &str)]) {
    for (sent, expected) in cases {
        assert_eq!(outcome(schema, sent), *expected, "{sent}\nagainst {schema}");
    }
}

/// A tool like that of an issue tracker, with every kind of parameter.
const ISSUES: &str = r##"{
    "type": "object", "additionalProperties": false, "required": ["owner"],
    "properties": {
        "owner": {"type": "string"},
        "state": {"type": "string", "enum": ["open", "closed", "ALL"]},
        "max_results": {"type": "integer", "minimum": 1, "maximum": 100},
        "score": {"type": "number"},
        "draft": {"type": "boolean"},
        "labels": {"type": "array", "items": {"type": "string"}},
        "numbers": {"type": "array", "items": {"type": "integer"}},
        "since": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "id": {"type": ["string", "integer"]},
        "filter": {"$ref": "#/$defs/Filter"},
        "filters": {"type": "array", "items": {"$ref": "#/$defs/Filter"}},
        "level": {"type": "integer", "enum": [1, 2, 3]},
        "answer": {"enum": ["true", "false", "auto"]},
        "extra": {"type": "object"}
    },
    "$defs": {"Filter": {"type": "object", "required": ["field"], "properties": {"field": {"type": "string"}, "count": {"type": "integer"},
        "mode": {"enum": ["any", "all"]}}}}
}"##;

#[test]
fn valid_arguments_leave_as_they_came() {
    check(
        ISSUES,
        &[
            (r#"{"owner":"a"}"#, "as sent"),
            (r#"{ "owner" : "\u0061" , "score":1.50e3 }"#, "as sent"),
            (r#"{"owner":"a","since":null,"limit":null}"#, "as sent"),
            (r#"{"owner":"a","max_results":5.0}"#, "as sent"),
            (
                r#"{"owner":"a","extra":{"n":18446744073709551617,"s":"\/"}}"#,
                "as sent",
            ),
            (r#"{"owner":"5","id":"5"}"#, "as sent"),
        ],
    );
}

#[test]
fn what_can_have_meant_one_thing_is_repaired() {
    check(
        ISSUES,
        &[
            // All arguments as a string.
            (r#""{\"owner\":\"a\"}""#, r#"{"owner":"a"}"#),
            (r#""\"{\\\"owner\\\":\\\"a\\\"}\"""#, r#"{"owner":"a"}"#),
            (
                r#"" {\"owner\": \"a\", \"draft\": \"true\"} ""#,
                r#"{"owner":"a","draft":true}"#,
            ),
            // Numbers and booleans as strings.
            (
                r#"{"owner":"a","max_results":"5"}"#,
                r#"{"owner":"a","max_results":5}"#,
            ),
            (
                r#"{"owner":"a","max_results":" 5 "}"#,
                r#"{"owner":"a","max_results":5}"#,
            ),
            (
                r#"{"owner":"a","max_results":"5.0"}"#,
                r#"{"owner":"a","max_results":5}"#,
            ),
            (
                r#"{"owner":"a","max_results":"1e1"}"#,
                r#"{"owner":"a","max_results":10}"#,
            ),
            (
                r#"{"owner":"a","max_results":"\"5\""}"#,
                r#"{"owner":"a","max_results":5}"#,
            ),
            (
                r#"{"owner":"a","score":"-1.50"}"#,
                r#"{"owner":"a","score":-1.50}"#,
            ),
            (
                r#"{"owner":"a","draft":"true"}"#,
                r#"{"owner":"a","draft":true}"#,
            ),
            (
                r#"{"owner":"a","draft":"False"}"#,
                r#"{"owner":"a","draft":false}"#,
            ),
            (r#"{"owner":"a","limit":"7"}"#, r#"{"owner":"a","limit":7}"#),
            (
                r#"{"owner":"a","limit":"null"}"#,
                r#"{"owner":"a","limit":null}"#,
            ),
            (r#"{"owner":"a","level":"2"}"#, r#"{"owner":"a","level":2}"#),
            (
                r#"{"owner":"a","numbers":["1","2"]}"#,
                r#"{"owner":"a","numbers":[1,2]}"#,
            ),
            // Strings sent as something else.
            (r#"{"owner":5}"#, r#"{"owner":"5"}"#),
            (r#"{"owner":1.50}"#, r#"{"owner":"1.50"}"#),
            (
                r#"{"owner":"a","labels":[1,"b"]}"#,
                r#"{"owner":"a","labels":["1","b"]}"#,
            ),
            (
                r#"{"owner":"a","answer":true}"#,
                r#"{"owner":"a","answer":"true"}"#,
            ),
            // A single value instead of an array.
            (
                r#"{"owner":"a","labels":"bug"}"#,
                r#"{"owner":"a","labels":["bug"]}"#,
            ),
            (
                r#"{"owner":"a","labels":7}"#,
                r#"{"owner":"a","labels":["7"]}"#,
            ),
            (
                r#"{"owner":"a","numbers":"7"}"#,
                r#"{"owner":"a","numbers":[7]}"#,
            ),
            (
                r#"{"owner":"a","filters":{"field":"x"}}"#,
                r#"{"owner":"a","filters":[{"field":"x"}]}"#,
            ),
            // JSON in a string instead of an array or an object.
            (
                r#"{"owner":"a","labels":"[\"x\", \"y\"]"}"#,
                r#"{"owner":"a","labels":["x", "y"]}"#,
            ),
            (
                r#"{"owner":"a","numbers":"[1,\"2\"]"}"#,
                r#"{"owner":"a","numbers":[1,2]}"#,
            ),
            (
                r#"{"owner":"a","filter":"{\"field\":\"x\"}"}"#,
                r#"{"owner":"a","filter":{"field":"x"}}"#,
            ),
            (
                r#"{"owner":"a","filters":"{\"field\":\"x\",\"count\":\"3\"}"}"#,
                r#"{"owner":"a","filters":[{"field":"x","count":3}]}"#,
            ),
            // Null for an optional member.
            (r#"{"owner":"a","draft":null}"#, r#"{"owner":"a"}"#),
            (
                r#"{"state":null,"owner":"a","labels":null}"#,
                r#"{"owner":"a"}"#,
            ),
            (
                r#"{"owner":"a","filter":{"field":"x","count":null}}"#,
                r#"{"owner":"a","filter":{"field":"x"}}"#,
            ),
            // Letter case of an enum.
            (
                r#"{"owner":"a","state":"OPEN"}"#,
                r#"{"owner":"a","state":"open"}"#,
            ),
            (
                r#"{"owner":"a","state":"all "}"#,
                r#"{"owner":"a","state":"ALL"}"#,
            ),
            (
                r#"{"owner":"a","filters":[{"field":"x","mode":"Any"}]}"#,
                r#"{"owner":"a","filters":[{"field":"x","mode":"any"}]}"#,
            ),
            // Names in another spelling.
            (
                r#"{"owner":"a","maxResults":5}"#,
                r#"{"owner":"a","max_results":5}"#,
            ),
            (r#"{"Owner":"a"}"#, r#"{"owner":"a"}"#),
            (
                r#"{"owner":"a","max-results":"5"}"#,
                r#"{"owner":"a","max_results":5}"#,
            ),
            (
                r#"{"owner":"a","filter":{"Field":"x"}}"#,
                r#"{"owner":"a","filter":{"field":"x"}}"#,
            ),
            // Nested levels.
            (
                r#"{"owner":"a","filters":[{"field":"x"},{"field":1,"count":"2"}]}"#,
                r#"{"owner":"a","filters":[{"field":"x"},{"field":"1","count":2}]}"#,
            ),
            // Other parts keep their bytes.
            (
                r#"{ "extra" : {"n": 18446744073709551617, "d": [1.10] }, "owner" : "\u0061", "draft":"true"}"#,
                r#"{"extra":{"n": 18446744073709551617, "d": [1.10] },"owner":"\u0061","draft":true}"#,
            ),
            (
                r#"{"owner":"a","numbers":[18446744073709551617,"3"]}"#,
                r#"{"owner":"a","numbers":[18446744073709551617,3]}"#,
            ),
        ],
    );
}

#[test]
fn what_can_have_meant_more_is_explained() {
    check(
        ISSUES,
        &[
            ("{}", "! `owner` is required: string"),
            ("[]", "! `owner` is required: string"),
            (r#""""#, "! `owner` is required: string"),
            ("7", "! the arguments must be an object; got 7"),
            ("[1]", "! the arguments must be an object; got [1]"),
            (
                r#""list the issues""#,
                "! the arguments must be an object; got \"list the issues\"",
            ),
            (r#"{"owner":null}"#, "! `owner` must be string; got null"),
            (r#"{"owner":true}"#, "! `owner` must be string; got true"),
            (
                r#"{"owner":["a"]}"#,
                "! `owner` must be string; got [\"a\"]",
            ),
            (
                r#"{"owner":"a","state":"opened"}"#,
                "! `state` must be one of \"open\", \"closed\", \"ALL\"; got \"opened\"",
            ),
            (
                r#"{"owner":"a","max_results":"many"}"#,
                "! `max_results` must be integer; got \"many\"",
            ),
            (
                r#"{"owner":"a","max_results":"5.5"}"#,
                "! `max_results` must be integer; got \"5.5\"",
            ),
            (
                r#"{"owner":"a","max_results":""}"#,
                "! `max_results` must be integer; got \"\"",
            ),
            (
                r#"{"owner":"a","max_results":5.5}"#,
                "! `max_results` must be integer; got 5.5",
            ),
            (
                r#"{"owner":"a","max_results":500}"#,
                "! `max_results` must be at most 100; got 500",
            ),
            (
                r#"{"owner":"a","max_results":"0"}"#,
                "! `max_results` must be integer; got \"0\"",
            ),
            (
                r#"{"owner":"a","draft":1}"#,
                "! `draft` must be boolean; got 1",
            ),
            (
                r#"{"owner":"a","draft":"yes"}"#,
                "! `draft` must be boolean; got \"yes\"",
            ),
            (
                r#"{"owner":"a","labels":"x,y"}"#,
                "! `labels` must be string[]; got \"x,y\"",
            ),
            (
                r#"{"owner":"a","labels":["x",{}]}"#,
                "! `labels[1]` must be string; got {}",
            ),
            (
                r#"{"owner":"a","since":5.5,"limit":[]}"#,
                "! `limit` must be integer|null; got []",
            ),
            (
                r#"{"owner":"a","filter":{}}"#,
                "! `filter.field` is required: string",
            ),
            (
                r#"{"owner":"a","filters":[{"field":"x","count":"x"}]}"#,
                "! `filters[0].count` must be integer; got \"x\"",
            ),
            (
                r#"{"owner":"a","lable":["x"]}"#,
                "! `lable` is not a parameter; did you mean `labels`?",
            ),
            (
                r#"{"owner":"a","owners":"b"}"#,
                "! `owners` is not a parameter; still free: answer, draft, extra, filter, filters, id, labels, level, limit, max_results, …",
            ),
            (
                r#"{"owner":"a","maxResults":5,"max-results":6}"#,
                "! `max-results` is not a parameter; did you mean `max_results`?\n! `maxResults` is not a parameter; did you mean `max_results`?",
            ),
            (
                r#"{"owner":"a","maxResults":5,"max_results":6}"#,
                "! `maxResults` is not a parameter; still free: answer, draft, extra, filter, filters, id, labels, level, limit, numbers, …",
            ),
            // A repaired fault is not reported.
            (
                r#"{"owner":5,"draft":"true","state":"x"}"#,
                "! `state` must be one of \"open\", \"closed\", \"ALL\"; got \"x\"",
            ),
        ],
    );
}

#[test]
fn an_open_schema_keeps_unknown_names() {
    let schema = r#"{"type":"object","properties":{"file_path":{"type":"string"},"line":{"type":"integer"}},"required":["file_path"]}"#;
    check(
        schema,
        &[
            (r#"{"file_path":"a","Line":"x"}"#, "as sent"),
            (
                r#"{"filePath":"a","note":null}"#,
                r#"{"file_path":"a","note":null}"#,
            ),
            (
                r#"{"filePath":"a","file-path":"b"}"#,
                "! `file_path` is required: string; `file-path` is not a parameter: did you mean `file_path`?",
            ),
        ],
    );
}

#[test]
fn alternatives_are_told_apart_by_kind_or_tag() {
    let schema = r##"{"type":"object","required":["source"],"properties":{"source":{"oneOf":[{"$ref":"#/$defs/file"},{"$ref":"#/$defs/url"}]},
        "at":{"anyOf":[{"type":"integer"},{"type":"array","items":{"type":"integer"}}]}},
        "$defs":{"file":{"type":"object","properties":{"kind":{"const":"file"},"line":{"type":"integer"}},"required":["kind"]},
                 "url":{"type":"object","properties":{"kind":{"const":"url"},"retry":{"type":"boolean"}},"required":["kind","retry"]}}}"##;
    check(
        schema,
        &[
            (r#"{"source":{"kind":"file"}}"#, "as sent"),
            (
                r#"{"source":{"kind":"file","line":"3"}}"#,
                r#"{"source":{"kind":"file","line":3}}"#,
            ),
            (
                r#"{"source":"{\"kind\":\"url\",\"retry\":\"true\"}"}"#,
                r#"{"source":{"kind":"url","retry":true}}"#,
            ),
            (
                r#"{"source":{"kind":"file"},"at":"5"}"#,
                r#"{"source":{"kind":"file"},"at":5}"#,
            ),
            (
                r#"{"source":{"kind":"file"},"at":["5"]}"#,
                r#"{"source":{"kind":"file"},"at":[5]}"#,
            ),
            (
                r#"{"source":{"kind":"url"}}"#,
                "! `source.retry` is required: boolean",
            ),
            (
                r#"{"source":5}"#,
                r#"! `source` must be {kind: "file", line?: integer}|{kind: "url", retry: boolean}; got 5"#,
            ),
        ],
    );
}

#[test]
fn drafts_are_told_apart() {
    let tuple = r#"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"p":{"type":"array","items":[{"type":"integer"},{"type":"string"}]}}}"#;
    check(
        tuple,
        &[
            (r#"{"p":[1,"a"]}"#, "as sent"),
            (r#"{"p":["1","a"]}"#, r#"{"p":[1,"a"]}"#),
        ],
    );
    check(
        &tuple.replace(
            r#""$schema":"http://json-schema.org/draft-07/schema#","#,
            "",
        ),
        &[(r#"{"p":["1","a"]}"#, r#"{"p":[1,"a"]}"#)],
    );
    let prefix = r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"p":{"type":"array","prefixItems":[{"type":"integer"}],"items":false}}}"#;
    check(prefix, &[(r#"{"p":["1"]}"#, r#"{"p":[1]}"#)]);
    assert!(outcome(prefix, r#"{"p":[1,2]}"#).starts_with("! `p"));
    let draft4 = r#"{"type":"object","properties":{"n":{"type":"integer","minimum":0,"exclusiveMinimum":true}}}"#;
    check(
        draft4,
        &[
            (r#"{"n":1}"#, "as sent"),
            (r#"{"n":0}"#, "! `n` must be more than 0; got 0"),
        ],
    );
}

#[test]
fn absent_arguments_are_an_empty_object() {
    let open = Schema::compile(Some(&raw(r#"{"type":"object"}"#)));
    let null = raw("null");
    for absent in [None, Some(&*null)] {
        assert!(matches!(open.check(absent), Ok(Checked::AsSent(json)) if json.get() == "{}"));
    }
    let needy = Schema::compile(Some(&raw(r#"{"type":"object","required":["a"]}"#)));
    assert_eq!(
        needy.check(None).unwrap_err(),
        [Fault {
            path: "a".into(),
            message: "`a` is required".into()
        }]
    );
}

#[test]
fn without_a_usable_schema_arguments_pass() {
    let deep = format!("{}{}{}", r#"{"items":"#.repeat(80), "{}", "}".repeat(80));
    let large = format!(r#"{{"description":"{}"}}"#, "x".repeat(300_000));
    for schema in [
        r#"{"type":"no such type"}"#,
        r#"{"properties":{"a":{"required":true}}}"#,
        r#"{"$ref":"https://example.com/schema.json"}"#,
        r#"{"properties":{"a":{"$ref":"file:///etc/passwd"}}}"#,
        r#"{"$schema":"https://example.com/dialect","type":"object"}"#,
        r##"{"properties":{"a":{"$ref":"#/$defs/none"}}}"##,
        r#"{"properties":{"a":{"type":"string","pattern":"("}}}"#,
        "7",
        &deep,
        &large,
    ] {
        let compiled = Schema::compile(Some(&raw(schema)));
        assert!(
            is_unchecked(&compiled),
            "{}",
            &schema[..schema.len().min(100)]
        );
        let sent = raw(r#"{"a": 1}"#);
        assert!(
            matches!(compiled.check(Some(&sent)), Ok(Checked::AsSent(json)) if json.get() == sent.get())
        );
        let text = raw(r#""{\"a\": 1}""#);
        assert!(
            matches!(compiled.check(Some(&text)), Ok(Checked::Repaired { arguments, .. }) if arguments.get() == sent.get())
        );
        assert!(
            compiled.check(Some(&raw("7"))).is_err(),
            "a tool takes an object, whatever its schema"
        );
    }
    assert!(is_unchecked(&Schema::compile(None)));
}

#[test]
fn what_a_value_cannot_hold_is_not_checked() {
    let deep = format!(
        r#"{{"owner":1,"extra":{}{}}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    let large = format!(r#"{{"owner":1,"state":"{}"}}"#, "x".repeat(MAX_ARGUMENTS));
    check(
        ISSUES,
        &[
            (r#"{"owner":1,"score":1e400}"#, "as sent"),
            (r#"{"owner":1,"id":"\ud800"}"#, "as sent"),
        ],
    );
    check(ISSUES, &[(&deep, "as sent"), (&large, "as sent")]);
}

#[test]
fn a_format_is_no_fault() {
    check(
        r#"{"properties":{"a":{"type":"string","format":"uri"},"b":{"type":"string","format":"date"}}}"#,
        &[(r#"{"a":"no uri","b":"tomorrow"}"#, "as sent")],
    );
}

#[test]
fn a_pattern_cannot_take_long() {
    let strings = format!(
        r#"{{"a":["{}"]}}"#,
        vec!["a".repeat(40) + "!"; 1_000].join(r#"",""#)
    );
    for pattern in [
        "^(a+)+$",
        r"^(?=a)(a+)+$",
        r"^(a|aa)+(?!b)$",
        r"^(?!x)(([a-z])+.)+[A-Z]([a-z])+$",
    ] {
        let schema = format!(
            r#"{{"properties":{{"a":{{"type":"array","items":{{"type":"string","pattern":{}}}}}}}}}"#,
            Value::from(pattern)
        );
        let compiled = Schema::compile(Some(&raw(&schema)));
        assert!(!is_unchecked(&compiled), "{pattern}");
        let sent = raw(&strings);
        let started = Instant::now();
        drop(compiled.check(Some(&sent)));
        assert!(
            started.elapsed() < Duration::from_secs(5),
            "{pattern}: {:?}",
            started.elapsed()
        );
    }
    let look_ahead = r#"{"properties":{"mail":{"type":"string","pattern":"^(?!\\.)(?!.*\\.\\.)[a-z.]+@[a-z.]+$"}}}"#;
    check(look_ahead, &[(r#"{"mail":"a.b@c.d"}"#, "as sent")]);
    assert!(
        outcome(look_ahead, r#"{"mail":"a..b@c.d"}"#)
            .starts_with("! `mail` must match the pattern")
    );
    let huge = raw(r#"{"properties":{"a":{"pattern":"((a{1000}){1000}){1000}"}}}"#);
    assert!(is_unchecked(&Schema::compile(Some(&huge))));
}

#[test]
fn references_that_double_cannot_take_long() {
    let doubling: Vec<_> = (0..40)
        .map(|n| {
            format!(
                r##""d{n}":{{"allOf":[{{"$ref":"#/$defs/d{0}"}},{{"$ref":"#/$defs/d{0}"}}]}}"##,
                n + 1
            )
        })
        .collect();
    let schema = format!(
        r##"{{"properties":{{"a":{{"$ref":"#/$defs/d0"}}}},"$defs":{{{},"d40":{{"type":"integer"}}}}}}"##,
        doubling.join(",")
    );
    let started = Instant::now();
    let compiled = Schema::compile(Some(&raw(&schema)));
    for sent in [r#"{"a":5}"#, r#"{"a":{"b":1}}"#, r#"{"a":"x"}"#] {
        drop(compiled.check(Some(&raw(sent))));
    }
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn many_alternatives_for_many_items_cannot_take_long() {
    let branches: Vec<_> = (0..3_000)
        .map(|n| format!(r#"{{"properties":{{"k":{{"const":{n}}}}},"required":["k"]}}"#))
        .collect();
    let wide = format!(
        r#"{{"properties":{{"a":{{"items":{{"anyOf":[{}]}}}}}}}}"#,
        branches.join(",")
    );
    let tree = r##"{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","properties":{"a":{"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}]}}}}}"##;
    for (schema, small, large) in [
        (
            &*wide,
            r#"{"a":[{}]}"#.to_owned(),
            format!(r#"{{"a":[{}]}}"#, vec!["{}"; 10_000].join(",")),
        ),
        (
            tree,
            r#"{"a":{"a":7}}"#.to_owned(),
            format!("{}7{}", r#"{"a":"#.repeat(40), "}".repeat(40)),
        ),
    ] {
        let compiled = Schema::compile(Some(&raw(schema)));
        let started = Instant::now();
        assert!(compiled.check(Some(&raw(&small))).is_err());
        assert!(matches!(
            compiled.check(Some(&raw(&large))),
            Ok(Checked::AsSent(_))
        ));
        assert!(
            started.elapsed() < Duration::from_secs(5),
            "{:?}",
            started.elapsed()
        );
    }
}

#[test]
fn faults_are_few_and_echo_little() {
    let many: Vec<_> = (0..30).map(|n| format!(r#""unknown_{n}":1"#)).collect();
    let schema = Schema::compile(Some(&raw(ISSUES)));
    let faults = schema
        .check(Some(&raw(&format!("{{{}}}", many.join(",")))))
        .unwrap_err();
    assert_eq!(faults.len(), MAX_FAULTS);
    let secret = "s".repeat(61);
    let faults = schema
        .check(Some(&raw(&format!(
            r#"{{"owner":"a","state":"{secret}"}}"#
        ))))
        .unwrap_err();
    assert_eq!(
        faults,
        [Fault {
            path: "state".into(),
            message:
                r#"`state` must be one of "open", "closed", "ALL"; got a string of 61 characters"#
                    .into()
        }]
    );
    let long: Vec<_> = (0..40).map(|n| format!(r#""region-{n}""#)).collect();
    let schema = format!(
        r#"{{"properties":{{"r":{{"enum":[{}]}}}}}}"#,
        long.join(",")
    );
    let message = outcome(&schema, r#"{"r":"regoin-33"}"#);
    assert!(
        message.starts_with(r#"! `r` must be one of "region-33", "region-0", "#),
        "{message}"
    );
    assert!(
        message.contains(r#""region-9", … (40 in all); got "regoin-33""#),
        "{message}"
    );
}

#[test]
fn a_repair_says_where_and_what() {
    let schema = Schema::compile(Some(&raw(ISSUES)));
    let sent =
        raw(r#"{"owner":5,"maxResults":"7","filters":[{"field":"x","mode":"ANY"}],"draft":null}"#);
    let Ok(Checked::Repaired { repairs, .. }) = schema.check(Some(&sent)) else {
        panic!("nothing was repaired")
    };
    let repairs: Vec<_> = repairs
        .iter()
        .map(|repair| (repair.path.as_str(), repair.what.as_str()))
        .collect();
    assert_eq!(
        repairs,
        [
            ("owner", "a number for a string"),
            ("max_results", r#"the spelling "maxResults""#),
            ("max_results", "a number as a string"),
            ("filters[0].mode", r#"the letter case of "ANY""#),
            ("draft", "null for an optional parameter"),
        ]
    );
}
