//! The callback of a login: one page on this machine, for one login only (RFC 8252, section 7.3).

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::time::Duration;

use reqwest::Url;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio::task::{AbortHandle, JoinSet};

use super::error::LoginError;

/// The path of the page.
const PATH: &str = "/callback";

/// The largest head of a request in bytes, and the time limit for it.
const HEAD_LIMIT: usize = 16 * 1024;
const HEAD_TIME: Duration = Duration::from_secs(5);

/// The number of visitors that are served at once.
const MOST: usize = 64;

/// The listener and the URL that leads to it.
#[derive(Debug)]
pub(super) struct Callback {
    listener: TcpListener,
    port: u16,
    visitors: Mutex<Visitors>,
}

/// The visitors that are being served.
#[derive(Debug, Default)]
struct Visitors {
    serving: JoinSet<Option<(Url, Visitor)>>,
    /// In the order of arrival.
    came: VecDeque<AbortHandle>,
}

/// A browser that waits for its page.
#[derive(Debug)]
pub(super) struct Visitor(TcpStream);

impl Callback {
    /// Listens on `port`; 0 chooses one.
    pub(super) async fn open(port: u16) -> Result<Self, LoginError> {
        let failed = |source| LoginError::Port { port, source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .await
            .map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        Ok(Self {
            listener,
            port,
            visitors: Mutex::default(),
        })
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// The redirect URL.
    pub(super) fn url(&self) -> String {
        url_at(self.port)
    }

    /// Waits for the visitor whose URL `belongs` to the login. Others get an error page. Visitors are served in
    /// parallel, so a silent one does not delay others.
    ///
    /// # Cancel safety
    /// A visitor that has arrived is served by the next call.
    pub(super) async fn visitor(
        &self,
        belongs: impl Fn(&Url) -> bool + Clone + Send + 'static,
    ) -> Result<(Url, Visitor), LoginError> {
        let mut visitors = self.visitors.lock().await;
        loop {
            tokio::select! {
                accepted = self.listener.accept() => {
                    let (stream, _) = accepted.map_err(|source| LoginError::Port {
                        port: self.port,
                        source,
                    })?;
                    visitors.serve(Visitor(stream).matching(self.port, belongs.clone()));
                }
                Some(found) = visitors.serving.join_next() => {
                    if let Ok(Some(found)) = found {
                        return Ok(found);
                    }
                }
            }
        }
    }
}

impl Visitors {
    /// Serves one more visitor; beyond `MOST`, the oldest one is dropped.
    fn serve(&mut self, visit: impl Future<Output = Option<(Url, Visitor)>> + Send + 'static) {
        self.came.retain(|visitor| !visitor.is_finished());
        if self.came.len() >= MOST
            && let Some(first) = self.came.pop_front()
        {
            first.abort();
        }
        self.came.push_back(self.serving.spawn(visit));
    }
}

impl Visitor {
    /// The visitor and its URL, if it `belongs` to the login; every other visitor gets an answer.
    async fn matching(mut self, port: u16, belongs: impl Fn(&Url) -> bool) -> Option<(Url, Self)> {
        let target = tokio::time::timeout(HEAD_TIME, self.target()).await;
        let url = target
            .ok()
            .flatten()
            .and_then(|target| Url::parse(&format!("http://127.0.0.1:{port}{target}")).ok());
        match url.filter(|url| url.path() == PATH) {
            Some(url) if belongs(&url) => return Some((url, self)),
            // Every program on this machine can connect, so a foreign visitor does not end the login.
            Some(_) => {
                let sentence = "This does not belong to the login in progress";
                self.show("400 Bad Request", sentence).await;
            }
            None => self.show("404 Not Found", "There is nothing here").await,
        }
        None
    }

    /// The target of a GET request.
    async fn target(&mut self) -> Option<String> {
        let mut head = Vec::new();
        while !head.windows(4).any(|end| end == b"\r\n\r\n") {
            if head.len() > HEAD_LIMIT || self.0.read_buf(&mut head).await.ok()? == 0 {
                return None;
            }
        }
        let head = String::from_utf8_lossy(&head);
        let mut words = head.lines().next()?.split(' ');
        words.next().filter(|method| *method == "GET")?;
        words
            .next()
            .filter(|target| target.starts_with('/'))
            .map(str::to_owned)
    }

    /// Shows a page with one sentence, which contains no foreign text.
    pub(super) async fn show(mut self, status: &str, sentence: &str) {
        let page = format!(
            "<!doctype html><meta charset=utf-8><title>mcpzip</title>\
             <body style=\"font:1.2em system-ui;margin:4em;color-scheme:light dark\"><p>{sentence}.<p>You may close this page.\n"
        );
        let answer = format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\ncache-control: no-store\r\n\
             referrer-policy: no-referrer\r\ncontent-security-policy: default-src 'none'; style-src 'unsafe-inline'\r\n\
             connection: close\r\n\r\n{page}",
            page.len()
        );
        // A visitor that has left does not need it.
        let _ = tokio::time::timeout(HEAD_TIME, self.0.write_all(answer.as_bytes())).await;
        let _ = tokio::time::timeout(HEAD_TIME, self.0.shutdown()).await;
    }
}

/// The URL of the callback at `port`.
pub(super) fn url_at(port: u16) -> String {
    format!("http://127.0.0.1:{port}{PATH}")
}

/// The port of such a URL.
pub(super) fn port_of(url: &str) -> Option<u16> {
    Url::parse(url).ok()?.port()
}
