//! Opens a connection in either era of the protocol.

use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::CallError;
use super::host::{Declared, Host};
use super::introduction::Introduction;
use super::opening::{initialize_params, modern_meta};
use super::reply::ServerReply;
use super::wire::Wire;
use crate::mcp::{
    ClientCapabilities, ErrorCode, Frame, Object, Revision, ServerCapabilities, TASKS,
};
use crate::telemetry;

/// Why a connection could not be opened.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The server speaks the modern era only. It needs a new process, because the handshake may have bound this one.
    ModernOnly,
    /// The server refused, or its response cannot be understood.
    Refused(String),
    /// No response arrived.
    NoAnswer(CallError),
}

impl Introduction {
    /// The members for the `_meta` of a request for `host` (2026-07-28, basic/index); empty for a server with a
    /// handshake.
    ///
    /// With `takes_task`, a server with the extension for tasks may answer with one.
    pub(super) fn request_meta(
        &self,
        host: Option<&dyn Host>,
        may_ask: bool,
        takes_task: bool,
    ) -> String {
        if !self.revision.is_modern() {
            return String::new();
        }
        let level = host.and_then(Host::log_level);
        let level = level
            .map(|level| format!(r#","io.modelcontextprotocol/logLevel":{level}"#))
            .unwrap_or_default();
        // The questions of a task are in its state, and answered by requests of their own.
        let declared = |host: &dyn Host| match host.is_askable() || takes_task {
            true => host.capabilities(),
            false => host.capabilities().without_questions(),
        };
        let host = host.filter(|_| may_ask);
        let mut extensions: Vec<_> = host
            .map(|host| host.extensions().into_iter().collect())
            .unwrap_or_default();
        if may_ask && takes_task && self.capabilities.has_extension(TASKS) {
            extensions.push((TASKS.to_owned(), "{}".to_owned()));
        }
        let capabilities = host.map_or(ClientCapabilities::NONE, declared);
        modern_meta(&capabilities.with_extensions(extensions)) + &level
    }

    /// Opens a connection with a handshake (up to 2025-11-25, basic/lifecycle).
    pub(super) async fn legacy(
        wire: &Wire,
        declared: &Declared,
        limit: Duration,
    ) -> Result<Self, Refusal> {
        let params = initialize_params(declared.clone());
        let result = answer(
            wire.request("initialize".into(), |_| Frame::from(params), limit, None)
                .await,
        )?;
        let result = object(&result)?;
        let version = result
            .text("protocolVersion")
            .ok_or_else(|| Refusal::Refused("it named no protocol version".into()))?;
        let revision = Revision::parse(&version)
            .filter(|revision| !revision.is_modern())
            .ok_or_else(|| {
                Refusal::Refused(format!("it requires protocol revision `{version}`"))
            })?;
        wire.agree(revision);
        wire.notify("notifications/initialized").await;
        Ok(Self::new(revision, &result, result.get("serverInfo")))
    }

    /// Opens a connection without a handshake (2026-07-28, server/discover).
    pub(super) async fn modern(wire: &Wire, limit: Duration) -> Result<Self, Refusal> {
        wire.agree(Revision::V2026_07_28);
        let params = format!(
            r#"{{"_meta":{{{}}}}}"#,
            modern_meta(&ClientCapabilities::NONE.to_string())
        );
        let result = answer(
            wire.request(
                "server/discover".into(),
                |_| Frame::from(params),
                limit,
                None,
            )
            .await,
        )?;
        let result = object(&result)?;
        let versions: Vec<String> = result
            .get("supportedVersions")
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .ok_or_else(|| Refusal::Refused("it named no supported versions".into()))?;
        if !versions
            .iter()
            .any(|version| version == Revision::V2026_07_28.as_str())
        {
            return Err(Refusal::Refused(format!(
                "it supports only {}",
                versions.join(", ")
            )));
        }
        let meta = result
            .get("_meta")
            .and_then(|raw| Object::parse(raw).ok())
            .unwrap_or_default();
        Ok(Self::new(
            Revision::V2026_07_28,
            &result,
            meta.get("io.modelcontextprotocol/serverInfo"),
        ))
    }

    fn new(revision: Revision, result: &Object<'_>, server_info: Option<&RawValue>) -> Self {
        let software = server_info
            .and_then(|raw| Object::parse(raw).ok())
            .and_then(|info| {
                let version = info
                    .text("version")
                    .map(|version| format!(" {version}"))
                    .unwrap_or_default();
                let software = format!("{}{version}", info.text("name")?);
                // People see it, and a server may put the secrets of its variables there.
                Some(telemetry::masked(&software).into_owned())
            });
        let instructions = result
            .text("instructions")
            .filter(|text| !text.trim().is_empty());
        let capabilities = result
            .get("capabilities")
            .map(ServerCapabilities::new)
            .unwrap_or_default();
        Self {
            revision,
            software,
            instructions,
            capabilities,
        }
    }
}

fn answer(reply: Result<ServerReply, CallError>) -> Result<Box<RawValue>, Refusal> {
    let raw =
        |bytes: &Bytes| serde_json::from_slice(bytes).expect("a reply's payload was read as JSON");
    match reply {
        Ok(ServerReply::Result(result)) => Ok(raw(&result)),
        Ok(ServerReply::Error(error)) => {
            let error: Box<RawValue> = raw(&error);
            let error = object(&error)?;
            if error.get("code").and_then(|code| code.get().parse().ok())
                == Some(ErrorCode::UNSUPPORTED_VERSION.0)
            {
                return Err(Refusal::ModernOnly);
            }
            Err(Refusal::Refused(
                error
                    .text("message")
                    .unwrap_or_else(|| "an error without a message".into()),
            ))
        }
        Err(error) => Err(Refusal::NoAnswer(error)),
    }
}

fn object(raw: &RawValue) -> Result<Object<'_>, Refusal> {
    Object::parse(raw).map_err(|_| Refusal::Refused("its answer is not an object".into()))
}
