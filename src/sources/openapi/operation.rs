//! An operation of a description: the arguments that it takes, and how they become a request.
//!
//! Arguments have the names of parameters. Fields of a JSON body or a form stand next to them if the body is one plain object and no
//! name is in both; otherwise the body is the argument `body`. Two parameters of one name become `id_path` and `id_query`. The
//! table of names is made here, and never guessed back from a name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::schema::{Schemas, plain_object};

/// The argument for a body that does not stand next to the parameters.
const BODY: &str = "body";

/// An operation. It is kept as JSON, and read when it is needed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::sources) struct Operation {
    pub(in crate::sources) method: String,
    /// The path with `{name}` for path parameters.
    pub(in crate::sources) path: String,
    /// Its own server, if the description names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) server: Option<String>,
    pub(super) title: String,
    pub(super) description: String,
    pub(super) is_deprecated: bool,
    pub(super) parameters: Vec<Parameter>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) body: Option<Body>,
    /// The schema of a successful answer in JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) output: Option<Value>,
    /// The media types of a successful answer.
    pub(super) accepts: Vec<String>,
}

/// A parameter.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Parameter {
    /// The name of its argument.
    pub(super) argument: String,
    /// Its name in a request.
    pub(super) name: String,
    pub(super) place: ParameterLocation,
    pub(super) style: Style,
    pub(super) explode: bool,
    pub(super) is_required: bool,
    /// Whether reserved characters are sent as they are.
    pub(super) allows_reserved: bool,
    /// Whether its value is sent as JSON.
    pub(super) is_json: bool,
    pub(super) schema: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ParameterLocation {
    Path,
    Query,
    Header,
    Cookie,
}

impl ParameterLocation {
    pub(super) fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "path" => Self::Path,
            "query" => Self::Query,
            "header" => Self::Header,
            "cookie" => Self::Cookie,
            _ => return None,
        })
    }

    fn word(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
            Self::Cookie => "cookie",
        }
    }

    /// The style of parameters that name none.
    pub(super) fn usual_style(self) -> Style {
        match self {
            Self::Path | Self::Header => Style::Simple,
            Self::Query | Self::Cookie => Style::Form,
        }
    }
}

/// The style of a value that is not a scalar (OpenAPI 3.1, 4.8.12.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Style {
    Form,
    Simple,
    Label,
    Matrix,
    SpaceDelimited,
    PipeDelimited,
    /// Swagger 2 alone: separated by tabs.
    TabDelimited,
    DeepObject,
}

impl Style {
    pub(super) fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "form" => Self::Form,
            "simple" => Self::Simple,
            "label" => Self::Label,
            "matrix" => Self::Matrix,
            "spaceDelimited" => Self::SpaceDelimited,
            "pipeDelimited" => Self::PipeDelimited,
            "tabDelimited" => Self::TabDelimited,
            "deepObject" => Self::DeepObject,
            _ => return None,
        })
    }
}

/// A body.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Body {
    /// The argument that is the whole body; `None` if its fields stand next to the parameters.
    pub(super) argument: Option<String>,
    /// The fields next to the parameters.
    pub(super) fields: Map<String, Value>,
    pub(super) required: Vec<String>,
    pub(super) media: String,
    pub(super) form: Form,
    pub(super) is_required: bool,
    pub(super) schema: Value,
    /// How fields of a form are written, if the description says so.
    pub(super) encodings: BTreeMap<String, Encoding>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Form {
    Json,
    UrlEncoded,
    Multipart,
    Text,
    Binary,
}

impl Form {
    /// The form of a media type.
    pub(super) fn of(media: &str) -> Self {
        let kind = media
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        match kind.as_str() {
            "application/x-www-form-urlencoded" => Self::UrlEncoded,
            kind if kind.starts_with("multipart/") => Self::Multipart,
            kind if is_json(kind) || kind == "*/*" => Self::Json,
            kind if kind.starts_with("text/") || kind.ends_with("xml") => Self::Text,
            _ => Self::Binary,
        }
    }
}

/// Whether a media type is JSON.
pub(super) fn is_json(media: &str) -> bool {
    let kind = media
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    matches!(kind.as_str(), "application/json" | "text/json")
        || kind.starts_with("application/") && kind.ends_with("+json")
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Encoding {
    pub(super) media: Option<String>,
    pub(super) style: Option<Style>,
    pub(super) explode: Option<bool>,
}

impl Operation {
    /// Settles the names of arguments, once all parameters and the body are known.
    pub(super) fn name_arguments(&mut self, schemas: &Schemas) {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for parameter in &self.parameters {
            *counts.entry(parameter.name.clone()).or_default() += 1;
        }
        for parameter in &mut self.parameters {
            parameter.argument = match counts.get(&parameter.name) {
                Some(1) => parameter.name.clone(),
                _ => format!("{}_{}", parameter.name, parameter.place.word()),
            };
        }
        let Some(body) = &mut self.body else {
            return;
        };
        let is_taken = |name: &str| self.parameters.iter().any(|one| one.argument == name);
        let may_stand_apart = matches!(body.form, Form::Json | Form::UrlEncoded | Form::Multipart);
        let plain = plain_object(&body.schema, schemas)
            .filter(|(fields, _)| may_stand_apart && !fields.keys().any(|name| is_taken(name)));
        match plain {
            Some((fields, required)) => {
                body.required = required;
                body.required.retain(|name| fields.contains_key(name));
                body.fields = fields;
            }
            None => {
                let mut name = BODY.to_owned();
                while is_taken(&name) {
                    name.push('_');
                }
                body.argument = Some(name);
            }
        }
    }

    /// The whole schema of its arguments, with references to components.
    pub(super) fn input(&self) -> Value {
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for parameter in &self.parameters {
            let mut schema = parameter.schema.clone();
            if let Value::Object(members) = &mut schema {
                // A parameter is written also if its schema is that of a member which only the server writes.
                match members.contains_key("$ref") {
                    true => members.insert("readOnly".to_owned(), false.into()),
                    false => members.remove("readOnly"),
                };
            }
            properties.insert(parameter.argument.clone(), schema);
            if parameter.is_required {
                required.push(parameter.argument.clone());
            }
        }
        if let Some(body) = &self.body {
            match &body.argument {
                Some(argument) => {
                    properties.insert(argument.clone(), body.whole());
                    if body.is_required {
                        required.push(argument.clone());
                    }
                }
                None => {
                    for (name, schema) in &body.fields {
                        properties.insert(name.clone(), body.field(schema));
                    }
                    if body.is_required {
                        required.extend(body.required.iter().cloned());
                    }
                }
            }
        }
        required.sort_unstable();
        required.dedup();
        let mut schema = json!({ "type": "object", "properties": properties });
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        schema["additionalProperties"] = false.into();
        schema
    }

    /// The text for agents.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let same = self
            .description
            .starts_with(self.title.trim_end_matches('.'));
        for part in [&self.title, &self.description] {
            if part.is_empty() || same && std::ptr::eq(part, &self.title) {
                continue;
            }
            if !text.is_empty() {
                text.push_str("\n\n");
            }
            text.push_str(part);
        }
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&format!("`{} {}`", self.method, self.path));
        if self.is_deprecated {
            text.push_str(" (deprecated)");
        }
        let pages: Vec<String> = self
            .parameters
            .iter()
            .filter(|one| one.place == ParameterLocation::Query && is_paging(&one.name))
            .map(|one| format!("`{}`", one.argument))
            .collect();
        if !pages.is_empty() {
            text.push_str(&format!(
                "\nThe answer may be one page of several; {} choose which.",
                pages.join(", ")
            ));
        }
        text
    }
}

impl Body {
    /// The schema of the whole body as an argument: a text or bytes, unless mcpzip writes its form.
    fn whole(&self) -> Value {
        if !matches!(self.form, Form::Text | Form::Binary) {
            return self.schema.clone();
        }
        json!({
            "type": ["string", "object"],
            "description": format!(
                "The body ({}): its text, or {{\"base64\": …}}", self.media
            ),
        })
    }

    /// The schema of a field as an argument: a file is given as text, or as an object with its bytes.
    fn field(&self, schema: &Value) -> Value {
        if self.form != Form::Multipart || !is_file(schema) {
            return schema.clone();
        }
        let about = schema
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or("A file");
        json!({
            "type": ["string", "object"],
            "description": format!(
                "{}: its text, or {{\"base64\": …, \"filename\": …, \"content_type\": …}}",
                about.trim_end_matches(['.', ':'])
            ),
        })
    }
}

/// Whether a field of a form is a file.
pub(super) fn is_file(schema: &Value) -> bool {
    let format = schema.get("format").and_then(Value::as_str);
    matches!(format, Some("binary" | "base64"))
}

/// Whether a parameter chooses the page of a list.
fn is_paging(name: &str) -> bool {
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    matches!(
        name.to_ascii_lowercase().as_str(),
        "page"
            | "perpage"
            | "pagesize"
            | "pagenumber"
            | "pagetoken"
            | "cursor"
            | "startcursor"
            | "nextcursor"
            | "offset"
            | "limit"
            | "startat"
            | "maxresults"
            | "startingafter"
            | "endingbefore"
            | "after"
            | "continue"
            | "skip"
            | "top"
            | "nexttoken"
            | "marker"
    )
}
