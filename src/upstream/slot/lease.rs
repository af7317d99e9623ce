//! A connection in use.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

use super::{Phase, Slot};
use crate::config::IdleTimeout;
use crate::upstream::connection::Connection;

/// A connection in use: it is not closed for idleness while this exists.
#[derive(Debug)]
pub(in crate::upstream) struct Lease {
    pub(super) slot: Arc<Slot>,
    /// The session that it is for.
    pub(in crate::upstream) user: u64,
    pub(super) connection: Arc<Connection>,
    /// The number of times that the server had been stopped when this was taken.
    pub(super) stops: u64,
}

impl Lease {
    /// Whether only approved tools may be called, by the server's entry.
    pub(in crate::upstream) fn is_pinned(&self) -> bool {
        !self.slot.entry.trust.is_report()
    }

    /// Whether the server was stopped since. Then a request is not repeated, which would start it again.
    pub(in crate::upstream) fn is_stopped(&self) -> bool {
        self.slot.lock().stops != self.stops
    }

    /// Closes the connection, unless another call has used it or its entry keeps it open.
    pub(in crate::upstream) fn close_unless_shared(self) {
        let mut inner = self.slot.lock();
        if inner.is_current(&self.connection)
            && inner.uses == 1
            && self.slot.idle.timeout != IdleTimeout::Never
        {
            inner.phase = Phase::Disconnected;
            self.connection.wire.close();
        }
    }
}

impl Deref for Lease {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut inner = self.slot.lock();
        inner.in_use -= 1;
        let minutes = inner.last_used.elapsed().as_secs_f64() / 60.0;
        inner.heat = inner.heat * 0.5_f64.powf(minutes / 15.0) + 1.0;
        inner.last_used = Instant::now();
        if inner.retired && inner.in_use == 0 {
            self.connection.wire.close();
        }
    }
}
