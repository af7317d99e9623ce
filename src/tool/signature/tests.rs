use super::*;

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

fn hit_of(tool: &str) -> String {
    let json = raw(tool);
    render_hit(
        &ServerName::new("s").unwrap(),
        &Definition::parse(&json).unwrap(),
    )
}

/// Checks the signature of a tool `s__t` with this input schema.
#[track_caller]
fn check(schema: &str, parameters: &str) {
    assert_eq!(
        hit_of(&format!(r#"{{"name":"t","inputSchema":{schema}}}"#)),
        format!("s__t({parameters})"),
        "{schema}"
    );
}

#[test]
fn a_hit_is_a_signature_and_a_sentence() {
    let hit = hit_of(
        r#"{"name":"create_issue","description":"Create a new issue in a repository. It is open at first.",
            "annotations":{"readOnlyHint":false,"destructiveHint":false},"inputSchema":{"type":"object","required":["owner","repo","title"],
            "properties":{"labels":{"type":"array","items":{"type":"string"}},"owner":{"type":"string"},"repo":{"type":"string"},
            "body":{"type":"string"},"title":{"type":"string"}}}}"#,
    );
    assert_eq!(
        hit,
        "s__create_issue(owner: string, repo: string, title: string, labels?: string[], body?: string) [write]\n  \
         Create a new issue in a repository."
    );
}

#[test]
fn every_kind_of_schema_has_a_type() {
    let one = |schema: &str, expression: &str| {
        check(
            &format!(
                r##"{{"properties":{{"a":{schema}}},"required":["a"],"$defs":{{"D":{{"type":"integer"}},"A~/B":{{"const":1}},"L":{{"$ref":"#/$defs/L"}},
            "T":{{"type":"object","properties":{{"next":{{"$ref":"#/$defs/T"}}}}}}}},"definitions":{{"O":{{"enum":["x"]}}}}}}"##
            ),
            &format!("a: {expression}"),
        );
    };
    for (schema, expression) in [
        (r#"{"type":"string"}"#, "string"),
        (r#"{"type":"number"}"#, "number"),
        (r#"{"type":"integer"}"#, "integer"),
        (r#"{"type":"boolean"}"#, "boolean"),
        (r#"{"type":"null"}"#, "null"),
        (r#"{"type":"object"}"#, "object"),
        (r#"{"type":"array"}"#, "any[]"),
        ("{}", "any"),
        ("true", "any"),
        ("7", "any"),
        (r#"{"type":"strange"}"#, "any"),
        (r#"{"type":"array","items":{"type":"string"}}"#, "string[]"),
        (
            r#"{"items":{"type":"array","items":{"type":"number"}}}"#,
            "number[][]",
        ),
        (
            r#"{"type":"array","items":{"type":["string","number"]}}"#,
            "(string|number)[]",
        ),
        (
            r#"{"type":"array","items":{"enum":["a","b"]}}"#,
            r#"("a"|"b")[]"#,
        ),
        (
            r#"{"type":"array","prefixItems":[{"type":"number"},{"type":"string"}]}"#,
            "[number, string]",
        ),
        (
            r#"{"type":"array","items":[{"type":"number"}]}"#,
            "[number]",
        ),
        (
            r#"{"type":"string","enum":["open","closed"]}"#,
            r#""open"|"closed""#,
        ),
        (r#"{"enum":[1,null,"a"]}"#, r#"1|null|"a""#),
        (r#"{"const":"x"}"#, r#""x""#),
        (r#"{"type":["string","null"]}"#, "string|null"),
        (r#"{"type":"string","nullable":true}"#, "string|null"),
        (
            r#"{"anyOf":[{"type":"null"},{"type":"string"}]}"#,
            "string|null",
        ),
        (
            r#"{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]}"#,
            "string|string[]",
        ),
        (r#"{"oneOf":[{"const":"a"},{"const":"b"}]}"#, r#""a"|"b""#),
        (
            r#"{"anyOf":[{"type":"string","minLength":1},{"type":"string","format":"uri"}]}"#,
            "string",
        ),
        (
            r#"{"allOf":[{"description":"x"},{"type":"string"}]}"#,
            "string",
        ),
        (r##"{"allOf":[{"$ref":"#/$defs/D"}]}"##, "integer"),
        (r##"{"$ref":"#/$defs/D","description":"x"}"##, "integer"),
        (r##"{"$ref":"#/$defs/A~0~1B"}"##, "1"),
        (r##"{"$ref":"#/%24defs/D"}"##, "integer"),
        (r##"{"$ref":"#/definitions/O"}"##, r#""x""#),
        (r##"{"$ref":"#/$defs/None"}"##, "…"),
        (r#"{"$ref":"https://example.com/x.json"}"#, "…"),
        (r##"{"$ref":"#/$defs/L"}"##, "…"),
        (r##"{"$ref":"#/$defs/T"}"##, "{next?: {…}}"),
        (
            r#"{"type":"object","properties":{"b":{"type":"number"},"a":{"type":"string"}},"required":["a"]}"#,
            "{a: string, b?: number}",
        ),
        (
            r#"{"type":"object","properties":{"a":{"type":"object","properties":{"b":{}}}}}"#,
            "{a?: {…}}",
        ),
        (
            r#"{"type":"object","additionalProperties":{"type":"string"}}"#,
            "{[key]: string}",
        ),
        (r#"{"type":"object","additionalProperties":true}"#, "object"),
        (
            r#"{"allOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"b":{"type":"string"}},"required":["b"]}]}"#,
            "{b: string, a?: string}",
        ),
        (r#"{"type":"string","format":"date"}"#, "string<date>"),
        (r#"{"type":"string","format":"uri"}"#, "string"),
    ] {
        one(schema, expression);
    }
}

#[test]
fn a_tools_own_schema_may_be_odd() {
    check("7", "");
    check("{}", "");
    check(r#"{"type":"object","properties":[]}"#, "");
    check(r#"{"required":["ghost"]}"#, "ghost: any");
    check(
        r#"{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}}}"#,
        "a?: string",
    );
    check(
        r##"{"$ref":"#/$defs/I","$defs":{"I":{"properties":{"a":{"type":"string"}},"required":["a"]}}}"##,
        "a: string",
    );
    check(
        r#"{"properties":{"user id":{"type":"string"},"a-b.c":{"type":"string"}}}"#,
        r#""user id"?: string, a-b.c?: string"#,
    );
    check(
        r#"{"properties":{"a":{"type":"string"}},"required":["a"],"anyOf":[{"required":["a"]},{"required":["b"]}]}"#,
        "a: string",
    );
}

#[test]
fn a_name_cannot_drive_a_terminal() {
    assert_eq!(
        hit_of(r#"{"name":"a b\u001b[2J\u0007\n/ü"}"#),
        "s__a b /ü()"
    );
    check(
        r#"{"properties":{"a\u001b[31m":{"enum":["\u001b[0mx"]}}}"#,
        r#""a\u001b[31m"?: "\u001b[0mx""#,
    );
}

#[test]
fn optional_parameters_give_way_before_required_ones() {
    let optional: Vec<_> = (0..40)
        .map(|n| format!(r#""optional_{n}":{{"type":"string"}}"#))
        .collect();
    let states: Vec<_> = (0..20).map(|n| format!(r#""state_{n}""#)).collect();
    let hit = hit_of(&format!(
        r#"{{"name":"t","description":"{}","inputSchema":{{"properties":{{{},"state":{{"enum":[{}]}}}},"required":["state"]}}}}"#,
        "many words ".repeat(30),
        optional.join(","),
        states.join(",")
    ));
    assert!(
        hit.starts_with(&format!("s__t(state: {}, …)\n", states.join("|"))),
        "{hit}"
    );
    assert!(
        hit.ends_with("many words…") || hit.ends_with("many…"),
        "{hit}"
    );
}

#[test]
fn hits_share_their_budget() {
    let long: Vec<_> = (0..60)
        .map(|n| format!(r#""some_parameter_{n}":{{"type":"string"}}"#))
        .collect();
    let required: Vec<_> = (0..60)
        .map(|n| format!(r#""some_parameter_{n}""#))
        .collect();
    let long = raw(&format!(
        r#"{{"name":"long","description":"Long.","inputSchema":{{"properties":{{{}}},"required":[{}]}}}}"#,
        long.join(","),
        required.join(",")
    ));
    let short = raw(
        r#"{"name":"short","description":"Short.","inputSchema":{"properties":{"a":{"type":"string"}}}}"#,
    );
    let server = ServerName::new("s").unwrap();
    let (long, short) = (
        Definition::parse(&long).unwrap(),
        Definition::parse(&short).unwrap(),
    );
    let text = render_hits([(&server, &short), (&server, &long), (&server, &long)], 180).join("\n");
    assert!(estimate(&text) <= 180, "{} tokens: {text}", estimate(&text));
    assert!(
        text.starts_with("s__short(a?: string)\n  Short.\ns__long(some_parameter_0: string, "),
        "{text}"
    );
    assert!(text.ends_with(", …)\n  Long."), "{text}");
}

#[test]
fn a_hostile_schema_is_read_in_bounded_time() {
    let doubling: Vec<_> = (0..40)
        .map(|n| {
            format!(
                r##""d{n}":{{"anyOf":[{{"$ref":"#/$defs/d{0}"}},{{"$ref":"#/$defs/d{0}"}}]}}"##,
                n + 1
            )
        })
        .collect();
    let schema = format!(
        r##"{{"properties":{{"a":{{"$ref":"#/$defs/d0"}}}},"$defs":{{{}}}}}"##,
        doubling.join(",")
    );
    check(&schema, "a?: …");
    let deep = format!(
        r#"{{"properties":{{"a":{}{}}}}}"#,
        r#"{"items":"#.repeat(100),
        "{}".to_owned() + &"}".repeat(100)
    );
    check(&deep, "a?: …[][][][][][][][][][]");
}
