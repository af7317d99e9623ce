// A small server on the TypeScript SDK 1.x: `server_v1.mjs TRANSPORT`, "stdio" or "streamable-http".

import { randomUUID } from "node:crypto";
import http from "node:http";

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

function make() {
  const server = new McpServer({ name: "server-v1", version: "1" });
  const text = (text) => ({ content: [{ type: "text", text }] });
  const message = { message: z.string() };
  server.registerTool("echo", { description: "Echoes a message back", inputSchema: message }, (given) =>
    text(`Echo: ${given.message}`),
  );
  const numbers = { a: z.number(), b: z.number() };
  server.registerTool("add", { description: "Adds two numbers", inputSchema: numbers }, ({ a, b }) => text(`${a + b}`));
  return server;
}

/** One transport per session, as the SDK wants it. */
const sessions = new Map();

async function handle(request, response) {
  let transport = sessions.get(request.headers["mcp-session-id"]);
  if (!transport) {
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => sessions.set(id, transport),
    });
    await make().connect(transport);
  }
  await transport.handleRequest(request, response);
}

if (process.argv[2] === "stdio") {
  await make().connect(new StdioServerTransport());
} else {
  const listener = http.createServer(handle);
  listener.listen(0, "127.0.0.1", () => console.error(`listening at http://127.0.0.1:${listener.address().port}`));
}
