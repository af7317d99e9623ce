//! The three API protocols of language models.

use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};

use super::Error;
use super::order::TASK;
use crate::config::{LanguageModel, Provider};
use crate::secret::Secret;

/// The limit on the answer, in tokens: enough for all candidates and some reasoning.
const TOKENS: usize = 1_000;

/// The most bytes of an answer that are read.
const LONGEST: usize = 1 << 20;

/// Sends a question and returns the whole answer as one text.
pub(super) async fn ask(
    client: &Client,
    model: &LanguageModel,
    key: Option<&Secret<String>>,
    question: &str,
) -> Result<String, Error> {
    let request = request(client, model, key, question);
    let exchange = |source: reqwest::Error| Error::Exchange {
        source: source.without_url(),
    };
    let mut response = request.send().await.map_err(exchange)?;
    if !response.status().is_success() {
        return Err(Error::Status {
            status: response.status().as_u16(),
        });
    }
    let body = read(&mut response).await?;
    let body: Value = serde_json::from_slice(&body).map_err(|_| Error::Unreadable)?;
    said(model.provider, &body).ok_or(Error::Unreadable)
}

fn request(
    client: &Client,
    model: &LanguageModel,
    key: Option<&Secret<String>>,
    question: &str,
) -> RequestBuilder {
    let LanguageModel {
        provider,
        model: name,
        base_url,
        ..
    } = model;
    let key = key.map(|key| key.expose().as_str());
    let (path, header, body) = match provider {
        Provider::Gemini => (
            format!("models/{name}:generateContent"),
            key.map(|key| ("x-goog-api-key", key.to_owned())),
            json!({
                "systemInstruction": { "parts": [{ "text": TASK }] },
                "contents": [{ "role": "user", "parts": [{ "text": question }] }],
            }),
        ),
        Provider::Anthropic => (
            "messages".to_owned(),
            key.map(|key| ("x-api-key", key.to_owned())),
            json!({
                "model": name,
                "max_tokens": TOKENS,
                "system": TASK,
                "messages": [{ "role": "user", "content": question }],
            }),
        ),
        // Models differ in the name of the limit on answers, so none is sent; the time is limited.
        Provider::OpenAi => (
            "chat/completions".to_owned(),
            key.map(|key| ("authorization", format!("Bearer {key}"))),
            json!({
                "model": name,
                "messages": [{ "role": "system", "content": TASK }, { "role": "user", "content": question }],
            }),
        ),
    };
    let mut request = client
        .post(format!("{base_url}/{path}"))
        .header("content-type", "application/json");
    if *provider == Provider::Anthropic {
        request = request.header("anthropic-version", "2023-06-01");
    }
    if let Some((name, value)) = header {
        request = request.header(name, value);
    }
    request.body(body.to_string())
}

async fn read(response: &mut Response) -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|source| Error::Exchange {
        source: source.without_url(),
    })? {
        if body.len() + chunk.len() > LONGEST {
            return Err(Error::TooLong);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The text of an answer.
fn said(provider: Provider, body: &Value) -> Option<String> {
    let parts = match provider {
        Provider::OpenAi => {
            return body["choices"][0]["message"]["content"]
                .as_str()
                .map(str::to_owned);
        }
        Provider::Anthropic => &body["content"],
        Provider::Gemini => &body["candidates"][0]["content"]["parts"],
    };
    Some(
        parts
            .as_array()?
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect(),
    )
}
