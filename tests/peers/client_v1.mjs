// TypeScript SDK 1.x: `client_v1.mjs MODE CALLS SERVER...`; there is one MODE, "legacy". See README.md for both ends.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [, calls, command, ...args] = process.argv.slice(2);
const complaints = [];
const client = new Client({ name: "client-v1", version: "1" });
client.onerror = (error) => complaints.push(String(error));
const transport = command.startsWith("http://")
  ? new StreamableHTTPClientTransport(new URL(command))
  : new StdioClientTransport({ command, args, stderr: "inherit" });
let protocol;
// The client keeps the revision to itself, but tells it to its transport.
const setProtocolVersion = transport.setProtocolVersion;
transport.setProtocolVersion = (version) => {
  protocol = version;
  setProtocolVersion?.call(transport, version);
};

await client.connect(transport);
const { tools } = await client.listTools();
const results = [];
for (const [name, given] of JSON.parse(calls)) {
  results.push(await client.callTool({ name, arguments: given }));
}
const report = {
  protocol,
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
