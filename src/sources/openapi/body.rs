//! Bodies of requests: JSON, forms, files, texts and bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use data_encoding::HEXLOWER;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::{Map, Value};

use super::operation::{Body, Form, Style, is_file};
use super::style::{Written, encoded, joined, pairs, plain};

/// A body, as it is sent.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) media: Option<String>,
    pub(super) bytes: Vec<u8>,
}

/// The body of a call; `None` if nothing is given and nothing required.
///
/// # Errors
/// The reason why the arguments cannot be used.
pub(super) fn content(
    body: &Body,
    arguments: &Map<String, Value>,
) -> Result<Option<Content>, String> {
    let value = match &body.argument {
        Some(argument) => arguments.get(argument).cloned(),
        None => {
            let given = arguments
                .iter()
                .filter(|(name, _)| body.fields.contains_key(*name));
            let given: Map<String, Value> = given
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            (!given.is_empty() || body.is_required).then_some(Value::Object(given))
        }
    };
    let Some(value) = value else {
        return match (&body.argument, body.is_required) {
            (Some(argument), true) => Err(format!("`{argument}` is missing")),
            _ => Ok(None),
        };
    };
    let media = body.media.clone();
    let (media, bytes) = match body.form {
        Form::Json => (media, value.to_string().into_bytes()),
        Form::UrlEncoded => (media, url_encoded(body, &value)?.into_bytes()),
        Form::Multipart => multipart(body, &value)?,
        Form::Text | Form::Binary => {
            let file = File::of(&value)
                .ok_or("the body must be a string, or an object like {\"base64\": …}")?;
            let bytes = file.bytes?;
            let is_general = media.contains('*');
            (
                if is_general {
                    file.media
                        .unwrap_or_else(|| "application/octet-stream".to_owned())
                } else {
                    media
                },
                bytes,
            )
        }
    };
    Ok(Some(Content {
        media: Some(media),
        bytes,
    }))
}

fn members(value: &Value) -> Result<&Map<String, Value>, String> {
    value
        .as_object()
        .ok_or_else(|| "the body is a form, so it must be an object".to_owned())
}

fn url_encoded(body: &Body, value: &Value) -> Result<String, String> {
    let mut all = Vec::new();
    let fields = members(value)?;
    for (name, value) in fields {
        let encoding = body.encodings.get(name);
        let style = encoding.and_then(|encoding| encoding.style);
        let text = Value::String(value.to_string());
        let value = match value {
            // Without a style, an object is JSON (3.0, 4.7.15).
            Value::Object(_) if style.is_none() => &text,
            value => value,
        };
        let style = style.unwrap_or(Style::Form);
        let explode = encoding
            .and_then(|encoding| encoding.explode)
            .unwrap_or(style == Style::Form);
        let written = Written {
            style,
            explode,
            allows_reserved: false,
        };
        let pairs = pairs(name, value, written);
        let own = encoded(name);
        let is_taken = |key: &str| {
            let known = body.fields.keys().chain(fields.keys());
            known.map(|field| encoded(field)).any(|field| field == key)
        };
        if let Some((key, _)) = pairs.iter().find(|(key, _)| *key != own && is_taken(key)) {
            return Err(format!(
                "`{name}` has the member `{key}`, which would set the field of this name"
            ));
        }
        all.extend(pairs);
    }
    Ok(joined(&all))
}

/// A file as an argument: its text, or `{base64, filename, content_type}`.
struct File {
    bytes: Result<Vec<u8>, String>,
    name: Option<String>,
    media: Option<String>,
}

impl File {
    fn of(value: &Value) -> Option<Self> {
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let bytes = match (value, text("base64"), text("text")) {
            (Value::String(text), ..) => Ok(text.clone().into_bytes()),
            (_, Some(encoded), _) => STANDARD
                .decode(encoded.trim())
                .map_err(|_| "`base64` is not Base64".to_owned()),
            (_, None, Some(text)) => Ok(text.as_bytes().to_vec()),
            _ => return None,
        };
        Some(Self {
            bytes,
            name: text("filename").map(str::to_owned),
            media: text("content_type").map(str::to_owned),
        })
    }
}

fn multipart(body: &Body, value: &Value) -> Result<(String, Vec<u8>), String> {
    let mut random = [0; 16];
    SystemRandom::new()
        .fill(&mut random)
        .map_err(|_| "no random number is available")?;
    let boundary = format!("mcpzip-{}", HEXLOWER.encode(&random));
    let mut bytes = Vec::new();
    for (name, value) in members(value)? {
        let media = body
            .encodings
            .get(name)
            .and_then(|encoding| encoding.media.clone());
        let media = media.filter(|media| !media.contains(['*', ',']));
        let schema = field_schema(body, name);
        let is_files = schema.get("items").is_some_and(is_file);
        let items: Vec<&Value> = match value {
            Value::Array(items) => items.iter().collect(),
            value => vec![value],
        };
        for item in items {
            let is_file = is_file(&schema) || is_files;
            let part = match (is_file, File::of(item)) {
                (true, Some(file)) => Part {
                    bytes: file.bytes?,
                    file: Some(file.name.unwrap_or_else(|| name.clone())),
                    media: file
                        .media
                        .or(media.clone())
                        .or_else(|| Some("application/octet-stream".to_owned())),
                },
                _ => Part {
                    bytes: plain(item).into_bytes(),
                    file: None,
                    media: media
                        .clone()
                        .or_else(|| item.is_object().then(|| "application/json".to_owned())),
                },
            };
            part.write(&boundary, name, &mut bytes);
        }
    }
    bytes.extend(format!("--{boundary}--\r\n").bytes());
    let kind = body
        .media
        .split(';')
        .next()
        .unwrap_or("multipart/form-data")
        .trim();
    Ok((format!("{kind}; boundary={boundary}"), bytes))
}

fn field_schema(body: &Body, name: &str) -> Value {
    let inside = || body.schema.get("properties")?.get(name);
    body.fields
        .get(name)
        .or_else(inside)
        .cloned()
        .unwrap_or_default()
}

/// A part of a form.
struct Part {
    bytes: Vec<u8>,
    file: Option<String>,
    media: Option<String>,
}

impl Part {
    fn write(&self, boundary: &str, name: &str, form: &mut Vec<u8>) {
        let mut head = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{}\"",
            quoted(name)
        );
        if let Some(file) = &self.file {
            head.push_str(&format!("; filename=\"{}\"", quoted(file)));
        }
        if let Some(media) = &self.media {
            // A line break would begin another header.
            head.push_str(&format!(
                "\r\nContent-Type: {}",
                media.replace(['\r', '\n'], " ")
            ));
        }
        form.extend(head.bytes());
        form.extend(b"\r\n\r\n");
        form.extend(&self.bytes);
        form.extend(b"\r\n");
    }
}

/// A name in a header of a part (HTML, multipart form data).
fn quoted(name: &str) -> String {
    name.replace('"', "%22")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}
