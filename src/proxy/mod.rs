//! The MCP server that the downstream client sees.

pub mod arguments;
