// The conformance suite's scenarios for authorization servers: `authorization.mjs SUITE ISSUER PORT INVITATION`. Registers a client, has the suite
// run, and is the person in the browser that it asks for. Prints what the suite says.

import { spawn } from "node:child_process";
import { accept, visit } from "./browser.mjs";

const [suite, issuer, port, invitation] = process.argv.slice(2);
const end = `http://127.0.0.1:${port}/callback`;
const cookies = new Map();
await accept(invitation, "anna", cookies);
const metadata = await (await fetch(`${issuer}/.well-known/oauth-authorization-server`)).json();
const registered = await fetch(metadata.registration_endpoint, {
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify({ client_name: "the suite", redirect_uris: [end], token_endpoint_auth_method: "none" }),
});
const { client_id } = await registered.json();
const args = ["authorization", "--url", issuer, "--client-id", client_id, "--resource", `${issuer}/mcp`, "--port", port];
const run = spawn(process.execPath, [suite, ...args], { stdio: ["ignore", "pipe", "inherit"] });
let said = "";
run.stdout.on("data", async (chunk) => {
  process.stdout.write(chunk);
  said += chunk;
  const url = said.match(/^(http\S+\/oauth\/authorize\?\S+)\s*$/m);
  if (!url) return;
  said = "";
  const back = await visit(url[1], end, "anna", cookies);
  // The suite prints the URL before it listens for the way back.
  for (let tries = 1; ; tries++) {
    try {
      await fetch(back);
      break;
    } catch (error) {
      if (tries === 600) throw error;
      await new Promise((again) => setTimeout(again, 100));
    }
  }
});
run.on("exit", (code) => process.exit(code ?? 1));
