// Takes down what the program says, for pages that show it: its help, the entries that `connect` writes, the answers of the
// search over the demo's servers, and a run for the README. `node scripts/record.mjs --check` compares instead.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { RECORDED, readCommands } from './commands.mjs';
import { fail, program, repository, run, website } from './lib.mjs';
import { problem, terminal as drawn } from './pictures.mjs';
import { QUERIES, SERVERS } from './playground.mjs';

const check = process.argv.includes('--check');
// Embedding and asking take a minute or two; the check leaves that out unless it has `--all`, and recording if it has `--quick`.
const isWhole = check ? process.argv.includes('--all') : !process.argv.includes('--quick');
const binary = program() ?? fail('no mcpzip was built: `cargo build`, or set MCPZIP_BIN');
const home = mkdtempSync(join(tmpdir(), 'mcpzip-record-'));
const environment = { PATH: process.env.PATH, HOME: home, TERM: 'xterm-256color', COLUMNS: '100' };
const stale = [];

try {
  keep(RECORDED, readCommands(binary));
  keep(join(website, 'src/data/clients.json'), clients());
  for (const theme of ['light', 'dark']) keepText(`docs/images/problem-${theme}.svg`, problem(theme));
  if (isWhole) keep(join(website, 'src/data/playground.json'), await playground(), sameHits);
  if (isWhole && !check) keepText('docs/images/terminal.svg', session());
} finally {
  rmSync(home, { recursive: true, force: true });
}
if (stale.length) fail(`not what the program says now: ${stale.join(', ')}. Run \`npm run record -- --quick\` and look at the changes.`);

function keep(file, value, same = (old, now) => JSON.stringify(old) === JSON.stringify(now)) {
  const old = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined;
  if (check) {
    if (!old || !same(old, value)) stale.push(file.slice(website.length + 1));
    return;
  }
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(value, null, 1)}\n`);
  console.log(`wrote ${file.slice(website.length + 1)}`);
}

function keepText(path, text) {
  const file = join(repository, path);
  const old = existsSync(file) ? readFileSync(file, 'utf8') : undefined;
  if (check) {
    if (old !== text) stale.push(path);
    return;
  }
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  console.log(`wrote ${path}`);
}

/** The run for the README: the demo's servers, as a person at a terminal would use them. */
function session() {
  const directory = join(home, '.config/mcpzip');
  mkdirSync(directory, { recursive: true });
  const mcpServers = Object.fromEntries(SERVERS.map((name) => [name, { command: binary, args: ['__demo-server', name, join(home, 'store')] }]));
  writeFileSync(join(directory, 'config.json'), JSON.stringify({ mcpServers }));
  const bin = join(home, 'path');
  mkdirSync(bin);
  symlinkSync(binary, join(bin, 'mcpzip'));
  embedded((...args) => JSON.parse(execFileSync(binary, ['--json', ...args], { env: environment, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })));
  const commands = [
    'mcpzip servers',
    'mcpzip search --limit 2 "when am I free on monday"',
    `mcpzip call find_free_slots '{"from":"2026-11-23T00:00:00Z","to":"2026-11-23T23:59:59Z","minutes":60}'`,
    `mcpzip call convert_units '{"value": "26.2", "from": "mi", "to": "km"}'`,
  ];
  const steps = commands.map((command) => {
    const line = `stty cols 108 rows 60; ${command}`;
    const { stdout, status } = spawnSync('script', ['-qec', line, '/dev/null'], { cwd: home, env: { ...environment, PATH: `${bin}:${environment.PATH}` }, encoding: 'utf8' });
    if (status !== 0) fail(`${command}: ${stdout}`);
    // A line that was erased was there for a moment only: what turns while one waits.
    const output = stdout.replaceAll('\r', '').replaceAll(home, '~').trimEnd().split('\n').map((text) => text.split('\u001b[2K').at(-1));
    return { command, output };
  });
  return drawn(steps, 'A terminal: mcpzip shows its servers, finds a tool by a need, and calls it');
}

/** The entry that `connect CLIENT --dry-run` shows, on Linux and with the program on the PATH. */
function clients() {
  const directory = join(home, 'bin');
  mkdirSync(directory);
  const work = join(home, 'work');
  mkdirSync(work);
  const help = run(binary, ['connect', '--help'], { env: { ...environment, COLUMNS: '1000' } });
  const names = help.match(/<CLIENT>[^[]*\[possible values: ([^\]]+)\]/)?.[1].split(/,\s*/) ?? fail('`connect --help` lists no clients');
  return names.map((name) => {
    // On a terminal it shows the change; piped, it answers with JSON.
    const shown = terminal([binary, 'connect', name, '--dry-run'], work).split('\n');
    const title = shown.find((line) => line.includes('would be connected'))?.replace(/ would be connected.*/, '') ?? fail(`\`connect ${name}\` says nothing of the client`);
    const lines = shown.filter((line) => /^ {2}\+/.test(line)).map((line) => line.slice(3));
    const file = shown.find((line) => line.trim().startsWith(home))?.trim() ?? fail(`\`connect ${name}\` names no file`);
    return { name, title, file: file.replace(home, '~'), entry: lines.join('\n').replaceAll(binary, 'mcpzip') };
  });
}

/** The output of a command on a terminal of 160 columns, without colours. */
function terminal(command, cwd) {
  const line = `stty cols 160 rows 60; ${command.map((word) => `'${word}'`).join(' ')}`;
  const { stdout, status, stderr } = spawnSync('script', ['-qec', line, '/dev/null'], { cwd, env: environment, encoding: 'utf8' });
  if (status !== 0) fail(`${command.join(' ')}: ${stdout}${stderr}`);
  // eslint-disable-next-line no-control-regex
  return stdout.replace(/\u001b\[[0-9;]*m/g, '').replaceAll('\r', '');
}

/** Searches until all tools are found by meaning too. Each search waits for the vectors, and keeps those that it has computed. */
function embedded(ask) {
  for (let attempt = 0; ; attempt += 1) {
    const { hits, by_meaning: byMeaning } = ask('search', '--explain', '--limit', '50', 'read, create, convert or count something');
    if (byMeaning && hits.length > 20 && hits.every(({ meaning }) => meaning !== null)) return;
    if (attempt > 30) fail('the tools have no vectors');
  }
}

/** The answers to all queries over the four demo servers, as `mcpzip search` gives them and `--explain` accounts for them. */
async function playground() {
  const config = join(home, 'config.json');
  const mcpServers = Object.fromEntries(SERVERS.map((name) => [name, { command: binary, args: ['__demo-server', name, join(home, 'store')] }]));
  writeFileSync(config, JSON.stringify({ mcpServers }));
  const places = ['--config', config, '--cache-dir', join(home, 'cache'), '--state-dir', join(home, 'state')];
  const ask = (...args) => JSON.parse(execFileSync(binary, [...places, '--json', ...args], { env: environment, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }));
  // A program that runs embeds the tools; the searches below then use what it has left in the cache.
  const serve = spawn(binary, [...places, 'serve'], { env: environment, stdio: ['pipe', 'ignore', 'inherit'] });
  serve.stdin.write('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"record","version":"1"}}}\n{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
  try {
    embedded(ask);
  } finally {
    serve.stdin.end();
  }
  const tools = ask('tools').map(({ name, text }) => ({ name, text }));
  const round = (value) => (value === null ? null : Math.round(value * 1000) / 1000);
  const builtIn = {};
  const answers = QUERIES.map((query) => {
    const { hits } = ask('search', '--limit', '5', query);
    const explained = ask('search', '--limit', '5', '--explain', query);
    const account = Object.fromEntries(explained.hits.map((hit) => [hit.name, hit]));
    // The built-in server's tools are found too, and are not in the list.
    for (const { name, text } of hits) if (!tools.some((tool) => tool.name === name)) builtIn[name] = { name, text };
    return {
      query, needs: explained.needs, repairs: explained.repairs,
      hits: hits.map(({ name, score }) => ({ name, score: round(score), words: round(account[name]?.words ?? null), meaning: round(account[name]?.meaning ?? null) })),
    };
  });
  return { version: run(binary, ['--version']).trim(), tools, builtIn: Object.values(builtIn), answers };
}

/** Scores may differ in their last digits between processors; the order of the hits may not. */
function sameHits(old, now) {
  const names = ({ answers }) => JSON.stringify(answers.map(({ query, hits }) => [query, hits.map(({ name }) => name)]));
  return names(old) === names(now);
}
