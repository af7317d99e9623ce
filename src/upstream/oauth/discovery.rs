//! Finds the authorization server of a server that requires a login: RFC 9728, then RFC 8414 or OpenID Connect
//! discovery, in the order of the specification (2025-11-25, basic/authorization). For servers of 2025-03-26, which
//! have no metadata, it uses the rules of that revision.

use reqwest::Url;
use serde::Deserialize;

use super::challenge::Challenge;
use super::error::LoginError;
use super::fetcher::{MetadataFetcher, shown};
use super::issuer::is_same;

/// An authorization server with its endpoints.
#[derive(Debug, Clone)]
pub(super) struct Authority {
    /// Its issuer identifier, as written.
    pub(super) issuer: String,
    /// The resource that tokens are requested for.
    pub(super) resource: String,
    /// The page where a person logs in. `None` if only programs can.
    pub(super) authorization_endpoint: Option<Url>,
    pub(super) token_endpoint: Url,
    pub(super) registration_endpoint: Option<Url>,
    pub(super) revocation_endpoint: Option<Url>,
    /// The scopes in the server's metadata.
    pub(super) server_scopes: Vec<String>,
    /// Whether it issues refresh tokens for the scope `offline_access`.
    pub(super) has_offline_access: bool,
    /// The supported client authentication methods. `None` if the metadata has none.
    pub(super) auth_methods: Option<Vec<String>>,
    /// Whether it accepts a URL as client id.
    pub(super) takes_metadata_urls: bool,
    /// Whether it supports PKCE with S256.
    pub(super) protects_codes: bool,
    /// Whether the endpoints are guessed, without any metadata.
    pub(super) is_guessed: bool,
    /// Whether every redirect names the issuer (RFC 9207).
    pub(super) names_issuer: bool,
    /// Whether an internet server named it, so that its endpoints must not be in a private network.
    pub(super) is_public: bool,
}

/// The metadata of a server (RFC 9728, section 2).
#[derive(Debug, Deserialize)]
pub(super) struct ResourceMetadata {
    pub(super) resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
}

/// The metadata of an authorization server (RFC 8414, section 2).
#[derive(Debug, Deserialize)]
pub(super) struct AuthorityMetadata {
    issuer: String,
    authorization_endpoint: Option<Endpoint>,
    token_endpoint: Endpoint,
    registration_endpoint: Option<Endpoint>,
    revocation_endpoint: Option<Endpoint>,
    #[serde(default)]
    scopes_supported: Vec<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    code_challenge_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    client_id_metadata_document_supported: bool,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

/// A URL in a document.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct Endpoint(Url);

impl TryFrom<String> for Endpoint {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Url::parse(&text)
            .map(Self)
            .map_err(|error| error.to_string())
    }
}

/// Finds the authorization server of the server at `own`, which sent `challenge`. Of several, `known` is preferred to
/// the first.
pub(super) async fn discover(
    fetcher: &MetadataFetcher<'_>,
    own: &Url,
    challenge: &Challenge,
    known: Option<&str>,
) -> Result<Authority, LoginError> {
    let authority = find(fetcher, own, challenge, known).await?;
    Ok(Authority {
        is_public: fetcher.is_public(),
        ..authority
    })
}

/// The identity provider with this issuer identifier, which the user has configured.
pub(super) async fn identity_provider(
    fetcher: &MetadataFetcher<'_>,
    issuer: &str,
) -> Result<Authority, LoginError> {
    let found = authority_metadata(fetcher, issuer).await?;
    let found = found.map_err(|answers| {
        unusable(format!(
            "the identity provider `{issuer}` has no metadata ({answers})"
        ))
    })?;
    Ok(Authority {
        is_public: fetcher.is_public(),
        ..authority(found, String::new(), Vec::new())
    })
}

async fn find(
    fetcher: &MetadataFetcher<'_>,
    own: &Url,
    challenge: &Challenge,
    known: Option<&str>,
) -> Result<Authority, LoginError> {
    let Some(metadata) = resource_metadata(fetcher, own, challenge).await? else {
        return without_metadata(fetcher, own).await;
    };
    let issuers = &metadata.authorization_servers;
    let issuer = issuers
        .iter()
        .find(|issuer| known.is_some_and(|known| is_same(known, issuer)))
        .or_else(|| issuers.first());
    let Some(issuer) = issuer else {
        return without_metadata(fetcher, own).await;
    };
    let found = authority_metadata(fetcher, issuer).await?;
    let found = found.map_err(|answers| {
        unusable(format!(
            "the authorization server `{issuer}` has no metadata ({answers})"
        ))
    })?;
    let resource = metadata.resource;
    Ok(authority(found, resource, metadata.scopes_supported))
}

/// The server's metadata: at the URL of its challenge, then at the well-known URLs.
async fn resource_metadata(
    fetcher: &MetadataFetcher<'_>,
    own: &Url,
    challenge: &Challenge,
) -> Result<Option<ResourceMetadata>, LoginError> {
    let pointer = match &challenge.resource_metadata {
        Some(pointer) => Some(
            own.join(pointer)
                .map_err(|_| unusable("the URL of the server's metadata is invalid".to_owned()))?,
        ),
        None => None,
    };
    if pointer
        .as_ref()
        .is_some_and(|pointer| pointer.origin() != own.origin())
    {
        fetcher.answered_by(challenge.peer);
    }
    let path = own.path().trim_end_matches('/');
    let well_known =
        |path: &str| located(own, &format!("/.well-known/oauth-protected-resource{path}"));
    let mut locations: Vec<Url> = pointer
        .into_iter()
        .chain([well_known(path), well_known("")])
        .collect();
    locations.dedup();
    for location in locations {
        let Ok(document) = fetcher.document(&location).await? else {
            continue;
        };
        let Ok(metadata) = serde_json::from_value::<ResourceMetadata>(document) else {
            continue;
        };
        if !covers(&metadata.resource, own) {
            return Err(unusable(format!(
                "the metadata at `{}` is that of another server, `{}`",
                shown(&location),
                metadata.resource
            )));
        }
        return Ok(Some(metadata));
    }
    Ok(None)
}

/// Whether a token for `resource` is one for the server at `own`: the same origin, and a path prefix.
pub(super) fn covers(resource: &str, own: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else {
        return false;
    };
    let (outer, inner) = (
        resource.path().trim_end_matches('/'),
        own.path().trim_end_matches('/'),
    );
    let rest = inner.strip_prefix(outer);
    resource.origin() == own.origin()
        && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The metadata of an authorization server, or what it answers in place of them.
async fn authority_metadata(
    fetcher: &MetadataFetcher<'_>,
    issuer: &str,
) -> Result<Result<AuthorityMetadata, String>, LoginError> {
    let base = Url::parse(issuer).map_err(|_| {
        unusable(format!(
            "`{issuer}` is not the URL of an authorization server"
        ))
    })?;
    // RFC 8414, section 2; the URL of its metadata would not depend on either.
    if base.query().is_some() || base.fragment().is_some() {
        let reason = format!("the issuer `{issuer}` has a query or a fragment");
        return Err(unusable(reason));
    }
    let path = base.path().trim_end_matches('/');
    let mut locations = vec![
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
        format!("{path}/.well-known/openid-configuration"),
    ];
    locations.dedup();
    let mut answers = Vec::new();
    for location in locations {
        let location = located(&base, &location);
        let document = fetcher.document(&location).await?;
        let read = document.and_then(|document| {
            serde_json::from_value::<AuthorityMetadata>(document).map_err(|error| error.to_string())
        });
        let metadata = match read {
            Ok(metadata) => metadata,
            Err(answer) => {
                answers.push(format!("{}: {answer}", location.path()));
                continue;
            }
        };
        // RFC 8414, section 3.3: otherwise one server could pass as another. A trailing slash after an empty path
        // makes no difference.
        if !is_same(&metadata.issuer, issuer) {
            return Err(unusable(format!(
                "`{}` says that it is `{}`, not `{issuer}`",
                shown(&location),
                metadata.issuer
            )));
        }
        return Ok(Ok(metadata));
    }
    Ok(Err(answers.join(", ")))
}

/// The endpoints of a server of 2025-03-26, which is its own authorization server (2025-03-26, basic/authorization,
/// section 2.3).
async fn without_metadata(
    fetcher: &MetadataFetcher<'_>,
    own: &Url,
) -> Result<Authority, LoginError> {
    let (issuer, resource) = (own.origin().ascii_serialization(), resource_of(own));
    if let Ok(found) = authority_metadata(fetcher, &issuer).await? {
        return Ok(authority(found, resource, Vec::new()));
    }
    Ok(Authority {
        issuer,
        resource,
        authorization_endpoint: Some(located(own, "/authorize")),
        token_endpoint: located(own, "/token"),
        registration_endpoint: Some(located(own, "/register")),
        revocation_endpoint: None,
        server_scopes: Vec::new(),
        has_offline_access: false,
        auth_methods: None,
        takes_metadata_urls: false,
        // That revision required it, and has no metadata that says so.
        protects_codes: true,
        is_guessed: true,
        names_issuer: false,
        is_public: true,
    })
}

pub(super) fn authority(
    found: AuthorityMetadata,
    resource: String,
    server_scopes: Vec<String>,
) -> Authority {
    let methods = found.code_challenge_methods_supported.unwrap_or_default();
    Authority {
        issuer: found.issuer,
        resource,
        authorization_endpoint: found.authorization_endpoint.map(|endpoint| endpoint.0),
        token_endpoint: found.token_endpoint.0,
        registration_endpoint: found.registration_endpoint.map(|endpoint| endpoint.0),
        revocation_endpoint: found.revocation_endpoint.map(|endpoint| endpoint.0),
        server_scopes,
        has_offline_access: found
            .scopes_supported
            .iter()
            .any(|scope| scope == "offline_access"),
        auth_methods: found.token_endpoint_auth_methods_supported,
        takes_metadata_urls: found.client_id_metadata_document_supported,
        protects_codes: methods.iter().any(|method| method == "S256"),
        is_guessed: false,
        names_issuer: found.authorization_response_iss_parameter_supported,
        is_public: true,
    }
}

/// The server's URL as resource indicator (RFC 8707, section 2): without a fragment.
pub(super) fn resource_of(own: &Url) -> String {
    let mut url = own.clone();
    url.set_fragment(None);
    let text = url.to_string();
    if url.path() == "/" && url.query().is_none() {
        text.trim_end_matches('/').to_owned()
    } else {
        text
    }
}

/// `path` at the origin of `url`.
fn located(url: &Url, path: &str) -> Url {
    let mut located = url.clone();
    located.set_path(path);
    located.set_query(None);
    located.set_fragment(None);
    located
}

fn unusable(reason: String) -> LoginError {
    LoginError::Metadata { reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_covers_what_is_below_it() {
        for (resource, own, expected) in [
            ("https://a.com/mcp", "https://a.com/mcp", true),
            ("https://a.com", "https://a.com/mcp", true),
            ("https://a.com/", "https://a.com/mcp/x", true),
            ("https://a.com/mcp/", "https://a.com/mcp", true),
            ("https://a.com:443/mcp", "https://A.com/mcp", true),
            ("https://a.com/mcp", "https://a.com/mcp2", false),
            ("https://a.com/mcp/x", "https://a.com/mcp", false),
            ("https://b.com/mcp", "https://a.com/mcp", false),
            ("http://a.com/mcp", "https://a.com/mcp", false),
            ("mcp", "https://a.com/mcp", false),
        ] {
            assert_eq!(
                covers(resource, &Url::parse(own).unwrap()),
                expected,
                "{resource} for {own}"
            );
        }
    }

    #[test]
    fn a_resource_is_named_without_what_servers_never_see() {
        for (own, expected) in [
            ("https://a.com/mcp#x", "https://a.com/mcp"),
            ("https://a.com", "https://a.com"),
            ("https://a.com/mcp?x=1", "https://a.com/mcp?x=1"),
        ] {
            assert_eq!(resource_of(&Url::parse(own).unwrap()), expected);
        }
    }
}
