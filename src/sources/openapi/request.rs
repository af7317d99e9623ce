//! The arguments of a call as a request.

use http::{HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use reqwest::{Method, Url};
use serde_json::{Map, Value};

use super::body::{self, Content};
use super::operation::{Operation, Parameter, ParameterLocation};
use super::reading::Given;
use super::style::{Written, encoded, in_header, in_path, joined, pairs};
use crate::upstream::InterfaceRequest;

/// A path that can be decoded more often than this is refused.
const DECODINGS: usize = 8;

type Arguments = Map<String, Value>;

/// The base of an interface: its URL, and the query that each request has.
#[derive(Debug, Clone)]
pub(super) struct Base {
    pub(super) url: Url,
    pub(super) query: Option<String>,
}

impl Operation {
    /// The request of a call.
    ///
    /// # Errors
    /// The reason why the arguments cannot be used.
    pub(super) fn request(
        &self,
        arguments: &Arguments,
        base: &Base,
        given: &Given,
    ) -> Result<InterfaceRequest, String> {
        self.check(arguments)?;
        let mut path = self.path.clone();
        let (mut query, mut headers, mut cookies) = (Vec::new(), Vec::new(), Vec::new());
        for parameter in &self.parameters {
            let name = &parameter.argument;
            let Some(value) = arguments.get(name).filter(|value| !value.is_null()) else {
                if parameter.is_required {
                    return Err(format!("`{name}` is missing"));
                }
                continue;
            };
            let written = Written {
                style: parameter.style,
                explode: parameter.explode,
                allows_reserved: parameter.allows_reserved,
            };
            let as_json = Value::String(value.to_string());
            let value = if parameter.is_json { &as_json } else { value };
            match parameter.place {
                ParameterLocation::Path => {
                    let text = in_path(parameter, value);
                    if text.is_empty() {
                        return Err(format!("`{name}` is empty, but stands in the path"));
                    }
                    path = path.replace(&format!("{{{}}}", parameter.name), &text);
                }
                ParameterLocation::Query => {
                    let pairs = pairs(&parameter.name, value, written);
                    self.check_members(parameter, &pairs, base, given)?;
                    query.extend(pairs);
                }
                ParameterLocation::Header => {
                    headers.push((parameter.name.clone(), in_header(parameter, value)));
                }
                ParameterLocation::Cookie => {
                    let pairs = pairs(&parameter.name, value, written);
                    self.check_members(parameter, &pairs, base, given)?;
                    cookies.extend(pairs);
                }
            }
        }
        let url = self.url(base, &path, &joined(&query))?;
        if !cookies.is_empty() && !given.headers.iter().any(|name| name == "cookie") {
            let cookies = cookies
                .into_iter()
                .map(|(name, value)| format!("{name}={value}"));
            headers.push(("cookie".to_owned(), cookies.collect::<Vec<_>>().join("; ")));
        }
        if !given.headers.iter().any(|name| name == "accept") {
            headers.push(("accept".to_owned(), self.accepted()));
        }
        let content = match &self.body {
            Some(body) => body::content(body, arguments)?,
            None => None,
        };
        let Content { media, bytes } = content.unwrap_or_default();
        if let Some(media) = media {
            headers.push(("content-type".to_owned(), media));
        }
        Ok(InterfaceRequest {
            method: Method::from_bytes(self.method.as_bytes())
                .map_err(|_| "its method cannot be sent")?,
            url,
            headers: headers.into_iter().map(header).collect::<Result<_, _>>()?,
            body: bytes.into(),
        })
    }

    /// Checks that there is no argument that the operation does not have: the agent may know the tool as it was before.
    fn check(&self, arguments: &Arguments) -> Result<(), String> {
        let is_known = |name: &str| {
            self.parameters.iter().any(|one| one.argument == name)
                || self.body.as_ref().is_some_and(|body| match &body.argument {
                    Some(own) => own == name,
                    None => body.fields.contains_key(name),
                })
        };
        match arguments.keys().find(|name| !is_known(name)) {
            Some(name) => Err(format!("there is no argument `{name}`")),
            None => Ok(()),
        }
    }

    /// Checks that no member of an object, which is sent as `member=value`, sets another parameter, or a part of the query that
    /// the description or the entry fixes.
    fn check_members(
        &self,
        parameter: &Parameter,
        pairs: &[(String, String)],
        base: &Base,
        given: &Given,
    ) -> Result<(), String> {
        let own = encoded(&parameter.name);
        let template = self.path.split_once('?').map(|(_, query)| query);
        let fixed = [template, base.query.as_deref()].into_iter().flatten();
        let fixed: Vec<&str> = fixed
            .flat_map(|query| query.split('&'))
            .map(|pair| pair.split_once('=').map_or(pair, |(name, _)| name))
            .collect();
        let is_taken = |name: &str| {
            let others = self.parameters.iter().map(|one| &one.name);
            let others = others.chain(&given.query);
            others
                .map(|other| encoded(other))
                .any(|other| other == name)
                || fixed.contains(&name)
        };
        match pairs
            .iter()
            .find(|(name, _)| *name != own && is_taken(name))
        {
            Some((name, _)) => Err(format!(
                "`{}` has the member `{name}`, which would set the parameter of this name",
                parameter.argument
            )),
            None => Ok(()),
        }
    }

    /// The URL. A value never changes which path is asked.
    fn url(&self, base: &Base, path: &str, query: &str) -> Result<Url, String> {
        let mut url = base.url.clone();
        let whole = format!("{}{path}", base.url.path().trim_end_matches('/'));
        if leads_elsewhere(path) {
            return Err(
                "a value in the path has the segment `.` or `..`, which may lead to another path"
                    .to_owned(),
            );
        }
        // `?` in a path template begins a fixed query.
        let (whole, fixed) = whole
            .split_once('?')
            .map_or((whole.as_str(), None), |(path, query)| (path, Some(query)));
        url.set_path(whole);
        let own = base.query.as_deref();
        let parts: Vec<&str> = [fixed, own, Some(query)]
            .into_iter()
            .flatten()
            .filter(|part| !part.is_empty())
            .collect();
        url.set_query(Some(parts.join("&").as_str()).filter(|query| !query.is_empty()));
        url.set_fragment(None);
        Ok(url)
    }

    fn accepted(&self) -> String {
        let json = self
            .accepts
            .iter()
            .find(|media| super::operation::is_json(media));
        match (json, self.accepts.first()) {
            (Some(json), _) if !json.contains('*') => format!("{json}, */*;q=0.5"),
            (None, Some(_)) => format!("{}, */*;q=0.5", self.accepts.join(", ")),
            _ => "application/json, */*;q=0.5".to_owned(),
        }
    }
}

/// Whether a path may have a segment `.` or `..` once a server has decoded it. Servers differ: some decode `%2F` before they split a
/// path, some decode twice (`%252e`), some take `\` for `/`, and some drop the rest of a segment from a `;` on.
fn leads_elsewhere(path: &str) -> bool {
    let is_dots = |segment: &str| matches!(segment.split([';', '?', '#']).next(), Some("." | ".."));
    let mut path = path.to_owned();
    for _ in 0..DECODINGS {
        if path.split(['/', '\\']).any(is_dots) {
            return true;
        }
        let decoded = percent_decode_str(&path).decode_utf8_lossy().into_owned();
        if decoded == path {
            return false;
        }
        path = decoded;
    }
    true
}

fn header((name, value): (String, String)) -> Result<(HeaderName, HeaderValue), String> {
    let header = HeaderName::from_bytes(name.as_bytes());
    let header = header.map_err(|_| format!("`{name}` is not a valid name of a header"))?;
    let value = HeaderValue::from_str(&value);
    let value = value
        .map_err(|_| format!("the value of `{name}` has a character that no header may have"))?;
    Ok((header, value))
}
