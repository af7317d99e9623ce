// A small server of both eras on the TypeScript SDK 2.x: `server_v2.mjs TRANSPORT`, "stdio" or "streamable-http".

import http from "node:http";
import { Readable } from "node:stream";

import { McpServer, createMcpHandler } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

function make() {
  const server = new McpServer({ name: "server-v2", version: "1" });
  const text = (text) => ({ content: [{ type: "text", text }] });
  const message = z.object({ message: z.string() });
  server.registerTool("echo", { description: "Echoes a message back", inputSchema: message }, (given) =>
    text(`Echo: ${given.message}`),
  );
  const numbers = z.object({ a: z.number(), b: z.number() });
  server.registerTool("add", { description: "Adds two numbers", inputSchema: numbers }, ({ a, b }) => text(`${a + b}`));
  return server;
}

if (process.argv[2] === "stdio") {
  serveStdio(make);
} else {
  const handler = createMcpHandler(make);
  const listener = http.createServer(async (request, response) => {
    const body = request.method === "POST" ? Readable.toWeb(request) : undefined;
    const { method, headers } = request;
    const asked = new Request(`http://${headers.host}${request.url}`, { method, headers, body, duplex: "half" });
    const answer = await handler.fetch(asked);
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    answer.body ? Readable.fromWeb(answer.body).pipe(response) : response.end();
  });
  listener.listen(0, "127.0.0.1", () => console.error(`listening at http://127.0.0.1:${listener.address().port}`));
}
