//! The state that all HTTP requests share.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::access::Access;
use super::sessions::Sessions;
use crate::mcp::ByteBudget;
use crate::proxy::Proxy;
use crate::shutdown::Tasks;

/// The state that all HTTP requests share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) proxy: Arc<Proxy>,
    pub(super) tasks: Tasks,
    pub(super) access: Arc<Access>,
    pub(super) sessions: Arc<Sessions>,
    /// The budget for incoming messages, until they are answered.
    pub(super) incoming: ByteBudget,
    /// The budget for messages that wait for clients.
    pub(super) outgoing: ByteBudget,
    pub(super) was_ready: AtomicBool,
}
