//! A small server of both eras on rmcp, over stdio.

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt as _};
use serde_json::{Value, json};

struct Server;

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool = |name, description, properties: Value| {
            let required: Vec<_> = properties.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
            let schema = json!({ "type": "object", "properties": properties, "required": required });
            Tool::new(name, description, schema.as_object().cloned().unwrap_or_default())
        };
        let number = json!({ "type": "number" });
        Ok(ListToolsResult::with_all_items(vec![
            tool("echo", "Echoes a message back", json!({ "message": { "type": "string" } })),
            tool("add", "Adds two numbers", json!({ "a": number, "b": number })),
        ]))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let given = Value::Object(call.arguments.unwrap_or_default());
        let text = match call.name.as_ref() {
            "echo" => format!("Echo: {}", given["message"].as_str().unwrap_or_default()),
            "add" => (given["a"].as_f64().unwrap_or_default() + given["b"].as_f64().unwrap_or_default()).to_string(),
            name => return Err(ErrorData::invalid_params(format!("no tool {name}"), None)),
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    Server.serve(rmcp::transport::io::stdio_pipes()).await?.waiting().await?;
    Ok(())
}
