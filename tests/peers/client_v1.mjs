// TypeScript SDK 1.x: `client_v1.mjs MODE CALLS COMMAND ARG...`; there is one MODE, "legacy". See README.md for the output.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const [, calls, command, ...args] = process.argv.slice(2);
const complaints = [];
const client = new Client({ name: "client-v1", version: "1" });
client.onerror = (error) => complaints.push(String(error));
const transport = new StdioClientTransport({ command, args, stderr: "inherit" });
let protocol;
// The client keeps the revision to itself, but tells it to its transport.
transport.setProtocolVersion = (version) => (protocol = version);

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
await client.close();
console.log(JSON.stringify(report));
