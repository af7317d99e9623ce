use serde_json::value::RawValue;

use super::*;
use crate::config::Preset;
use crate::mcp::Object;
use crate::secret::Secret;

fn wanted(arguments: &[(&str, Preset)]) -> Override {
    let arguments = arguments.iter();
    Override {
        arguments: arguments
            .map(|(name, preset)| ((*name).to_owned(), preset.clone()))
            .collect(),
        ..Override::default()
    }
}

fn fixed(json: &str) -> Preset {
    Preset::Fixed(Secret::new(json.to_owned()))
}

/// The schema that an override makes of one.
fn schema(schema: &str, wanted: &Override) -> Result<String, String> {
    let tool = format!(r#"{{"name":"t","inputSchema":{schema}}}"#);
    let tool = RawValue::from_string(tool).unwrap();
    let adapted = definition::adapted(&tool, wanted)?;
    let object = Object::parse(&adapted).unwrap();
    Ok(object.get("inputSchema").unwrap().get().to_owned())
}

#[test]
fn arguments_leave_the_schema_and_its_other_bytes_stay() {
    let own = r#"{"type":"object","properties":{"a":{"n":1e400},"\u0062":true,"c":{}},"required":["a","b","c"],"x":1.50}"#;
    let made = schema(own, &wanted(&[("b", fixed("1"))])).unwrap();
    let expected =
        r#"{"type":"object","properties":{"a":{"n":1e400},"c":{}},"required":["a","c"],"x":1.50}"#;
    assert_eq!(made, expected);
    let default = |shown| Preset::Default {
        json: Secret::new("[7]".to_owned()),
        shown,
    };
    let made = schema(own, &wanted(&[("c", default(true))])).unwrap();
    assert!(made.contains(r#""c":{"default":[7]}"#) && made.contains(r#"["a","b"]"#));
    let made = schema(own, &wanted(&[("c", default(false))])).unwrap();
    assert!(!made.contains('7'), "{made}");
}

#[test]
fn a_schema_with_conditions_on_a_hidden_argument_is_refused() {
    for (more, reason) in [
        (
            r#","anyOf":[{"required":["a"]},{"required":["b"]}]"#,
            "`anyOf`",
        ),
        (r#","dependentRequired":{"b":["a"]}"#, "`dependentRequired`"),
        (r##","if":{"properties":{"a":{"const":1}}}"##, "`if`"),
        (r##","allOf":[{"$ref":"#/properties/a"}]"##, "`allOf`"),
    ] {
        let own = format!(r#"{{"properties":{{"a":{{}},"b":{{}}}}{more}}}"#);
        let error = schema(&own, &wanted(&[("a", Preset::Hidden)])).unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
    let own = r##"{"properties":{"a":{},"b":{"$ref":"#/properties/a"}}}"##;
    assert!(schema(own, &wanted(&[("a", Preset::Hidden)])).is_err());
    for own in ["true", "[]", r#"{"properties":[]}"#, r#"{"$ref":"x"}"#] {
        assert!(schema(own, &wanted(&[("a", fixed("1"))])).is_err(), "{own}");
    }
}
