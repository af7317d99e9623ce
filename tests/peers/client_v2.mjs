// TypeScript SDK 2.x: `client_v2.mjs MODE CALLS SERVER...`; MODE is "legacy" or "auto". See README.md for both ends.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const [mode, calls, command, ...args] = process.argv.slice(2);
const complaints = [];
const client = new Client({ name: "client-v2", version: "1" }, { versionNegotiation: { mode } });
client.onerror = (error) => complaints.push(String(error));

const transport = command.startsWith("http://")
  ? new StreamableHTTPClientTransport(new URL(command))
  : new StdioClientTransport({ command, args, stderr: "inherit" });
await client.connect(transport);
const { tools } = await client.listTools();
const results = [];
for (const [name, given] of JSON.parse(calls)) {
  results.push(await client.callTool({ name, arguments: given }));
}
const report = {
  protocol: client.getNegotiatedProtocolVersion(),
  server: client.getServerVersion()?.name,
  instructions: client.getInstructions(),
  tools,
  results,
  complaints,
};
// A client that ends while its stream is being opened complains of its own abort.
client.onerror = undefined;
await client.close();
console.log(JSON.stringify(report));
