// A server of the newer era on the TypeScript SDK 2.x, on stdio. Its board is in its memory: readers see what was written in the same process.

import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const board = [];

serveStdio(() => {
  const server = new McpServer({ name: "board", version: "1" });
  const text = (text) => ({ content: [{ type: "text", text }] });
  const line = z.object({ line: z.string() });
  server.registerTool("write_line", { description: "Writes a line on the board", inputSchema: line }, (given) => {
    board.push(given.line);
    return text(`line ${board.length}`);
  });
  server.registerTool("read_board", { description: "Reads all lines of the board", inputSchema: z.object({}) }, () =>
    text(board.join("; ")),
  );
  return server;
});
