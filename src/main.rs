//! The `mcpzip` binary.
fn main() {}
