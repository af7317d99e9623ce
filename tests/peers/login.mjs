// The TypeScript SDKs log in by themselves: `login.mjs SDK MODE PERSON URL [INVITATION]`; SDK is 1 or 2, MODE "legacy" or "auto". Prints
// one JSON object: `protocol`, `answers` of two calls of git__log, the second one with a token that was renewed, and what was requested.

import { accept, visit } from "./browser.mjs";

const [sdk, mode, person, url, invitation] = process.argv.slice(2);
const END = "http://127.0.0.1:9/callback";
const cookies = new Map();
if (invitation) await accept(invitation, person, cookies);

let tokens, client, verifier, code;
const provider = {
  redirectUrl: END,
  clientMetadata: { client_name: `login ${sdk} ${mode}`, redirect_uris: [END], grant_types: ["authorization_code", "refresh_token"], response_types: ["code"], token_endpoint_auth_method: "none" },
  state: () => "a-state",
  clientInformation: () => client,
  saveClientInformation: (information) => (client = information),
  tokens: () => tokens,
  saveTokens: (given) => (tokens = given),
  saveCodeVerifier: (text) => (verifier = text),
  codeVerifier: () => verifier,
  redirectToAuthorization: async (authorization) => {
    const back = await visit(authorization, END, person, cookies);
    if (back.searchParams.get("error")) throw new Error(String(back));
    code = back.searchParams;
  },
};

const [{ Client }, { StreamableHTTPClientTransport }] =
  sdk === "1"
    ? [await import("@modelcontextprotocol/sdk/client/index.js"), await import("@modelcontextprotocol/sdk/client/streamableHttp.js")]
    : Array(2).fill(await import("@modelcontextprotocol/client"));
const made = () =>
  sdk === "1"
    ? new Client({ name: "login-v1", version: "1" })
    : new Client({ name: "login-v2", version: "1" }, { versionNegotiation: { mode } });
const transport = () => new StreamableHTTPClientTransport(new URL(url), { authProvider: provider });

const first = transport();
let session = made();
try {
  await session.connect(first);
  throw new Error("it was let in without a login");
} catch (error) {
  if (!code) throw error;
}
await first.finishAuth(sdk === "1" ? code.get("code") : code);
session = made();
const second = transport();
await session.connect(second);
const call = () => session.callTool({ name: "execute_tool", arguments: { name: "git__log" } });
const answers = [await call()];
const before = tokens.access_token;
// As if it had expired.
tokens = { ...tokens, access_token: "expired" };
answers.push(await call());
const protocol = sdk === "1" ? second.protocolVersion : session.getNegotiatedProtocolVersion();
console.log(JSON.stringify({ protocol, answers: answers.map((answer) => answer.content[0].text), renewed: tokens.access_token !== before }));
await session.close();
