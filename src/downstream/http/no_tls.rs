//! TLS of the server is a matter of the program: the library has none.

use crate::config::TlsOptions;

/// There is none.
#[derive(Debug)]
pub(super) enum Tls {}

/// Why there is no TLS.
#[derive(Debug, thiserror::Error)]
#[error("`http.tls` is for the program `mcpzip`")]
pub(crate) struct TlsError;

impl Tls {
    pub(super) fn new(_: TlsOptions) -> Result<Self, TlsError> {
        Err(TlsError)
    }

    pub(super) fn renew(&self) -> bool {
        match *self {}
    }
}
