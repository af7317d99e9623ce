//! A client of the MCP registry: it searches for servers, and reads the data that is needed to run one. It uses API v0.1 of the
//! official registry (`GET /v0.1/servers`, `GET /v0.1/servers/{name}/versions/{version}`).
//!
//! Answers are untrusted: they are limited in size and time, and no part of them reaches a shell, a terminal or the
//! user's variables. [`Recipe`] turns them into a configuration entry; [`merge()`] updates an existing entry.

mod cache;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod merge;
mod recipe;
mod wire;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode, Url};
use serde::de::DeserializeOwned;

use crate::text::causes;
use crate::tls;
pub(crate) use error::Error;
pub(crate) use merge::{Merged, merge};
pub(crate) use recipe::{Entry, Given, Input, Recipe, Unusable, Way};

use cache::Cache;

/// An answer younger than this is not requested again.
const FRESH: Duration = Duration::from_secs(15 * 60);

/// The time limit of one request.
const LIMIT: Duration = Duration::from_secs(15);

/// The longest answer, in bytes.
const SIZE_LIMIT: usize = 4 * 1024 * 1024;

/// The number of servers per page, and the largest number of pages requested.
const PAGE: usize = 50;
const MOST_PAGES: usize = 10;

const MOST_REDIRECTS: usize = 3;

/// The characters that are not encoded in a segment of a path.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'.').remove(b'-').remove(b'_');

/// A registry.
#[derive(Debug)]
pub(crate) struct Registry {
    /// The address, without a trailing `/`.
    base: String,
    /// The address without a password.
    shown: String,
    client: Client,
    cache: Cache,
}

/// An answer with its age.
#[derive(Debug)]
pub(crate) struct Answer<T> {
    /// The answer.
    pub value: T,
    /// For an old answer, used because there was no new one: its age, and the reason why there was none.
    pub stale: Option<(Duration, String)>,
}

/// A server in a list.
#[derive(Debug, Clone, serde::Serialize)]
pub(crate) struct Found {
    /// Its name in the registry.
    pub name: String,
    /// Its newest version.
    pub version: String,
    /// Its title for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The server's description.
    pub description: String,
    /// The ways to use it; empty if `mcpzip` cannot use it.
    pub ways: Vec<&'static str>,
    /// Whether its author has deprecated it.
    pub is_deprecated: bool,
}

/// One version of a server, with the data needed to run it.
#[derive(Debug, Clone)]
pub(crate) struct Listing {
    detail: wire::Detail,
    status: Option<String>,
}

impl Registry {
    /// Creates a client of the registry at `base` that caches its answers below `cache_dir`.
    ///
    /// # Errors
    /// When `base` is not a URL, or no HTTP client can be made.
    pub(crate) fn new(base: &str, cache_dir: &Path) -> Result<Self, Error> {
        let base = base.trim().trim_end_matches('/');
        let url = Url::parse(base)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let url = url.ok_or_else(|| Error::Address {
            base: wire::clean(base),
        })?;
        let shown = format!(
            "{}{}",
            url.origin().ascii_serialization(),
            url.path().trim_end_matches('/')
        );
        let builder = tls::begin()
            .user_agent(concat!("mcpzip/", env!("CARGO_PKG_VERSION")))
            .referer(false)
            .timeout(LIMIT)
            .redirect(Policy::custom(|attempt| {
                let stays = attempt
                    .previous()
                    .first()
                    .is_some_and(|first| first.origin() == attempt.url().origin());
                if stays && attempt.previous().len() <= MOST_REDIRECTS {
                    attempt.follow()
                } else {
                    attempt.stop()
                }
            }));
        // A registry on this machine is reached directly. Certificates are loaded only for HTTPS.
        let is_local = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
        let builder = if is_local {
            builder.no_proxy()
        } else {
            builder
        };
        let builder = if url.scheme() == "http" && is_local {
            tls::plain(builder)
        } else {
            builder
        };
        let client = builder.build().map_err(|error| Error::Unreachable {
            base: shown.clone(),
            reason: words(&error),
        })?;
        Ok(Self {
            base: base.to_owned(),
            shown,
            client,
            cache: Cache::new(cache_dir),
        })
    }

    /// The newest versions of servers whose names contain `query`, at most `limit`.
    ///
    /// # Errors
    /// When there is no answer, not even an old one, or it cannot be read.
    pub(crate) async fn search(
        &self,
        query: &str,
        limit: usize,
    ) -> Result<Answer<Vec<Found>>, Error> {
        let mut found: Vec<Found> = Vec::new();
        let mut stale = None;
        let (mut cursor, mut seen) = (None::<String>, BTreeSet::new());
        for _ in 0..MOST_PAGES {
            let mut url =
                Url::parse(&format!("{}/v0.1/servers", self.base)).expect("it was read before");
            url.query_pairs_mut()
                .append_pair("search", query)
                .append_pair("limit", &PAGE.min(limit).to_string())
                .append_pair("version", "latest");
            if let Some(cursor) = &cursor {
                url.query_pairs_mut().append_pair("cursor", cursor);
            }
            let page: Answer<wire::Page> = self.get(&url, FRESH).await?;
            stale = stale.or(page.stale);
            // An invalid entry does not affect the others.
            let listed = page
                .value
                .servers
                .into_iter()
                .filter_map(|entry| serde_json::from_value(entry).ok());
            found.extend(listed.filter_map(|response| found_in(&response)));
            cursor = page
                .value
                .metadata
                .and_then(|metadata| metadata.next_cursor)
                .filter(|next| !next.is_empty());
            let is_new = cursor
                .as_ref()
                .is_some_and(|next| seen.insert(next.clone()));
            if found.len() >= limit || !is_new {
                break;
            }
        }
        found.truncate(limit);
        Ok(Answer {
            value: found,
            stale,
        })
    }

    /// One version of the server `name`, by default the newest. With `is_urgent`, the cache is used only if the
    /// registry does not answer.
    ///
    /// # Errors
    /// When there is no such version, or the answer cannot be obtained or read.
    pub(crate) async fn listing(
        &self,
        name: &str,
        version: Option<&str>,
        is_urgent: bool,
    ) -> Result<Answer<Listing>, Error> {
        if !wire::is_name(name) {
            return Err(Error::Name {
                name: wire::clean(name),
            });
        }
        let version = version.unwrap_or("latest");
        if !wire::is_version(version) {
            return Err(Error::Version {
                version: wire::clean(version),
            });
        }
        let part = |text: &str| utf8_percent_encode(text, PLAIN).to_string();
        let url = format!(
            "{}/v0.1/servers/{}/versions/{}",
            self.base,
            part(name),
            part(version)
        );
        let url = Url::parse(&url).expect("what was put in is encoded");
        let answer: Answer<wire::Response> = self
            .get(&url, if is_urgent { Duration::ZERO } else { FRESH })
            .await
            .map_err(|error| match error {
                Error::Status { status: 404, .. } => {
                    let version = (version != "latest").then(|| version.to_owned());
                    Error::NotFound {
                        name: name.to_owned(),
                        version,
                    }
                }
                error => error,
            })?;
        let wire::Response {
            server: detail,
            meta,
        } = answer.value;
        let has_version = version == "latest" || detail.version == version;
        if detail.name != name || !has_version || !wire::is_version(&detail.version) {
            return Err(Error::Unreadable {
                reason: "it is about another server, or names no version".to_owned(),
            });
        }
        let status = wire::status(meta.as_ref()).map(str::to_owned);
        Ok(Answer {
            value: Listing { detail, status },
            stale: answer.stale,
        })
    }

    /// Gets `url`, from the cache if that is younger than `max_age`, or if the registry does not answer.
    async fn get<T: DeserializeOwned>(
        &self,
        url: &Url,
        max_age: Duration,
    ) -> Result<Answer<T>, Error> {
        let kept = self
            .cache
            .get(url.as_str())
            .and_then(|(body, age)| Some((read(&body).ok()?, age)));
        match kept {
            Some((value, age)) if age < max_age => Ok(Answer { value, stale: None }),
            kept => match self.fetch(url).await {
                Ok(body) => {
                    let value = read(&body)?;
                    self.cache.put(url.as_str(), &body);
                    Ok(Answer { value, stale: None })
                }
                Err(error) => match kept {
                    Some((value, age)) if error.is_absence() => Ok(Answer {
                        value,
                        stale: Some((age, error.to_string())),
                    }),
                    _ => Err(error),
                },
            },
        }
    }

    async fn fetch(&self, url: &Url) -> Result<Vec<u8>, Error> {
        let unreachable = |error: &reqwest::Error| Error::Unreachable {
            base: self.shown.clone(),
            reason: words(error),
        };
        let request = self
            .client
            .get(url.clone())
            .header(reqwest::header::ACCEPT, "application/json");
        let mut response = request.send().await.map_err(|error| unreachable(&error))?;
        if response.status() != StatusCode::OK {
            return Err(Error::Status {
                base: self.shown.clone(),
                status: response.status().as_u16(),
            });
        }
        let mut body = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| unreachable(&error))?
        {
            if body.len() + chunk.len() > SIZE_LIMIT {
                return Err(Error::TooLong { limit: SIZE_LIMIT });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }
}

impl Listing {
    /// Its name in the registry.
    #[must_use]
    pub(crate) fn name(&self) -> &str {
        &self.detail.name
    }

    /// The version of the server.
    #[must_use]
    pub(crate) fn version(&self) -> &str {
        &self.detail.version
    }

    /// The server's description.
    #[must_use]
    pub(crate) fn description(&self) -> String {
        wire::clean(self.detail.description.as_deref().unwrap_or_default())
    }

    /// Whether it was removed from the registry.
    #[must_use]
    pub(crate) fn is_deleted(&self) -> bool {
        self.status.as_deref() == Some("deleted")
    }

    /// Whether its author has deprecated it.
    #[must_use]
    pub(crate) fn is_deprecated(&self) -> bool {
        self.status.as_deref() == Some("deprecated")
    }

    /// The recipe for the way that is asked for, otherwise for the first package that can be run, otherwise for a
    /// remote server.
    ///
    /// # Errors
    /// When there is no such way, or its data do not pass the checks.
    pub(crate) fn recipe(&self, way: Option<Way>) -> Result<Recipe<'_>, Unusable> {
        Recipe::of(&self.detail, way)
    }
}

fn found_in(response: &wire::Response) -> Option<Found> {
    let status = wire::status(response.meta.as_ref());
    let detail = &response.server;
    if !wire::is_name(&detail.name)
        || !wire::is_version(&detail.version)
        || status == Some("deleted")
    {
        return None;
    }
    Some(Found {
        name: detail.name.clone(),
        version: detail.version.clone(),
        title: detail.title.as_deref().map(wire::clean),
        description: wire::clean(detail.description.as_deref().unwrap_or_default()),
        ways: recipe::ways(detail),
        is_deprecated: status == Some("deprecated"),
    })
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    // The parser's message may quote the answer.
    serde_json::from_slice(body).map_err(|error| Error::Unreadable {
        reason: wire::clean(&error.to_string()),
    })
}

/// The innermost cause, without the URL, which contains the search text.
fn words(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("no answer within {LIMIT:?}");
    }
    let innermost = causes(error).last().map(ToString::to_string);
    wire::clean(&innermost.unwrap_or_else(|| error.to_string()))
}
