//! The proxies and certificates that the variables of a session name.
//!
//! The HTTP client would read them from the process, which may serve sessions of other terminals; so they are read here, from the
//! session's variables.

use std::path::PathBuf;

use hyper_util::client::proxy::matcher::Matcher;
use reqwest::{ClientBuilder, NoProxy, Proxy, Url};

use super::certificates::Certificates;
use super::env::Environment;
use crate::tls;

/// No trusted certificate was found.
#[derive(Debug, thiserror::Error)]
#[error("this machine has no certificates to trust, or `SSL_CERT_FILE` names a file without any")]
pub(crate) struct NoCertificates;

/// The way to the internet that a session's variables describe.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Network {
    http: Option<String>,
    https: Option<String>,
    all: Option<String>,
    no: String,
    /// `SSL_CERT_FILE`, which holds instead of the system's certificates, as `SSL_CERT_DIR` does.
    certificate_file: Option<PathBuf>,
    certificate_directories: Vec<PathBuf>,
}

impl Network {
    /// The way that `environment` describes.
    #[must_use]
    pub(crate) fn of(environment: &Environment) -> Self {
        // A web server sets HTTP_PROXY from a header of the request for the programs that it runs.
        let is_of_web_server = environment.get("REQUEST_METHOD").is_some();
        let first = |names: [&str; 2]| {
            let value = names.iter().find_map(|name| environment.get(name));
            let value = value.filter(|value| !value.is_empty() && !is_of_web_server);
            value.map(str::to_owned)
        };
        let path = |name| environment.get(name).filter(|path| !path.is_empty());
        let directories = path("SSL_CERT_DIR").map(std::env::split_paths);
        Self {
            http: first(["HTTP_PROXY", "http_proxy"]),
            https: first(["HTTPS_PROXY", "https_proxy"]),
            all: first(["ALL_PROXY", "all_proxy"]),
            no: first(["NO_PROXY", "no_proxy"]).unwrap_or_default(),
            certificate_file: path("SSL_CERT_FILE").map(PathBuf::from),
            certificate_directories: directories.into_iter().flatten().collect(),
        }
    }

    /// The proxies that the variables name.
    pub(crate) fn proxies(&self) -> impl Iterator<Item = &str> {
        let all = [&self.http, &self.https, &self.all];
        all.into_iter().flatten().map(String::as_str)
    }

    /// Whether a proxy is used for `url`.
    #[must_use]
    pub(crate) fn has_proxy_for(&self, url: &Url) -> bool {
        let matcher = if self.names_proxies() {
            Matcher::builder()
                .http(self.http.clone().unwrap_or_default())
                .https(self.https.clone().unwrap_or_default())
                .all(self.all.clone().unwrap_or_default())
                .no(self.no.clone())
                .build()
        } else if HAS_SYSTEM_SETTINGS {
            Matcher::from_system()
        } else {
            return false;
        };
        url.as_str()
            .parse()
            .is_ok_and(|url| matcher.intercept(&url).is_some())
    }

    /// Makes a client use these proxies. Where no variable names one, macOS and Windows have a setting of their own.
    pub(crate) fn with_proxies(&self, builder: ClientBuilder) -> ClientBuilder {
        if !self.names_proxies() && HAS_SYSTEM_SETTINGS {
            return builder;
        }
        let no = NoProxy::from_string(&self.no);
        let http = self.http.iter().map(Proxy::http);
        let https = self.https.iter().map(Proxy::https);
        let all = self.all.iter().map(Proxy::all);
        http.chain(https)
            .chain(all)
            // A variable that holds something else than a URL counts as none, as it does for other programs.
            .flatten()
            .fold(builder.no_proxy(), |builder, proxy| {
                builder.proxy(proxy.no_proxy(no.clone()))
            })
    }

    /// Makes a client trust these certificates, and `extra` ones. Without a variable these are the system's; macOS and Windows
    /// know no such variable.
    ///
    /// # Errors
    /// When a variable names files in which there is no certificate.
    pub(crate) fn with_certificates(
        &self,
        builder: ClientBuilder,
        extra: Option<&Certificates>,
    ) -> Result<ClientBuilder, NoCertificates> {
        let extra = extra.into_iter().flat_map(Certificates::iter);
        let has_own = self.certificate_file.is_some() || !self.certificate_directories.is_empty();
        if HAS_SYSTEM_SETTINGS || !has_own {
            return Ok(tls::trusting(builder, extra));
        }
        let (file, directories) = (
            self.certificate_file.as_ref(),
            &self.certificate_directories,
        );
        tls::trusting_only(builder, file, directories, extra).ok_or(NoCertificates)
    }

    fn names_proxies(&self) -> bool {
        self.http.is_some() || self.https.is_some() || self.all.is_some()
    }
}

/// No values: a proxy's URL may hold a password.
impl std::fmt::Debug for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Network")
            .field("names_proxies", &self.names_proxies())
            .finish_non_exhaustive()
    }
}

/// Whether the system has a setting for proxies in addition to the variables, and its certificates always hold.
const HAS_SYSTEM_SETTINGS: bool = cfg!(any(target_os = "macos", windows));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_that_of_the_sessions_variables() {
        let url = |text: &str| Url::parse(text).unwrap();
        let of =
            |pairs: &[(&str, &str)]| Network::of(&Environment::from_iter(pairs.iter().copied()));
        let proxied = of(&[
            ("https_proxy", "http://proxy:3128"),
            ("NO_PROXY", "inner.example"),
        ]);
        assert!(proxied.has_proxy_for(&url("https://a.example/mcp")));
        assert!(!proxied.has_proxy_for(&url("http://a.example/mcp")));
        assert!(!proxied.has_proxy_for(&url("https://inner.example/mcp")));
        let all = of(&[("ALL_PROXY", "socks5://proxy:1080")]);
        assert!(all.has_proxy_for(&url("http://a.example/")));
        let from_web = of(&[("HTTP_PROXY", "http://evil"), ("REQUEST_METHOD", "GET")]);
        assert_eq!(from_web, Network::default());
    }
}
