//! The trace context that requests carry (W3C Trace Context): reading it from headers or `_meta`, and writing it to servers.

use std::fmt;
use std::sync::Arc;

use data_encoding::HEXLOWER;

use crate::mcp::Object;
use crate::mcp::object::quoted;
use crate::secret::random_bytes;

pub(super) type SpanId = [u8; 8];

/// The longest `tracestate` that is passed on in a header; in `_meta` it is passed unchanged. The specification
/// requires at least 512 bytes.
const LONGEST_STATE: usize = 4096;

const SAMPLED: u8 = 1;

/// A position in a trace, passed between processes (W3C Trace Context, `traceparent` and `tracestate`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Context {
    pub(super) trace: [u8; 16],
    pub(super) span: SpanId,
    flags: u8,
    state: Option<String>,
}

/// The relation of a request to a trace.
#[derive(Debug, Clone, Default)]
pub(crate) enum Trace {
    /// No trace is known.
    #[default]
    None,
    /// A trace that others record: its context is passed unchanged.
    Passed(Arc<Context>),
    /// A trace in which mcpzip adds a span for the request.
    Ours(Arc<Context>),
}

impl Context {
    /// Reads `traceparent` and `tracestate`. `None` if the first is invalid. A later version is read like the known
    /// one, as far as that is possible.
    #[must_use]
    pub(crate) fn parse(parent: &str, state: Option<&str>) -> Option<Self> {
        let mut parts = parent.trim().split('-');
        let version = bytes::<1>(parts.next()?)?;
        let (trace, span, flags) = (
            bytes(parts.next()?)?,
            bytes(parts.next()?)?,
            bytes::<1>(parts.next()?)?,
        );
        let is_whole = version != [0] || parts.next().is_none();
        let is_valid = version != [0xff] && trace != [0; 16] && span != [0; 8] && is_whole;
        let state = state
            .map(str::trim)
            .filter(|state| !state.is_empty())
            .map(str::to_owned);
        is_valid.then_some(Self {
            trace,
            span,
            flags: flags[0],
            state,
        })
    }

    /// Reads the context of a request's `_meta` (2026-07-28, basic/index, "Trace context").
    #[must_use]
    pub(crate) fn of_meta(meta: &Object<'_>) -> Option<Self> {
        Self::parse(
            &meta.text("traceparent")?,
            meta.text("tracestate").as_deref(),
        )
    }

    /// The context of a new span, in the trace of `parent` or in a new one. `sample` decides whether a new one is
    /// recorded.
    pub(super) fn below(parent: Option<&Self>, sample: impl FnOnce([u8; 16]) -> bool) -> Self {
        let random: [u8; 24] = random_bytes();
        let (own_trace, span) = random.split_at(16);
        let trace = parent.map_or_else(
            || own_trace.try_into().expect("it is cut there"),
            |parent| parent.trace,
        );
        let flags = if sample(trace) { SAMPLED } else { 0 };
        let span = span.try_into().expect("eight of 24 bytes are left");
        Self {
            trace,
            span,
            flags,
            state: parent.and_then(|parent| parent.state().map(str::to_owned)),
        }
    }

    /// Whether its trace is recorded.
    #[must_use]
    pub(crate) fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The trace flags of W3C.
    pub(super) fn flags(&self) -> u8 {
        self.flags
    }

    /// The value of `traceparent`.
    #[must_use]
    pub(crate) fn parent(&self) -> String {
        format!(
            "00-{}-{}-{:02x}",
            HEXLOWER.encode(&self.trace),
            HEXLOWER.encode(&self.span),
            self.flags
        )
    }

    /// The value of `tracestate`, if a header can carry it.
    #[must_use]
    pub(crate) fn state(&self) -> Option<&str> {
        let is_fit = |state: &&str| {
            state.len() <= LONGEST_STATE && state.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        };
        self.state.as_deref().filter(is_fit)
    }

    /// The members for `_meta`, without braces.
    #[must_use]
    pub(crate) fn members(&self) -> String {
        let state = self
            .state
            .as_ref()
            .map(|state| format!(r#","tracestate":{}"#, quoted(state)));
        format!(
            r#""traceparent":"{}"{}"#,
            self.parent(),
            state.unwrap_or_default()
        )
    }
}

impl Trace {
    /// The context that is passed to the next process.
    #[must_use]
    pub(crate) fn context(&self) -> Option<&Arc<Context>> {
        match self {
            Self::None => None,
            Self::Passed(context) | Self::Ours(context) => Some(context),
        }
    }
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.parent())
    }
}

/// The bytes of `text` in lower-case hexadecimal. Capitals are invalid (W3C Trace Context, section 3.2.2.1).
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    HEXLOWER.decode(text.as_bytes()).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_context_is_read_and_written_as_the_specification_has_it() {
        let context = Context::parse(PARENT, Some("rojo=1,congo=2")).unwrap();
        assert!(context.is_sampled());
        assert_eq!(
            (context.parent().as_str(), context.state()),
            (PARENT, Some("rojo=1,congo=2"))
        );
        assert_eq!(
            context.members(),
            format!(r#""traceparent":"{PARENT}","tracestate":"rojo=1,congo=2""#)
        );
        let later = format!("01{}-more", &PARENT[2..]);
        assert_eq!(Context::parse(&later, None).unwrap().parent(), PARENT);
        for odd in [
            "",
            "00-1-2-3",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e473ü-00f067aa0ba902b7-01",
        ] {
            assert_eq!(Context::parse(odd, None), None, "{odd}");
        }
    }

    #[test]
    fn what_a_header_cannot_carry_is_left_out_of_it() {
        let with = |state: &str| Context::parse(PARENT, Some(state)).unwrap();
        assert_eq!(with("a=1\nx-evil: 1").state(), None);
        assert_eq!(with(&"a".repeat(5000)).state(), None);
    }

    #[test]
    fn a_child_is_in_the_trace_of_its_parent() {
        let parent = Context::parse(PARENT, Some("a=1")).unwrap();
        let child = Context::below(Some(&parent), |_| false);
        assert_eq!(
            (child.trace, child.state(), child.is_sampled()),
            (parent.trace, Some("a=1"), false)
        );
        assert_ne!(child.span, parent.span);
        assert_ne!(
            Context::below(None, |_| true).trace,
            Context::below(None, |_| true).trace
        );
    }
}
