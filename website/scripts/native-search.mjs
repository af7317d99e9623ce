// Measures what a client's own tool search costs, and mcpzip in its place: real clients, a scripted server, and a stand-in for the
// model's API on this machine that plays the same task in each setup and keeps every request.
//
//     cargo build --workspace --bins && node scripts/native-search.mjs DIRECTORY
//
// installs the clients into DIRECTORY and writes src/data/native-search.json. Nothing is sent to a model.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Tiktoken } from 'js-tiktoken/lite';
import o200k from 'js-tiktoken/ranks/o200k_base';
import { fail, program, writeJson } from './lib.mjs';

const PACKAGES = ['@anthropic-ai/claude-code@2.1.197', '@openai/codex@0.169.0'];
const SIZES = [50, 500];
const NEED = 'a text of so many bytes';
const TOOL = 'payload';
const CALL = { bytes: 100 };
const LIMIT = 120_000;

const encoder = new Tiktoken(o200k);
const tokens = (value) => encoder.encode(JSON.stringify(value), 'all').length;

/** The input of the model: everything in a request except the settings of its answer. */
const seen = ({ system, instructions, tools, messages, input }) => ({ system, instructions, tools, messages, input });

/** A model that plays `turns`, and the requests it got. */
async function model(turns) {
  const requests = [];
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const part of request) text += part;
    const path = request.url.split('?')[0];
    const body = text ? JSON.parse(text) : {};
    const speaks = path.endsWith('/v1/messages') ? anthropic : path.endsWith('/responses') ? openai : undefined;
    if (!speaks) return response.writeHead(request.method === 'HEAD' ? 200 : 404, { 'content-type': 'application/json' }).end('{}');
    // Requests without tools, for a title say, are not part of the task.
    const turn = body.tools?.length ? turns[requests.push(body) - 1] ?? { text: 'done' } : { text: 'ok' };
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const event of speaks(body, turn)) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    return response.end();
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { port: server.address().port, requests, close: () => server.close() };
}

let ids = 0;

function* anthropic({ model: name }, turn) {
  const id = `toolu_${(ids += 1)}`;
  yield { type: 'message_start', message: { id: `msg_${ids}`, type: 'message', role: 'assistant', model: name, content: [], stop_reason: null, usage: { input_tokens: 1, output_tokens: 1 } } };
  yield { type: 'content_block_start', index: 0, content_block: turn.text ? { type: 'text', text: '' } : { type: 'tool_use', id, name: turn.tool, input: {} } };
  yield { type: 'content_block_delta', index: 0, delta: turn.text ? { type: 'text_delta', text: turn.text } : { type: 'input_json_delta', partial_json: JSON.stringify(turn.input) } };
  yield { type: 'content_block_stop', index: 0 };
  yield { type: 'message_delta', delta: { stop_reason: turn.text ? 'end_turn' : 'tool_use' }, usage: { output_tokens: 1 } };
  yield { type: 'message_stop' };
}

function* openai({ model: name }, turn) {
  const id = `call_${(ids += 1)}`;
  const call = { id: `item_${ids}`, call_id: id, status: 'completed' };
  const item = turn.text ? { type: 'message', id: `item_${ids}`, role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: turn.text, annotations: [] }] }
    : turn.tool === 'tool_search' ? { ...call, type: 'tool_search_call', execution: 'client', arguments: turn.input }
      : { ...call, type: 'function_call', name: turn.tool, namespace: turn.namespace, arguments: JSON.stringify(turn.input) };
  const answer = { id: `resp_${ids}`, object: 'response', created_at: 0, status: 'completed', model: name, output: [item], usage: { input_tokens: 1, input_tokens_details: { cached_tokens: 0 }, output_tokens: 1, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 2 } };
  yield { type: 'response.created', response: { ...answer, status: 'in_progress', output: [] } };
  yield { type: 'response.output_item.done', output_index: 0, item };
  yield { type: 'response.completed', response: answer };
}

/** The clients: how each is started with `servers`, and the names its model has for their tools. */
const CLIENTS = [
  {
    name: 'Claude Code',
    bin: 'claude',
    async run(bin, home, port, { servers, isSearching }) {
      const file = join(home, 'mcp.json');
      writeFileSync(file, JSON.stringify({ mcpServers: servers }));
      // The client waits for its servers, as they are there when a person has written a first sentence.
      const env = { ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}`, ANTHROPIC_API_KEY: 'none', ENABLE_TOOL_SEARCH: String(isSearching), DISABLE_AUTOUPDATER: '1', MCP_CONNECTION_NONBLOCKING: 'false', MCP_CONNECT_TIMEOUT_MS: '30000', CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1' };
      await start(bin, ['-p', 'go', '--mcp-config', file, '--strict-mcp-config', '--allowedTools', 'mcp__bench__*', 'mcp__mcpzip__*'], home, env);
    },
    search: (query) => ({ tool: 'ToolSearch', input: { query, max_results: 5 } }),
    call: (server, tool, input) => ({ tool: `mcp__${server}__${tool}`, input }),
    own: { alwaysLoad: true },
  },
  {
    name: 'Codex',
    bin: 'codex',
    async run(bin, home, port, { servers, isSearching }) {
      mkdirSync(join(home, '.codex'));
      // Codex searches for models that it knows to support this; for others it shows every tool.
      const lines = [`model = "${isSearching ? 'gpt-5.5' : 'stand-in'}"`, 'model_provider = "local"', 'approval_policy = "never"',
        '[model_providers.local]', 'name = "local"', `base_url = "http://127.0.0.1:${port}/v1"`, 'env_key = "NONE"', 'wire_api = "responses"'];
      for (const [name, { command, args }] of Object.entries(servers)) {
        lines.push(`[mcp_servers.${name}]`, 'required = true', 'default_tools_approval_mode = "approve"', `command = ${JSON.stringify(command)}`, `args = ${JSON.stringify(args)}`);
      }
      if (servers.mcpzip && !servers.mcpzip.args.includes('--direct')) lines.push('[features.code_mode]', 'direct_only_tool_namespaces = ["mcp__mcpzip"]');
      writeFileSync(join(home, '.codex/config.toml'), `${lines.join('\n')}\n`);
      await start(bin, ['exec', '--skip-git-repo-check', 'go'], home, { NONE: 'none' });
    },
    search: (query) => ({ tool: 'tool_search', input: { query } }),
    call: (server, tool, input) => ({ tool, namespace: `mcp__${server}`, input }),
    own: {},
  },
];

async function start(bin, args, home, env) {
  const project = join(home, 'project');
  mkdirSync(project);
  // Only the path of this machine's environment, so that the instructions are the same on every machine.
  const child = spawn(bin, args, { cwd: project, stdio: ['ignore', 'pipe', 'pipe'], env: { PATH: process.env.PATH, HOME: home, ...env } });
  let said = '';
  child.stdout.on('data', (data) => { said += data; });
  child.stderr.on('data', (data) => { said += data; });
  const timer = setTimeout(() => child.kill('SIGKILL'), LIMIT);
  const code = await new Promise((resolve) => child.on('close', resolve));
  clearTimeout(timer);
  if (code !== 0) fail(`${bin} ended with ${code}: ${said.slice(-2000)}`);
}

const mcpzip = program() ?? fail('the program is not built: cargo build --workspace --bins');
const bench = join(dirname(mcpzip), 'mcpzip-bench');
const directory = process.argv[2] ?? fail('name a directory for the clients');
if (!existsSync(join(directory, 'node_modules/.bin/codex'))) {
  execFileSync('npm', ['install', '--no-audit', '--no-fund', '--prefix', directory, ...PACKAGES], { stdio: 'inherit' });
}

/** The requests of one task, and whether its call was answered. */
async function play(client, turns, options) {
  const home = mkdtempSync(join(tmpdir(), 'mcpzip-native-'));
  const stand = await model(turns);
  try {
    await client.run(join(directory, 'node_modules/.bin', client.bin), home, stand.port, options(home));
  } finally {
    stand.close();
    rmSync(home, { recursive: true, force: true });
  }
  if (stand.requests.length !== turns.length) fail(`${client.name}: ${stand.requests.length} requests in place of ${turns.length}`);
  return stand.requests.map(seen);
}

function proxied(home, upstream, ...flags) {
  const config = join(home, 'mcpzip.json');
  writeFileSync(config, JSON.stringify({ mcpServers: { bench: upstream } }));
  const args = ['--config', config, '--cache-dir', join(home, 'cache'), '--state-dir', join(home, 'state')];
  // A client's second start: the tools are known.
  execFileSync(mcpzip, ['tools', '--json', ...args], { stdio: 'ignore' });
  return { command: mcpzip, args: ['serve', ...args, ...flags] };
}

const end = { text: 'done' };
const rows = [];
for (const client of CLIENTS) {
  const [empty] = await play(client, [end], () => ({ servers: {}, isSearching: true }));
  const [plain] = await play(client, [end], () => ({ servers: {}, isSearching: false }));
  for (const size of SIZES) {
    const upstream = { command: bench, args: ['upstream', '--tools', String(size)] };
    const setups = [
      { setup: 'all definitions', base: plain, turns: [client.call('bench', TOOL, CALL), end], options: () => ({ servers: { bench: upstream }, isSearching: false }) },
      { setup: "the client's search", base: empty, turns: [client.search(NEED), client.call('bench', TOOL, CALL), end], options: () => ({ servers: { bench: upstream }, isSearching: true }) },
      {
        setup: 'mcpzip',
        base: empty,
        turns: [client.call('mcpzip', 'search_tools', { query: NEED }), client.call('mcpzip', 'execute_tool', { name: `bench__${TOOL}`, arguments: CALL }), end],
        options: (home) => ({ servers: { mcpzip: { ...proxied(home, upstream), ...client.own } }, isSearching: true }),
      },
      {
        // The client defers the tools and searches them, as it does those of a plain entry.
        setup: 'mcpzip, direct',
        base: empty,
        turns: [client.search(NEED), client.call('mcpzip', `bench__${TOOL}`, CALL), end],
        options: (home) => ({ servers: { mcpzip: proxied(home, upstream, '--direct') }, isSearching: true }),
      },
    ];
    for (const { setup, base, turns, options } of setups) {
      const requests = await play(client, turns, options);
      const last = JSON.stringify(requests.at(-1));
      // The scripted server answers a call with this text.
      if (!last.includes('quick brown fox')) fail(`${client.name}, ${size} tools, ${setup}: the call was not answered: ${last.slice(-1500)}`);
      const [tokensOfBase, bytesOfBase] = [tokens(base), JSON.stringify(base).length];
      const row = {
        client: client.name, tools: size, setup, requests: requests.length,
        firstTokens: tokens(requests[0]) - tokensOfBase,
        isFound: setup === 'all definitions' || JSON.stringify(requests[1]).includes(TOOL),
        allTokens: requests.reduce((sum, request) => sum + tokens(request) - tokensOfBase, 0),
        allBytes: requests.reduce((sum, request) => sum + JSON.stringify(request).length - bytesOfBase, 0),
      };
      rows.push(row);
      console.log(JSON.stringify(row));
    }
  }
}
writeJson('src/data/native-search.json', { packages: PACKAGES, date: new Date().toISOString().slice(0, 10), rows });
