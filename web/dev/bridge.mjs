// Serves the built window and the doors of the daemon's window for development: each door runs the given program, or asks the
// daemon's socket. `node dev/bridge.mjs --bin mcpzip [--port N] [--dist DIR] [--key KEY] [--large] [-- GLOBAL OPTIONS]` prints the link.
// The program serves the window itself, without this file.
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { large } from './large.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const own = process.argv.slice(2);
const cut = own.indexOf('--');
const global = cut < 0 ? [] : own.splice(cut).slice(1);
const option = (name, otherwise) => (own.includes(name) ? own[own.indexOf(name) + 1] : otherwise);
const binary = option('--bin', process.env.MCPZIP_BIN ?? 'mcpzip');
const dist = option('--dist', join(here, '../dist'));
const isLarge = own.includes('--large');

let key = option('--key', randomBytes(16).toString('hex'));
/** The window's own path. */
const home = option('--path', 'window');
const cookie = option('--cookie', randomBytes(16).toString('hex'));
const CSP = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const TYPES = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.json': 'application/json' };

const text = (name, isRequired = false) => ({ name, type: 'string', is_required: isRequired });
const optional = (flag, value) => (value === undefined || value === '' ? [] : [flag, String(value)]);
const dry = (given) => (given.dry_run ? ['--dry-run'] : []);
const named = (name) => ({ ...text(name, true) });
/** Name: [parameters, arguments of the program, whether it changes something, how it runs otherwise]. */
const ACTIONS = {
  status: [[], () => ['status']],
  list: [[], () => ['list']],
  tools: [[text('server'), { name: 'schemas', type: 'boolean' }], (it) => ['tools', ...(it.schemas ? ['--schemas'] : []), ...(it.server ? [it.server] : [])]],
  search: [[named('query'), { name: 'limit', type: 'number' }, text('server')], (it) => ['search', '--explain', ...optional('--limit', it.limit), ...optional('--server', it.server), '--', it.query]],
  describe: [[named('name')], (it) => ['describe', it.name]],
  call: [[named('name'), { name: 'arguments', type: 'json' }], (it) => ['call', it.name, JSON.stringify(it.arguments ?? {})], true],
  logs: [[text('server'), { name: 'lines', type: 'number' }], (it) => ['logs', ...optional('--lines', it.lines), ...(it.server ? [it.server] : [])]],
  enable: [[named('server')], (it) => ['enable', it.server], true],
  disable: [[named('server')], (it) => ['disable', it.server], true],
  remove: [[named('server')], (it) => ['remove', it.server], true],
  add: [[named('name'), { name: 'command', type: 'list' }, text('url'), { name: 'env', type: 'json' }, { name: 'headers', type: 'json' }], (it) => [
    'add', it.name,
    ...Object.entries(it.env ?? {}).flatMap(([name, value]) => ['-e', `${name}=${value}`]),
    ...Object.entries(it.headers ?? {}).flatMap(([name, value]) => ['-H', `${name}: ${value}`]),
    ...(it.url ? [it.url] : ['--', ...(it.command ?? [])]),
  ], true],
  add_from_registry: [[named('name'), text('id')], (it) => ['add', `--from-registry=${it.id ?? ''}`, '--yes', '--', it.name], true],
  registry: [[named('query')], (it) => ['registry', 'search', it.query]],
  login: [[named('server')], (it) => ['login', '--no-browser', it.server], true],
  logout: [[named('server')], (it) => ['logout', it.server], true],
  update: [[text('server')], (it) => ['update', ...(it.server ? [it.server] : ['--all']), '--yes'], true],
  differences: [[text('server')], (it) => ['approve', ...(it.server ? [it.server] : ['--all'])]],
  approve: [[named('server'), named('digest'), { name: 'tools', type: 'list' }], (it) => ['approve', ...(it.tools ? [] : [`--digest=${it.digest}`]), '--', it.server, ...(it.tools ?? [])], true, 'person'],
  reject: [[named('server'), named('digest'), { name: 'tools', type: 'list' }], (it) => ['reject', ...(it.tools ? [] : [`--digest=${it.digest}`]), '--', it.server, ...(it.tools ?? [])], true, 'person'],
  approvals: [[], () => ['approvals', 'list']],
  allow: [[named('id')], (it) => ['approvals', 'allow', it.id], true, 'person'],
  deny: [[named('id')], (it) => ['approvals', 'deny', it.id], true],
  audit: [[...['since', 'kind', 'server', 'tool'].map((name) => text(name)), { name: 'denied', type: 'boolean' }, { name: 'errors', type: 'boolean' }, { name: 'limit', type: 'number' }], (it) => ['audit', ...optional('--since', it.since), ...optional('--server', it.server), ...optional('--tool', it.tool), ...(it.denied ? ['--denied'] : []), ...(it.errors ? ['--errors'] : [])], false, 'lines'],
  gain: [[text('since')], (it) => ['gain', ...optional('--since', it.since)]],
  stats: [[text('since')], (it) => ['stats', ...optional('--since', it.since)]],
  clients: [[], () => ['doctor']],
  connect: [[named('client'), { name: 'dry_run', type: 'boolean' }], (it) => ['connect', it.client, ...dry(it)], true],
  disconnect: [[named('client'), { name: 'dry_run', type: 'boolean' }], (it) => ['disconnect', it.client, ...dry(it)], true],
  migrate: [[named('client'), { name: 'dry_run', type: 'boolean' }], (it) => ['migrate', '--client', it.client, ...(it.dry_run ? ['--dry-run'] : ['--yes'])], true],
  undo: [[{ name: 'dry_run', type: 'boolean' }], (it) => ['undo', ...(it.dry_run ? ['--dry-run'] : ['--yes'])], true],
  undo_list: [[], () => ['undo', '--list']],
  doctor: [[], () => ['doctor']],
  config: [[], () => ['config', 'check']],
  config_check: [[named('text')], () => ['config', 'check', '-']],
  config_write: [[named('text'), named('before')], () => ['config', 'write', '-'], true],
  config_schema: [[], () => ['config', 'schema']],
  version: [[], () => ['--version']],
};

const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`);

function run(args, { stdin, isPerson, note = () => {} } = {}) {
  return new Promise((resolve) => {
    const words = [...global, ...(isPerson ? [] : ['--json']), ...args];
    // A person's decision needs a terminal: this makes one, and says yes.
    const child = isPerson
      ? spawn('script', ['-qec', [binary, ...words].map(quoted).join(' '), '/dev/null'], { stdio: ['pipe', 'pipe', 'pipe'] })
      : spawn(binary, words, { stdio: [stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'] });
    const out = [];
    const err = [];
    child.stdout.on('data', (data) => {
      out.push(data);
      if (isPerson && /\[y\/N\]|\(y\/n\)|\[y\/n\]/i.test(String(data))) child.stdin.write('y\n');
    });
    child.stderr.on('data', (data) => {
      err.push(data);
      for (const line of String(data).trimEnd().split('\n')) note(line);
    });
    if (stdin !== undefined) child.stdin.end(stdin);
    const timer = setTimeout(() => child.kill(), 60_000);
    child.on('error', (error) => resolve({ exit: 127, stdout: '', error: error.message }));
    child.on('close', (code) => {
      clearTimeout(timer);
      resolve({ exit: code ?? 1, stdout: Buffer.concat(out).toString(), error: Buffer.concat(err).toString() });
    });
  });
}

async function command({ action, arguments: given = {}, preview = false }, note = () => {}) {
  const entry = Object.hasOwn(ACTIONS, action) ? ACTIONS[action] : undefined;
  if (!entry) throw new Refusal(400, `there is no action ${JSON.stringify(action)}`);
  const [parameters, argv, , way] = entry;
  for (const name of Object.keys(given)) if (!parameters.some((parameter) => parameter.name === name)) throw new Refusal(400, `${action} has no argument ${name}`);
  for (const { name, is_required: isRequired } of parameters) if (isRequired && given[name] === undefined) throw new Refusal(400, `${action} needs ${name}`);
  const args = argv(given);
  const shown = ['mcpzip', ...args].map(quoted).join(' ');
  if (preview) return { command: shown };
  if (isLarge) {
    const output = large(action, given);
    if (output !== undefined) return { command: shown, exit: 0, output, text: '', error: '' };
  }
  if (action.startsWith('config')) return { command: shown, ...(await configuration(action, given)) };
  const { exit, stdout, error } = await run(args, { isPerson: way === 'person', note });
  let output = null;
  try {
    output = JSON.parse(way === 'lines' ? `[${stdout.trim().split('\n').join(',')}]` : stdout);
  } catch {
    // It is text.
  }
  if (action === 'clients' && output) output = { clients: await clients() };
  return { command: shown, exit, output, text: output === null ? stdout : '', error: error.replace(/\u001b\[[0-9;]*m/g, '') };
}

/** All clients that `connect` knows, with those that were found. */
async function clients() {
  const { stdout } = await run(['connect', '--help']);
  const names = stdout.replace(/\s+/g, ' ').match(/\[possible values: ([^\]]+)\]/)?.[1].split(', ') ?? [];
  const { servers = [] } = JSON.parse((await run(['migrate', '--dry-run'])).stdout || '{}');
  return names.map((client) => {
    const own = servers.filter((one) => one.client === client);
    const entries = own.filter(({ reason }) => reason === 'is mcpzip itself').map(({ server, scope, file }) => ({ scope, file, entry: server, program: 'mcpzip', disabled: false }));
    const others = own.filter(({ reason }) => reason !== 'is mcpzip itself').map(({ server }) => server);
    return { client, title: client, installed: own.length > 0, file: own[0]?.file ?? '', entries, servers: others };
  });
}

async function configuration(action, { text: wanted, before }) {
  const done = (exit, output, error = '') => ({ exit, output, text: '', error });
  if (action === 'config_schema') {
    const { exit, stdout, error } = await run(['config', 'schema']);
    return done(exit, JSON.parse(stdout), error);
  }
  const { stdout } = await run(['config', 'path']);
  const path = JSON.parse(stdout).config;
  const now = existsSync(path) ? readFileSync(path, 'utf8') : '';
  const digest = (content) => createHash('sha256').update(content).digest('hex');
  if (action === 'config') return done(0, { path, text: now, digest: digest(now), ...(await remarks(path, now)) });
  const found = await remarks(path, wanted);
  if (action === 'config_check') return done(found.faults.length ? 3 : 0, found);
  if (before !== digest(now)) return done(1, null, `error: ${path} was changed by another program meanwhile`);
  if (found.faults.length) return done(3, null, `error: ${found.faults[0].message}`);
  writeFileSync(`${path}.new`, wanted, { mode: 0o600 });
  renameSync(`${path}.new`, path);
  return done(0, { path, digest: digest(wanted), ...found });
}

/** The faults and warnings of a text. */
async function remarks(path, content) {
  const trial = join(dirname(path), '.window-check.json');
  writeFileSync(trial, content, { mode: 0o600 });
  const { stdout, error } = await run(['--config', trial, 'list']);
  let message = '';
  try {
    message = JSON.parse(stdout).error?.message ?? '';
  } catch {
    // Then it is on stderr.
  }
  const lines = [message, ...error.split('\n')].filter((line) => line.includes(trial));
  const all = lines.map((line) => {
    const [, row = '1', column = '1', rest = line] = line.match(/\.window-check\.json:(\d+):(\d+): (.*)/) ?? [];
    return { line: Number(row), column: Number(column), message: rest.replace(/"?}}$/, ''), isWarning: / WARN |^warning/.test(line) };
  });
  return { faults: all.filter(({ isWarning }) => !isWarning), warnings: all.filter(({ isWarning }) => isWarning) };
}

class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function socketPath() {
  const { stdout } = await run(['daemon', 'status']);
  const path = JSON.parse(stdout).daemon?.socket;
  if (!path) throw new Refusal(503, 'no daemon runs');
  return path;
}

/** A connection to the daemon: `send` a request, `on` each message. */
async function daemon(on, onEnd) {
  const path = await socketPath();
  const socket = connect(path.startsWith('@') ? `\0${path.slice(1)}` : path);
  const greeting = Buffer.from('"control"');
  const length = Buffer.alloc(4);
  length.writeUInt32LE(greeting.length);
  socket.write(Buffer.concat([length, greeting]));
  let rest = '';
  socket.on('data', (data) => {
    rest += data;
    const lines = rest.split('\n');
    rest = lines.pop();
    for (const line of lines) on(JSON.parse(line));
  });
  socket.on('error', () => {});
  socket.on('close', onEnd);
  return { send: (message) => socket.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`), end: () => socket.destroy() };
}

function control(method, params) {
  if (isLarge) {
    const result = large(method, params);
    if (result !== undefined) return { result };
  }
  return new Promise((resolve, reject) => {
    let connection;
    const timer = setTimeout(() => reject(new Refusal(504, 'the daemon does not answer')), 30_000);
    daemon((message) => {
      if (message.id !== 1) return;
      clearTimeout(timer);
      connection.end();
      resolve(message.error ? { error: message.error } : { result: message.result });
    }, () => reject(new Refusal(503, 'the daemon is gone'))).then((made) => {
      connection = made;
      connection.send({ id: 1, method, params });
    }, reject);
  });
}

async function events(request, response, since) {
  const write = (event, data, id) => response.write(`${event ? `event: ${event}\n` : ''}${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`);
  const connection = await daemon((message) => {
    if (message.id === 1) {
      if (message.result.is_incomplete) write('incomplete', {});
      for (const one of message.result.events) write('', one, one.number);
    } else if (message.method === 'event') write('', message.params, message.params.number);
    else if (message.method === 'lagged') write('lagged', message.params);
  }, () => response.destroy());
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  response.write(': here\n\n');
  connection.send({ id: 1, method: 'events.subscribe', params: since === undefined ? {} : { since } });
  // Calls as of many busy agents, for `--large`.
  let storm = 0;
  const gusts = setInterval(() => {
    if (!isLarge) return;
    for (let at = 0; at < 100; at += 1) {
      const call = (storm += 1);
      const base = { call, server: `server-${String(call % 1000).padStart(4, '0')}`, tool: 'list_issue', session: 's', time: Date.now() };
      write('', { number: 1_000_000 + 2 * call, kind: 'call_began', ...base });
      write('', { number: 1_000_001 + 2 * call, kind: 'call_ended', ...base, outcome: call % 50 ? 'ok' : 'timeout', milliseconds: 12 });
    }
  }, 50);
  const beat = setInterval(() => response.write(': beat\n\n'), 15_000);
  request.on('close', () => {
    clearInterval(beat);
    clearInterval(gusts);
    connection.end();
  });
}

function file(response, path) {
  const name = join(dist, path === '/' ? 'index.html' : path);
  if (!name.startsWith(dist) || !existsSync(name) || !statSync(name).isFile()) throw new Refusal(404, 'there is no such page');
  const headers = { 'content-type': TYPES[extname(name)] ?? 'application/octet-stream', 'content-security-policy': CSP, 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer', 'cache-control': path.startsWith('/assets/') ? 'public, max-age=31536000, immutable' : 'no-store' };
  response.writeHead(200, headers).end(readFileSync(name));
}

const server = createServer((request, response) => {
  answer(request, response).catch((error) => {
    // A daemon that is gone answers nothing: the window is its own.
    if (error.status === 503) return response.destroy();
    if (!response.headersSent) response.writeHead(error.status ?? 500, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: error.message }));
  });
});

async function answer(request, response) {
  const url = new URL(request.url, 'http://window');
  const host = `127.0.0.1:${server.address().port}`;
  if (request.headers.host !== host) throw new Refusal(403, 'another host');
  if (url.pathname === '/enter') {
    if (!key || url.searchParams.get('key') !== key) {
      response.writeHead(403, { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': CSP }).end('<!doctype html><html lang="en"><title>mcpzip</title><h1>This link was used or has expired</h1><p>Run <code>mcpzip ui</code> for a new one.');
      return;
    }
    key = undefined;
    response.writeHead(303, { location: `/${home}/`, 'set-cookie': `mcpzip_ui=${cookie}; HttpOnly; SameSite=Strict; Path=/${home}/` }).end();
    return;
  }
  if (!url.pathname.startsWith(`/${home}/`)) throw new Refusal(404, 'there is nothing here');
  const door = url.pathname.slice(home.length + 1);
  if (!door.startsWith('/api/')) return file(response, door);
  if (!(request.headers.cookie ?? '').includes(`mcpzip_ui=${cookie}`)) throw new Refusal(401, 'This window’s session ended. Run `mcpzip ui`');
  if (request.headers.origin && request.headers.origin !== `http://${host}`) throw new Refusal(403, 'another origin');
  const json = (value) => response.writeHead(200, { 'content-type': 'application/json', 'cache-control': 'no-store' }).end(JSON.stringify(value));
  if (request.method === 'GET' && door === '/api/events') {
    const since = request.headers['last-event-id'] !== undefined ? Number(request.headers['last-event-id']) + 1 : url.searchParams.has('since') ? Number(url.searchParams.get('since')) : undefined;
    return events(request, response, since);
  }
  if (request.method === 'GET' && door === '/api/actions') return json(Object.entries(ACTIONS).map(([action, [parameters, , changes = false]]) => ({ action, parameters, changes })));
  if (request.method !== 'POST') throw new Refusal(405, 'not so');
  if (request.headers['x-mcpzip'] !== '1' || request.headers['content-type'] !== 'application/json') throw new Refusal(403, 'not from the window');
  const parts = [];
  for await (const part of request) parts.push(part);
  const body = JSON.parse(Buffer.concat(parts).toString());
  if (door === '/api/control') return json(await control(body.method, body.params ?? {}));
  if (door === '/api/command' && body.follow) {
    response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    response.end(`${JSON.stringify(await command(body, (note) => response.write(`${JSON.stringify({ note })}\n`)))}\n`);
    return undefined;
  }
  if (door === '/api/command') return json(await command(body));
  throw new Refusal(404, 'there is no such door');
}

server.listen(Number(option('--port', 0)), '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}/enter?key=${key}`));
