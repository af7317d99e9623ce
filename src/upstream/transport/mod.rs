//! The wires to servers: one file per transport.

pub(super) mod stdio;
