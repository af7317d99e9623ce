//! Gets a description: from a file, read again when it has changed, or from a URL, fetched again when its `ETag` has.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{HeaderName, HeaderValue};
use parking_lot::Mutex;
use reqwest::header::{ACCEPT, ETAG, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED};
use reqwest::{Method, StatusCode, Url};

use super::kept::{Kept, LARGEST, Version};
use super::reading::{Api, Given};
use crate::config::{DescriptionLocation, OAuth, OpenApi, Remote};
use crate::files;
use crate::tool::ServerName;
use crate::upstream::{ConnectError, Interface, InterfaceRequest, SourceError, UpstreamContext};

/// How long a fetched description is used without asking whether it has changed.
const FRESH: Duration = Duration::from_secs(1);

/// The place of a description.
#[derive(Debug)]
pub(super) enum Description {
    File(PathBuf),
    Url {
        url: Url,
        /// The interface that has it: without credentials if it is not the described one.
        interface: Arc<Interface>,
        kept: Arc<Kept>,
    },
}

/// The descriptions of a session by servers, which outlive connections.
#[derive(Debug, Clone, Default)]
pub(in crate::sources) struct Descriptions(Arc<Mutex<HashMap<String, Known>>>);

impl Descriptions {
    pub(super) fn get(&self, key: &str) -> Option<Known> {
        self.0.lock().get(key).cloned()
    }

    pub(super) fn insert(&self, key: &str, known: Known) {
        self.0.lock().insert(key.to_owned(), known);
    }
}

/// A description that was read.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) api: Arc<Api>,
    version: Version,
    checked: Instant,
}

impl Description {
    /// The description that the entry of `server` names: a file, or the document at a URL, of which `kept` has a copy.
    ///
    /// # Errors
    /// When the entry cannot be used.
    pub(super) fn of(
        server: &ServerName,
        remote: &Remote,
        openapi: &OpenApi,
        described: &Arc<Interface>,
        kept: Kept,
        context: &Arc<UpstreamContext>,
    ) -> Result<Self, ConnectError> {
        let written = match &openapi.description {
            DescriptionLocation::File(path) => return Ok(Self::File(path.clone())),
            DescriptionLocation::Url(url) => url,
            DescriptionLocation::Introspection => &remote.url,
        };
        let mut url = Url::parse(written).map_err(|error| ConnectError::Configuration {
            server: server.to_string(),
            reason: format!("the URL of its description cannot be used ({error})"),
        })?;
        let interface = if *written == remote.url || described.permits(&url) {
            described.clone()
        } else {
            let bare = Remote {
                url: written.clone(),
                headers: std::collections::BTreeMap::new(),
                headers_command: None,
                oauth: OAuth::default(),
                ..remote.clone()
            };
            Arc::new(Interface::without_login(server, &bare, context)?)
        };
        // The interface sends them in a header.
        let (_, _) = (url.set_username(""), url.set_password(None));
        let kept = Arc::new(kept);
        Ok(Self::Url {
            url,
            interface,
            kept,
        })
    }

    /// The state of its file; the same for each URL.
    pub(super) fn file_version(&self) -> Option<Version> {
        match self {
            Self::File(path) => Some(version_of(path)),
            Self::Url { .. } => None,
        }
    }

    /// The URL to which its servers are relative.
    pub(super) fn url(&self) -> Option<&Url> {
        match self {
            Self::File(_) => None,
            Self::Url { url, .. } => Some(url),
        }
    }

    /// Reads the description, unless `known` is its current state. That is only looked at for a listing: a call uses the
    /// description that was listed, and compared with the pins.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    pub(super) async fn read(
        &self,
        known: Option<&Known>,
        is_listing: bool,
        openapi: &Arc<OpenApi>,
        given: &Arc<Given>,
        context: &UpstreamContext,
    ) -> Result<Known, SourceError> {
        let (bytes, version) = match self {
            Self::File(path) => {
                let version = version_of(path);
                if let Some(known) = known.filter(|known| !is_listing || known.version == version) {
                    return Ok(known.clone());
                }
                let bytes = files::read_regular(path, LARGEST as u64).map_err(|error| {
                    SourceError::Arguments(format!(
                        "its description {} cannot be read: {error}",
                        path.display()
                    ))
                })?;
                (bytes, version)
            }
            Self::Url {
                url,
                interface,
                kept,
            } => {
                let is_fresh = |known: &&Known| !is_listing || known.checked.elapsed() < FRESH;
                if let Some(known) = known.filter(is_fresh) {
                    return Ok(known.clone());
                }
                let place = kept.clone();
                let stored = match known {
                    Some(_) => None,
                    None => {
                        let loaded = context.tasks.spawn_blocking(move || place.load()).await;
                        loaded.ok().flatten()
                    }
                };
                let version = known.map(|known| &known.version);
                let version = version.or(stored.as_ref().map(|(_, version)| version));
                let fetched = match &stored {
                    Some(_) if !is_listing => None,
                    _ => fetch(url, interface, version).await?,
                };
                match (fetched, stored, known) {
                    (Some((bytes, version)), ..) => {
                        let place = kept.clone();
                        let storing = move || {
                            place.store(&bytes, &version);
                            (bytes, version)
                        };
                        let stored = context.tasks.spawn_blocking(storing).await;
                        stored.map_err(|_| unread("it cannot be read"))?
                    }
                    (None, Some(stored), _) => stored,
                    (None, None, Some(known)) => {
                        return Ok(Known {
                            checked: Instant::now(),
                            ..known.clone()
                        });
                    }
                    (None, None, None) => {
                        return Err(unread("it answers that nothing has changed"));
                    }
                }
            }
        };
        let (openapi, given) = (openapi.clone(), given.clone());
        let reading = context
            .tasks
            .spawn_blocking(move || Api::read(&bytes, &openapi, &given));
        let api = reading.await.map_err(|_| unread("it cannot be read"))?;
        let api = api.map_err(|reason| unread(&reason))?;
        Ok(Known {
            api: Arc::new(api),
            version,
            checked: Instant::now(),
        })
    }
}

fn unread(reason: &str) -> SourceError {
    SourceError::Arguments(format!("its description cannot be used: {reason}"))
}

/// Time of change and size of a file.
fn version_of(path: &Path) -> Version {
    let metadata = std::fs::metadata(path).ok();
    Version::File(metadata.and_then(|metadata| Some((metadata.modified().ok()?, metadata.len()))))
}

/// Fetches a description. `None` if it is still the known one.
async fn fetch(
    url: &Url,
    interface: &Interface,
    known: Option<&Version>,
) -> Result<Option<(Vec<u8>, Version)>, SourceError> {
    let mut headers: Vec<(HeaderName, HeaderValue)> = vec![(
        ACCEPT,
        HeaderValue::from_static("application/json, application/yaml, text/yaml, */*;q=0.5"),
    )];
    if let Some(Version::Answer { tag, modified }) = known {
        headers.extend(tag.iter().map(|tag| (IF_NONE_MATCH, tag.clone())));
        headers.extend(
            modified
                .iter()
                .map(|time| (IF_MODIFIED_SINCE, time.clone())),
        );
    }
    let request = InterfaceRequest {
        method: Method::GET,
        url: url.clone(),
        headers,
        body: bytes::Bytes::new(),
    };
    let answer = interface
        .send(request, LARGEST)
        .await
        .map_err(SourceError::Call)?;
    if answer.status == StatusCode::NOT_MODIFIED {
        return Ok(None);
    }
    if let Some(target) = answer.refused_redirect {
        return Err(unread(&format!(
            "its URL redirects to {target}, which is not followed; set `openapi` to that URL"
        )));
    }
    if !answer.status.is_success() {
        return Err(unread(&format!(
            "its URL answers with HTTP {}",
            answer.status
        )));
    }
    let version = Version::Answer {
        tag: answer.headers.get(ETAG).cloned(),
        modified: answer.headers.get(LAST_MODIFIED).cloned(),
    };
    Ok(Some((answer.body.to_vec(), version)))
}
