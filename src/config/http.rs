//! Reads `http`, how `serve --http` serves clients.

use std::path::PathBuf;
use std::time::Duration;

use super::error::EntryError;
use super::reader::{At, Read};
use super::sections::HttpEntry;
use super::server::Resolver;
use super::{HttpAuth, ListenAddress, Surface, TlsOptions, is_protected, simple_setting};

/// How clients are served over HTTP; arguments and variables go before it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HttpOptions {
    /// The address to listen on.
    pub address: Option<ListenAddress>,
    /// The file with the token that clients send.
    pub token_file: Option<PathBuf>,
    /// The origins of web pages that may call the server.
    pub origins: Vec<String>,
    /// How clients show who they are; `None` without identities.
    pub auth: Option<HttpAuth>,
    /// The URL by which people reach the server, without a slash at its end.
    pub public_url: Option<String>,
    /// The URL by which other replicas reach this one, without a slash at its end.
    pub peer: Option<String>,
    /// The server's certificate; `None` without TLS.
    pub tls: Option<Box<TlsOptions>>,
    /// How long the end waits for calls in progress; `None` does not wait.
    pub drain: Option<Duration>,
    /// Whether the window is served to people who log in.
    pub ui: bool,
    /// The surface of clients over HTTP.
    pub surface: Option<Surface>,
}

impl Resolver<'_> {
    /// The options, and whether figures for Prometheus are served.
    pub(super) fn http(
        &mut self,
        read: Read<HttpEntry>,
    ) -> (Result<HttpOptions, EntryError>, bool) {
        let fault = match read {
            Ok(None) => return (Ok(HttpOptions::default()), false),
            Ok(Some(mut entry)) => {
                let metrics = std::mem::replace(&mut entry.metrics, Ok(None));
                let metrics = simple_setting(metrics, false, self.report);
                match self.http_options(entry) {
                    Ok(options) => return (Ok(options), metrics),
                    Err(fault) => (fault, metrics),
                }
            }
            Err(fault) => (fault, false),
        };
        let (fault, metrics) = fault;
        let value = fault.value.clone();
        self.report.refuse(fault, "`serve --http` does not start");
        (Err(value), metrics)
    }

    fn http_options(&mut self, entry: HttpEntry) -> Result<HttpOptions, At<EntryError>> {
        let ui = simple_setting(entry.ui, false, self.report);
        let is_direct = simple_setting(entry.direct, false, self.report);
        let surface = entry.surface.or(is_direct.then_some(Surface::Direct));
        let address = entry.address.map(|written| {
            let text = self.plain("http.address", &written)?;
            text.parse::<ListenAddress>().map_err(|_| {
                let found = format!("`\"{}\"`", written.value);
                let fault = EntryError::value("http.address", super::LISTEN_EXPECTED, found);
                At::new(written.offset, fault)
            })
        });
        let token_file = entry
            .token_file
            .map(|written| Ok(self.file("http.token_file", &written)?.into()));
        let auth = entry.auth.map(|entry| self.auth(entry)).transpose()?;
        let tls = entry.tls.map(|entry| self.tls(entry)).transpose()?;
        let public_url = entry.public_url.map(|written| {
            let text = self.plain("http.public_url", &written)?;
            let text = text.trim().trim_end_matches('/');
            match is_protected(text) && !text.contains(['?', '#', '@']) {
                true => Ok(text.to_owned()),
                false => {
                    let expected =
                        "a URL with `https://` (`http://` on this machine only), without a query";
                    let found = format!("`\"{}\"`", written.value);
                    let fault = EntryError::value("http.public_url", expected, found);
                    Err(At::new(written.offset, fault))
                }
            }
        });
        let peer = entry.peer.map(|written| {
            let text = self.plain("http.peer", &written)?;
            let text = text.trim().trim_end_matches('/');
            let rest = text
                .strip_prefix("http://")
                .or_else(|| text.strip_prefix("https://"));
            match rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(['/', '?', '#', '@']))
            {
                true => Ok(text.to_owned()),
                false => {
                    let expected = "a URL with a host and no path, as `http://10.0.0.5:8080`";
                    // The part before it may be a password.
                    let shown = written.value.rsplit('@').next().unwrap_or_default();
                    let found = format!("`\"{shown}\"`");
                    let fault = EntryError::value("http.peer", expected, found);
                    Err(At::new(written.offset, fault))
                }
            }
        });
        let certificates = auth.as_ref().is_some_and(|auth| auth.certificates);
        if certificates && tls.as_ref().is_none_or(|tls| tls.client_ca.is_none()) {
            let fault = EntryError::value(
                "http.auth.certificates",
                "together with `http.tls.client_ca`, the authorities of the certificates",
                "no such key".to_owned(),
            );
            return Err(At::new(0, fault));
        }
        if ui && auth.is_none() {
            let fault = EntryError::value(
                "http.ui",
                "together with `http.auth`, by which people log in to the window",
                "no such key".to_owned(),
            );
            return Err(At::new(0, fault));
        }
        let origins = entry.origins.unwrap_or_default();
        let origins = origins
            .iter()
            .map(|written| self.plain("http.origins", written));
        Ok(HttpOptions {
            surface,
            auth,
            public_url: public_url.transpose()?,
            peer: peer.transpose()?,
            tls: tls.map(Box::new),
            drain: entry.drain,
            ui,
            origins: origins.collect::<Result<_, _>>()?,
            address: address.transpose()?,
            token_file: token_file.transpose()?,
        })
    }
}
