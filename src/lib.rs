//! mcpzip: one MCP server in front of all the others.
pub mod mcp;
pub mod proxy;
pub mod tool;
