// Shows the tools of one server behind `mcpzip` as if they were its own: `unmeta.mjs MCPZIP_URL SERVER`. It prints its own URL.
// The conformance suite calls tools by fixed names; this makes them `execute_tool`, so that all that a call can do (progress,
// logging, requests to the client, rounds of input) goes the way of the three tools. It reads a request, changes the names in
// it, and passes everything else on as it comes.

import http from "node:http";

const [target, server] = process.argv.slice(2);
const upstream = new URL(target);

/** Sends `body` on behalf of `request`; the headers that repeat what is in the body follow it. */
function forward(request, body) {
  const headers = { ...request.headers, connection: "close" };
  for (const header of ["host", "origin"]) {
    // Whether a foreign name is let in is for mcpzip to say.
    headers[header] = headers[header]?.replace(`:${request.socket.localPort}`, `:${upstream.port}`);
    if (headers[header] === undefined) delete headers[header];
  }
  if (body !== undefined) headers["content-length"] = Buffer.byteLength(body);
  delete headers["transfer-encoding"];
  const { hostname, port, pathname } = upstream;
  return new Promise((resolve, reject) => {
    const sent = http.request({ hostname, port, path: pathname, method: request.method, headers, agent: false }, resolve);
    sent.on("error", reject);
    request.gone = () => sent.destroy();
    sent.end(body);
  });
}

async function textOf(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** Calls one of the three tools on the session and in the era of `request`; returns its text, or the answer if there is none. */
async function ask(request, message, tool, args) {
  const params = { ...message.params, name: tool, arguments: args };
  const headers = { ...request.headers };
  if (headers["mcp-method"]) Object.assign(headers, { "mcp-method": "tools/call", "mcp-name": tool });
  const body = JSON.stringify({ jsonrpc: "2.0", id: `unmeta ${tool}`, method: "tools/call", params });
  const response = await forward({ headers, method: "POST", socket: request.socket }, body);
  const text = await textOf(response);
  const data = text.startsWith("{") ? [text] : text.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5));
  const answer = data.filter((line) => line.trim()).map((line) => JSON.parse(line)).find((found) => "result" in found);
  return answer?.result.content[0].text;
}

/** The definitions of the server's tools, as describe_tool shows them. */
async function definitions(request, message) {
  const found = await ask(request, message, "search_tools", { query: "test", server, limit: 50 });
  const names = (found ?? "").split("\n").filter((line) => line.startsWith(`${server}__`)).map((line) => line.split("(")[0]);
  const described = names.length ? await ask(request, message, "describe_tool", { names }) : "";
  const blocks = described.split(/\n\n(?=\w+__)/).map((block) => block.split("\n")[1]);
  return blocks.filter(Boolean).map((definition) => JSON.parse(definition));
}

/** The request that mcpzip gets for what the client sent. */
function changed(request, text) {
  let message;
  try {
    message = JSON.parse(text);
  } catch {
    return text;
  }
  if (message.method !== "tools/call" || typeof message.params?.name !== "string") return text;
  const { name, arguments: args } = message.params;
  // Headers that contradict the body shall go on doing so.
  if (request.headers["mcp-name"] === name) request.headers["mcp-name"] = "execute_tool";
  message.params = { ...message.params, name: "execute_tool", arguments: { name: `${server}__${name}`, arguments: args } };
  return JSON.stringify(message);
}

async function listing(request, text, response) {
  const answer = await forward(request, text);
  const body = await textOf(answer);
  const message = JSON.parse(text);
  const tools = answer.statusCode === 200 ? await definitions(request, message) : [];
  const show = (line) => {
    const shown = JSON.parse(line);
    if (shown.result?.tools) shown.result.tools = tools;
    return JSON.stringify(shown);
  };
  const isStream = answer.headers["content-type"]?.startsWith("text/event-stream");
  const lines = body.split("\n").map((line) => (line.startsWith("data: {") ? `data: ${show(line.slice(6))}` : line));
  const { "content-length": _, "transfer-encoding": __, ...headers } = answer.headers;
  response.writeHead(answer.statusCode, headers);
  response.end(isStream ? lines.join("\n") : body && show(body));
}

const listener = http.createServer(async (request, response) => {
  response.on("close", () => request.gone?.());
  try {
    const text = request.method === "POST" ? await textOf(request) : undefined;
    if (text?.includes('"tools/list"')) return await listing(request, text, response);
    const answer = await forward(request, text && changed(request, text));
    response.writeHead(answer.statusCode, answer.headers);
    response.flushHeaders();
    answer.on("error", () => response.destroy());
    answer.pipe(response);
  } catch (error) {
    console.error(String(error));
    response.headersSent ? response.destroy() : response.writeHead(502).end(String(error));
  }
});
listener.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${listener.address().port}/mcp`));
