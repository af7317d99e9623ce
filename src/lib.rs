//! mcpzip: one MCP server in front of all the others.
pub mod catalog;
pub mod files;
pub mod mcp;
pub mod secret;
pub mod tool;
