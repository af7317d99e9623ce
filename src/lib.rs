//! mcpzip: one MCP server in front of all the others.
pub mod config;
pub mod mcp;
pub mod secret;
pub mod tool;
