//! Reads all operations of a description. A fault costs its operation, and says why.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::document::{Document, servers_of};
use super::names::{Named, names};
use super::operation::{
    Body, Encoding, Form, Operation, Parameter, ParameterLocation, Style, is_json,
};
use super::schema::{Converter, Schemas};
use super::swagger;
use crate::config::OpenApi;

const METHODS: &[&str] = &[
    "get", "put", "post", "delete", "options", "head", "patch", "trace", "query",
];

/// Headers that a request has for other reasons (OpenAPI 3.1, 4.8.12).
const OWN_HEADERS: &[&str] = &[
    "accept",
    "content-type",
    "authorization",
    "content-length",
    "host",
    "connection",
    "transfer-encoding",
    "cookie",
];

/// The tools of a description.
#[derive(Debug)]
pub(in crate::sources) struct Api {
    /// The credentials that the description asks for, each as part of a sentence.
    pub(super) logins: Vec<String>,
    /// The servers that the description names.
    pub(super) servers: Vec<String>,
    pub(super) tools: BTreeMap<String, Box<[u8]>>,
    pub(super) schemas: Schemas,
    /// The operations that are no tools for a fault, with the reasons.
    pub(super) faults: Vec<Fault>,
}

/// An operation that did not become a tool.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) reason: String,
}

/// The headers and parameters that the entry adds to each request. Parameters of these names are not arguments.
#[derive(Debug, Default)]
pub(in crate::sources) struct Given {
    /// Names of headers, in lower case.
    pub(super) headers: Vec<String>,
    /// Names of query parameters.
    pub(super) query: Vec<String>,
}

/// The members and parameters of an operation of Swagger 2, converted.
type Older = (Map<String, Value>, Vec<Value>);

struct Found<'d> {
    method: &'static str,
    path: &'d str,
    item: &'d Value,
    operation: &'d Map<String, Value>,
}

impl Api {
    /// Reads a description.
    ///
    /// # Errors
    /// The reason why it is none.
    pub(super) fn read(bytes: &[u8], openapi: &OpenApi, given: &Given) -> Result<Self, String> {
        Ok(Self::of(&Document::parse(bytes)?, openapi, given))
    }

    /// The tools of a description.
    pub(in crate::sources) fn of(document: &Document, openapi: &OpenApi, given: &Given) -> Self {
        let mut faults = Vec::new();
        let found = found(document, &mut faults);
        let id = |one: &Found<'_>| {
            one.operation
                .get("operationId")
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let ids: Vec<Option<String>> = found.iter().map(id).collect();
        let named: Vec<Named<'_>> = found
            .iter()
            .zip(&ids)
            .map(|(one, id)| Named {
                id: id.as_deref(),
                method: one.method,
                path: one.path,
            })
            .collect();
        let names = names(&named);
        // Converted copies of parameters of Swagger 2 live as long as the converter.
        let converted: Vec<Option<Older>> = found
            .iter()
            .map(|one| {
                document
                    .is_older
                    .then(|| older(one, document))
                    .and_then(Result::ok)
            })
            .collect();
        let mut converter = Converter::new(document.root());
        let mut operations = Vec::new();
        for ((one, name), older) in found.iter().zip(names).zip(&converted) {
            let tags = one.operation.get("tags").and_then(Value::as_array);
            let tags: Vec<String> = tags
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect();
            let matches = |patterns: &[crate::config::OperationPattern]| {
                patterns
                    .iter()
                    .any(|pattern| pattern.matches(&name, one.method, one.path, &tags))
            };
            if !openapi.include.is_empty() && !matches(&openapi.include)
                || matches(&openapi.exclude)
            {
                continue;
            }
            let reader = Reader { document, given };
            let (members, parameters) = match older {
                Some((members, parameters)) => (members, Ok(parameters.iter().collect())),
                None => (one.operation, reader.parameters(one)),
            };
            let read = parameters
                .and_then(|parameters| reader.operation(one, members, &parameters, &mut converter));
            match read {
                Ok(operation) => operations.push((name, operation)),
                Err(reason) => faults.push(Fault {
                    method: one.method.to_ascii_uppercase(),
                    path: one.path.to_owned(),
                    reason,
                }),
            }
        }
        let schemas = converter.finish();
        let mut tools = BTreeMap::new();
        for (name, mut operation) in operations {
            operation.name_arguments(&schemas);
            if let Ok(json) = serde_json::to_vec(&operation) {
                tools.insert(name, json.into());
            }
        }
        Self {
            logins: document.logins(),
            servers: document.servers(),
            tools,
            schemas,
            faults,
        }
    }

    /// The operation of a tool.
    pub(in crate::sources) fn operation(&self, name: &str) -> Option<Operation> {
        serde_json::from_slice(self.tools.get(name)?).ok()
    }
}

/// All operations, in the order of the description.
fn found<'d>(document: &'d Document, faults: &mut Vec<Fault>) -> Vec<Found<'d>> {
    let mut all = Vec::new();
    let paths = document.root().get("paths").and_then(Value::as_object);
    for (path, item) in paths
        .into_iter()
        .flatten()
        .filter(|(path, _)| path.starts_with('/'))
    {
        let item = match document.resolved(item) {
            Ok(item) => item,
            Err(reason) => {
                let (method, path) = ("*".to_owned(), path.clone());
                faults.push(Fault {
                    method,
                    path,
                    reason,
                });
                continue;
            }
        };
        for method in METHODS {
            match item.get(*method) {
                Some(Value::Object(operation)) => all.push(Found {
                    method,
                    path,
                    item,
                    operation,
                }),
                None | Some(Value::Null) => {}
                Some(_) => faults.push(Fault {
                    method: method.to_ascii_uppercase(),
                    path: path.clone(),
                    reason: "it is not an object".to_owned(),
                }),
            }
        }
    }
    all
}

/// An operation of Swagger 2 in the form of OpenAPI 3.
fn older(one: &Found<'_>, document: &Document) -> Result<Older, String> {
    let given = Given::default();
    let reader = Reader {
        document,
        given: &given,
    };
    let parameters = reader.parameters(one)?;
    Ok(swagger::converted(one.operation, &parameters, document))
}

struct Reader<'r> {
    document: &'r Document,
    given: &'r Given,
}

impl<'r> Reader<'r> {
    /// The parameters of an operation and of its path, resolved. Those of the operation replace those of the path.
    fn parameters(&self, one: &Found<'r>) -> Result<Vec<&'r Value>, String> {
        let list =
            |holder: Option<&'r Value>| holder.and_then(Value::as_array).into_iter().flatten();
        let mut all: Vec<&'r Value> = Vec::new();
        let key = |value: &Value| (value.get("name").cloned(), value.get("in").cloned());
        for parameter in
            list(one.item.get("parameters")).chain(list(one.operation.get("parameters")))
        {
            let parameter = self
                .document
                .resolved(parameter)
                .map_err(|reason| format!("a parameter: {reason}"))?;
            all.retain(|known| key(known) != key(parameter));
            all.push(parameter);
        }
        Ok(all)
    }

    fn operation(
        &self,
        one: &Found<'_>,
        members: &'r Map<String, Value>,
        parameters: &[&'r Value],
        converter: &mut Converter<'r>,
    ) -> Result<Operation, String> {
        let text = |key: &str| {
            members
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .trim()
        };
        let mut read = Vec::new();
        for parameter in parameters {
            read.extend(self.parameter(parameter, one.path, converter)?);
        }
        for name in placeholders(one.path) {
            let is_there =
                |known: &Parameter| known.place == ParameterLocation::Path && known.name == name;
            if !read.iter().any(is_there) {
                read.push(undeclared(name));
            }
        }
        let (output, accepts) = self.output(members, converter);
        let own = servers_of(&Value::Object(members.clone()));
        let server = own.into_iter().chain(servers_of(one.item)).next();
        Ok(Operation {
            method: one.method.to_ascii_uppercase(),
            path: one.path.to_owned(),
            server,
            title: text("summary").to_owned(),
            description: text("description").to_owned(),
            is_deprecated: members.get("deprecated") == Some(&Value::Bool(true)),
            parameters: read,
            body: self.body(members, converter)?,
            output,
            accepts,
        })
    }

    /// A parameter; `None` if it is not an argument.
    fn parameter(
        &self,
        parameter: &'r Value,
        path: &str,
        converter: &mut Converter<'r>,
    ) -> Result<Option<Parameter>, String> {
        let text = |key: &str| parameter.get(key).and_then(Value::as_str);
        let name = text("name").ok_or("a parameter has no name")?;
        let place = text("in").and_then(ParameterLocation::parse);
        let place =
            place.ok_or_else(|| format!("the parameter `{name}` has no place: `in` is missing"))?;
        let lower = name.to_ascii_lowercase();
        let is_given = match place {
            ParameterLocation::Header => {
                OWN_HEADERS.contains(&lower.as_str()) || self.given.headers.contains(&lower)
            }
            ParameterLocation::Query => self.given.query.iter().any(|given| given == name),
            ParameterLocation::Path => !path.contains(&format!("{{{name}}}")),
            ParameterLocation::Cookie => false,
        };
        if is_given {
            return Ok(None);
        }
        let content = parameter.get("content").and_then(Value::as_object);
        let content = content.and_then(|content| content.iter().next());
        let own = parameter.get("schema").or_else(|| content?.1.get("schema"));
        let mut schema =
            own.map_or_else(|| serde_json::json!({}), |schema| converter.schema(schema));
        if let (Some(about), Value::Object(members)) = (text("description"), &mut schema)
            && !about.trim().is_empty()
        {
            members.insert("description".to_owned(), about.trim().into());
        }
        let style = text("style")
            .and_then(Style::parse)
            .unwrap_or_else(|| place.usual_style());
        let flag = |key: &str| parameter.get(key).and_then(Value::as_bool);
        let is_required = flag("required").unwrap_or(false) || place == ParameterLocation::Path;
        Ok(Some(Parameter {
            argument: String::new(),
            name: name.to_owned(),
            place,
            style,
            explode: flag("explode").unwrap_or(style == Style::Form),
            is_required,
            allows_reserved: flag("allowReserved").unwrap_or(false),
            is_json: content.is_some_and(|(media, _)| is_json(media)),
            schema,
        }))
    }

    fn body(
        &self,
        members: &'r Map<String, Value>,
        converter: &mut Converter<'r>,
    ) -> Result<Option<Body>, String> {
        let Some(body) = members.get("requestBody") else {
            return Ok(None);
        };
        let body = self
            .document
            .resolved(body)
            .map_err(|reason| format!("its body: {reason}"))?;
        let content = body.get("content").and_then(Value::as_object);
        let Some((media, kind)) = content.and_then(|content| {
            content
                .iter()
                .min_by_key(|(media, _)| match Form::of(media) {
                    Form::Json if is_json(media) => 0,
                    Form::Json => 1,
                    Form::UrlEncoded => 2,
                    Form::Multipart => 3,
                    Form::Text => 4,
                    Form::Binary => 5,
                })
        }) else {
            return Ok(None);
        };
        let schema = kind
            .get("schema")
            .map_or_else(|| serde_json::json!({}), |schema| converter.schema(schema));
        let is_text = schema.get("type").is_some_and(|kind| kind == "string");
        let media = match (media.as_str(), is_text) {
            ("*/*", true) => "application/octet-stream",
            ("*/*", false) => "application/json",
            (media, _) => media,
        };
        Ok(Some(Body {
            argument: None,
            fields: Map::new(),
            required: Vec::new(),
            media: media.to_owned(),
            form: Form::of(media),
            is_required: body
                .get("required")
                .and_then(Value::as_bool)
                .unwrap_or(false),
            schema,
            encodings: encodings(kind),
        }))
    }

    /// The schema of a successful answer in JSON, and the media types of successful answers.
    fn output(
        &self,
        members: &'r Map<String, Value>,
        converter: &mut Converter<'r>,
    ) -> (Option<Value>, Vec<String>) {
        let responses = members.get("responses").and_then(Value::as_object);
        let mut good: Vec<(&String, &'r Value)> = responses
            .into_iter()
            .flatten()
            .filter(|(status, _)| status.starts_with('2') || *status == "default")
            .filter_map(|(status, response)| Some((status, self.document.resolved(response).ok()?)))
            .collect();
        good.sort_by_key(|(status, _)| (*status == "default", (*status).clone()));
        let mut media = Vec::new();
        let mut schema = None;
        for (status, response) in good {
            let content = response.get("content").and_then(Value::as_object);
            for (kind, body) in content.into_iter().flatten() {
                let is_error = status == "default" && !media.is_empty();
                if !media.contains(kind) && !is_error {
                    media.push(kind.clone());
                }
                if schema.is_none() && is_json(kind) && !is_error {
                    schema = body.get("schema");
                }
            }
        }
        (schema.map(|schema| converter.schema(schema)), media)
    }
}

fn encodings(kind: &Value) -> BTreeMap<String, Encoding> {
    let written = kind.get("encoding").and_then(Value::as_object);
    let encodings = written.into_iter().flatten().map(|(name, encoding)| {
        let text = |key: &str| encoding.get(key).and_then(Value::as_str);
        let encoding = Encoding {
            media: text("contentType").map(str::to_owned),
            style: text("style").and_then(Style::parse),
            explode: encoding.get("explode").and_then(Value::as_bool),
        };
        (name.clone(), encoding)
    });
    encodings.collect()
}

/// The names in `{name}` of a path.
fn placeholders(path: &str) -> Vec<&str> {
    let pieces = path.split('{').skip(1);
    pieces
        .filter_map(|piece| Some(piece.split_once('}')?.0))
        .collect()
}

/// A path parameter that the description does not declare.
fn undeclared(name: &str) -> Parameter {
    Parameter {
        argument: String::new(),
        name: name.to_owned(),
        place: ParameterLocation::Path,
        style: Style::Simple,
        explode: false,
        is_required: true,
        allows_reserved: false,
        is_json: false,
        schema: serde_json::json!({ "type": "string" }),
    }
}
