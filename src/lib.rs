//! mcpzip: one MCP server in front of all the others.
pub mod demo;
pub mod mcp;
pub mod tool;
