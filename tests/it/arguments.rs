//! Arguments in the shapes that agents send, for the schemas of real tools: what can have meant one thing only reaches the
//! server as if it had been sent so, and what cannot does not reach it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::support::corpus;
use crate::support::script::echo;
use crate::support::{Client, Server, Setup};

/// Tools that are tried.
const MOST_TOOLS: usize = 160;

/// A tool with arguments that fit.
struct Tool {
    name: String,
    properties: Map<String, Value>,
    required: Vec<String>,
    valid: Map<String, Value>,
}

/// How a shape bends arguments, where it can.
type Bend = fn(&Tool) -> Option<Value>;

/// What agents send, and what is meant by it.
const SHAPES: &[(&str, Bend)] = &[
    ("all as a string", |tool| {
        Some(Value::String(object(&tool.valid).to_string()))
    }),
    ("all as a string, encoded twice", |tool| {
        Some(Value::String(
            Value::String(object(&tool.valid).to_string()).to_string(),
        ))
    }),
    ("a number as a string", |tool| {
        replace(tool, |value, _| {
            value.is_number().then(|| json!(value.to_string()))
        })
    }),
    ("a boolean as a string", |tool| {
        replace(tool, |value, _| {
            value.is_boolean().then(|| json!(value.to_string()))
        })
    }),
    ("a single value for a list", |tool| {
        replace(tool, |value, _| {
            value
                .as_array()
                .filter(|items| items.len() == 1)
                .map(|items| items[0].clone())
        })
    }),
    ("a list as a string", |tool| {
        replace(tool, |value, _| {
            value.is_array().then(|| json!(value.to_string()))
        })
    }),
    ("null for what is optional", |tool| {
        let absent = tool.properties.iter().find(|(name, schema)| {
            !tool.valid.contains_key(*name)
                && !tool.required.contains(name)
                && schema["type"].is_string()
        })?;
        let mut bent = tool.valid.clone();
        bent.insert(absent.0.clone(), Value::Null);
        Some(object(&bent))
    }),
    ("another letter case of a value", |tool| {
        replace(tool, |value, schema| {
            let values = schema["enum"].as_array()?;
            let other = value.as_str()?.to_uppercase();
            let fold = |value: &Value| value.as_str().map(str::to_lowercase);
            let is_unique = values
                .iter()
                .filter(|known| fold(known) == fold(value))
                .count()
                == 1;
            (is_unique && json!(other) != *value).then(|| json!(other))
        })
    }),
    ("another spelling of a key", |tool| {
        // One that is not required may be anything else that the tool understands.
        let is_plain = |name: &str| name.contains('_') && name.is_ascii();
        let mut required = tool
            .valid
            .iter()
            .filter(|(name, _)| tool.required.contains(name));
        let (name, value) = required.find(|(name, _)| is_plain(name))?;
        let spelled: String = name
            .split('_')
            .enumerate()
            .map(|(at, word)| {
                if at == 0 {
                    word.to_owned()
                } else {
                    word[..word.len().min(1)].to_uppercase() + word.get(1..).unwrap_or("")
                }
            })
            .collect();
        if tool.properties.contains_key(&spelled) {
            return None;
        }
        let mut bent: Map<String, Value> = tool.valid.clone();
        bent.remove(name);
        bent.insert(spelled, value.clone());
        Some(object(&bent))
    }),
];

#[test]
fn what_agents_send_reaches_real_tools_as_it_was_meant() {
    let Some(tools) = tools() else { return };
    let mut client = connect(&tools);
    let mut tried: BTreeMap<&str, usize> = BTreeMap::new();
    for tool in &tools {
        let valid = call(&mut client, tool, &object(&tool.valid));
        assert_eq!(valid.arguments(), object(&tool.valid), "{}", tool.name);
        assert!(
            !valid.is_repaired(),
            "{}: valid arguments were touched",
            tool.name
        );
        for (shape, bend) in SHAPES {
            let Some(bent) = bend(tool) else { continue };
            let answer = call(&mut client, tool, &bent);
            assert_eq!(
                answer.arguments(),
                object(&tool.valid),
                "{} with {shape}: {bent}",
                tool.name
            );
            assert!(
                answer.is_repaired(),
                "{} with {shape}: {bent} is not noted",
                tool.name
            );
            *tried.entry(shape).or_default() += 1;
        }
    }
    eprintln!("{} real schemas; {tried:?}", tools.len());
    assert!(tools.len() >= 60, "{} schemas", tools.len());
    assert_eq!(tried.len(), SHAPES.len(), "{tried:?}");
    assert!(tried.values().all(|count| *count >= 5), "{tried:?}");
    assert!(tried.values().sum::<usize>() >= 300, "{tried:?}");
    client.finish();
}

#[test]
fn what_has_no_one_meaning_is_said_and_not_sent() {
    let Some(tools) = tools() else { return };
    let mut client = connect(&tools);
    let (mut missing, mut wrong) = (0, 0);
    for tool in &tools {
        if let Some(required) = tool
            .required
            .iter()
            .find(|name| tool.valid.contains_key(*name))
        {
            let mut bent = tool.valid.clone();
            bent.remove(required);
            let told = execute(&mut client, tool, &object(&bent)).tool_error();
            assert!(
                told.contains(required.as_str()) && told.contains("was not called"),
                "{}: {told}",
                tool.name
            );
            assert!(
                told.contains(&format!("a__{}(", tool.name)),
                "no signature: {told}"
            );
            missing += 1;
        }
        let simple = tool.valid.iter().find(|(name, _)| {
            matches!(
                tool.properties[*name]["type"].as_str(),
                Some("string" | "integer" | "number" | "boolean")
            )
        });
        if let Some((name, _)) = simple {
            let mut bent = tool.valid.clone();
            bent.insert(name.clone(), json!({ "surprise": [1, 2] }));
            let told = execute(&mut client, tool, &object(&bent)).tool_error();
            assert!(
                told.contains(name.as_str()) && told.contains("was not called"),
                "{}: {told}",
                tool.name
            );
            wrong += 1;
        }
    }
    eprintln!(
        "{missing} without what is required, {wrong} with an object in a plain value's place"
    );
    assert!(missing >= 60 && wrong >= 60, "{missing} and {wrong}");
    client.finish();
}

/// An answer of a tool that echoes.
struct Echoed(Value);

impl Echoed {
    fn arguments(&self) -> Value {
        self.0["structuredContent"]["arguments"].clone()
    }

    fn is_repaired(&self) -> bool {
        self.0["_meta"]["mcpzip/repairs"]
            .as_array()
            .is_some_and(|repairs| {
                !repairs.is_empty()
                    && repairs
                        .iter()
                        .all(|repair| repair["path"].is_string() && repair["what"].is_string())
            })
    }
}

#[track_caller]
fn call(client: &mut Client, tool: &Tool, arguments: &Value) -> Echoed {
    let answer = execute(client, tool, arguments);
    assert!(
        !answer.is_tool_error(),
        "{} with {arguments}: {}",
        tool.name,
        answer.text()
    );
    Echoed(answer.value())
}

#[track_caller]
fn execute(client: &mut Client, tool: &Tool, arguments: &Value) -> crate::support::Message {
    client.execute_with(&format!("a__{}", tool.name), &arguments.to_string())
}

fn connect(tools: &[Tool]) -> Client {
    let server = tools.iter().fold(Server::new(), |server, tool| {
        let schema =
            json!({ "type": "object", "properties": tool.properties, "required": tool.required });
        let definition = json!({ "name": tool.name, "inputSchema": schema });
        server.tool_as(&tool.name, &definition.to_string(), [echo()])
    });
    Setup::new().server("a", server).log_level("warn").connect()
}

/// Tools of different servers whose arguments can be made up, evenly out of the corpora.
fn tools() -> Option<Vec<Tool>> {
    let corpora = [
        "dev/corpus.json",
        "dev/public/azure/corpus.json",
        "dev/public/mcpproxy/corpus.json",
    ];
    let mut known = Vec::new();
    for corpus in corpora {
        known.extend(corpus::tools(corpus)?);
    }
    let usable: Vec<_> = known
        .iter()
        .filter_map(|tool| usable(&tool.definition["inputSchema"]))
        .collect();
    let step = (usable.len() / MOST_TOOLS).max(1);
    let taken = usable.into_iter().step_by(step).enumerate();
    Some(
        taken
            .map(|(at, tool)| Tool {
                name: format!("t{at}"),
                ..tool
            })
            .collect(),
    )
}

/// The schema with arguments that fit it, if they can be made up.
fn usable(schema: &Value) -> Option<Tool> {
    let known = [
        "type",
        "properties",
        "required",
        "additionalProperties",
        "$schema",
        "title",
        "description",
    ];
    if schema
        .as_object()?
        .keys()
        .any(|key| !known.contains(&key.as_str()))
        || schema["additionalProperties"].is_object()
    {
        return None;
    }
    let properties = schema["properties"]
        .as_object()
        .filter(|properties| !properties.is_empty())?
        .clone();
    let required: Vec<String> = schema["required"]
        .as_array()
        .map(|names| {
            names
                .iter()
                .filter_map(|name| name.as_str().map(str::to_owned))
                .collect()
        })
        .unwrap_or_default();
    let mut valid = Map::new();
    for (at, (name, schema)) in properties.iter().enumerate() {
        let made = made_up(schema);
        if required.contains(name) {
            valid.insert(name.clone(), made?);
        } else if let Some(made) = made.filter(|_| at % 3 != 2) {
            valid.insert(name.clone(), made);
        }
    }
    (!valid.is_empty()).then_some(Tool {
        name: String::new(),
        properties,
        required,
        valid,
    })
}

/// A value that fits, where that is plain to see.
fn made_up(schema: &Value) -> Option<Value> {
    let odd = [
        "pattern",
        "format",
        "minLength",
        "anyOf",
        "oneOf",
        "allOf",
        "$ref",
        "const",
        "multipleOf",
        "not",
    ];
    if schema
        .as_object()?
        .keys()
        .any(|key| odd.contains(&key.as_str()))
    {
        return None;
    }
    if let Some(values) = schema["enum"].as_array() {
        return values
            .first()
            .filter(|value| value.is_string() && schema["type"] == "string")
            .cloned();
    }
    match schema["type"].as_str()? {
        "string" => Some(json!("some text")),
        "boolean" => Some(json!(true)),
        "integer" | "number" if schema["maximum"].as_f64().is_none_or(|most| most >= 7.0) => {
            let least = schema["minimum"].as_i64().unwrap_or(7).max(7);
            Some(json!(least)).filter(|_| least == 7)
        }
        "array" if schema["minItems"].is_null() => Some(json!([made_up(&schema["items"])?])),
        _ => None,
    }
}

/// The arguments with the first value replaced for which there is something else.
fn replace(tool: &Tool, other: fn(&Value, &Value) -> Option<Value>) -> Option<Value> {
    let mut bent = tool.valid.clone();
    let found = tool
        .valid
        .iter()
        .find_map(|(name, value)| Some((name, other(value, &tool.properties[name])?)));
    let (name, value) = found?;
    bent.insert(name.clone(), value);
    Some(object(&bent))
}

fn object(members: &Map<String, Value>) -> Value {
    Value::Object(members.clone())
}
