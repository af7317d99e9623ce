// The samples of the pages and the README work: every command and flag exists, every configuration is one that the program takes,
// and the commands that only look are run.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { readCommands } from '../scripts/commands.mjs';
import { readSchema, validator } from '../scripts/configuration.mjs';
import { fail, program, repository, website } from '../scripts/lib.mjs';
import { SERVERS } from '../scripts/playground.mjs';
import { parse, problems } from '../src/lib/configuration.js';
import { Findings, files } from './support.mjs';

const binary = program() ?? fail('no mcpzip was built: `cargo build`, or set MCPZIP_BIN');
const findings = new Findings();
const help = Object.fromEntries(readCommands(binary).map(({ name, help: text }) => [name, text]));
const { validate } = validator();
const known = readSchema().properties;
const home = mkdtempSync(join(tmpdir(), 'mcpzip-samples-'));
const counts = { commands: 0, configurations: 0, runs: 0 };

const sources = [
  ...files(join(website, 'src/content/docs'), '.md', '.mdx'),
  ...['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'config.example.json', 'docs/releasing.md'].filter((file) => existsSync(join(repository, file))).map((file) => join(repository, file)),
];

try {
  for (const file of sources) {
    const where = relative(repository, file);
    const text = readFileSync(file, 'utf8');
    if (file.endsWith('.json')) configuration(where, text);
    for (const [, indent, language, info, body] of text.matchAll(/^([ \t]*)```(\w*)([^\n]*)\n([\s\S]*?)\n\1```/gm)) {
      // A sample with a title is a client's own file.
      const sample = body.split('\n').map((line) => (line.startsWith(indent) ? line.slice(indent.length) : line)).join('\n');
      if (['sh', 'bash'].includes(language) || (language === '' && /^mcpzip /.test(sample))) commands(where, sample);
      if (['json', 'jsonc'].includes(language) && isConfiguration(sample) && !info.includes('title=')) configuration(where, sample);
    }
    for (const [, inline] of text.matchAll(/(?<!`)`(mcpzip [a-z][^`\n]*)`(?!`)/g)) command(where, inline);
  }
  runs();
} finally {
  // The daemon of the last command still writes while its directory goes.
  rmSync(home, { recursive: true, force: true, maxRetries: 10, retryDelay: 300 });
}
findings.end(`${counts.commands} commands exist, ${counts.configurations} configurations are taken, ${counts.runs} runs worked`);

/** The lines of a shell sample that call the program; a `\` at the end goes on with the next line. */
function commands(where, sample) {
  for (const line of sample.replace(/\\\n/g, ' ').split('\n')) {
    const call = line.match(/(?:^|\|\s*|&&\s*)(?:[A-Z_]+=\S+\s+)*(mcpzip\s.*|mcpzip)$/)?.[1];
    if (call) command(where, call);
  }
}

/** Whether the command and its options are in the help. */
function command(where, line) {
  counts.commands += 1;
  const words = (line.replace(/\s#\s.*$/, '').match(/'[^']*'|"[^"]*"|\S+/g) ?? []).slice(1);
  const known = (at, flag) => new RegExp(`(^|[\\s,])${flag.replace(/[-]/g, '\\-')}([\\s,=\\[]|$)`, 'm').test(`${help[at]}\n${help['']}`);
  let at = '';
  for (let index = 0; index < words.length; index += 1) {
    const word = words[index];
    if (word === '--' || word === '|') return;
    if (word.startsWith('-') && word.length > 1) {
      const flag = word.split('=')[0].replace(/[.,;:]$/, '');
      // The parameters of a tool are flags behind its name.
      const isParameter = at === 'call' && words.slice(0, index).some((before) => before.includes('__'));
      if (!isParameter && !known(at, flag)) findings.add(where, `\`${line}\`: \`mcpzip ${at}\` has no ${flag}`);
      // Its value is not a command.
      if (new RegExp(`${flag} <`).test(`${help[at]}\n${help['']}`) && !word.includes('=')) index += 1;
    } else if (`${at} ${word}`.trim() in help) at = `${at} ${word}`.trim();
    else if (at === '' && word !== 'COMMAND' && word !== '…' && word !== 'help') {
      findings.add(where, `\`${line}\`: there is no command \`${word}\``);
      return;
    }
  }
}

/** Whether a sample of JSON is a configuration, or some members of one. */
function isConfiguration(sample) {
  const { value } = parse(sample);
  const keys = value && typeof value === 'object' && !Array.isArray(value) ? Object.keys(value) : [];
  return sample.includes('"mcpServers"') || (keys.length > 0 && keys.every((key) => key in known));
}

/** Whether the schema and the program take a configuration, without a word against it. */
function configuration(where, text) {
  counts.configurations += 1;
  const { value, error } = parse(text);
  const found = error ? [error] : problems(validate, value);
  found.forEach((line) => findings.add(where, `${line}\n${text}`));
  if (found.length) return;
  // Paths of certificates are examples.
  const file = join(home, 'sample.json');
  writeFileSync(file, text.replace(/"ca_file": "[^"]*",?/, '').replace(/,(\s*})/g, '$1'));
  const { status, stdout, stderr } = spawnSync(binary, ['--config', file, '--json', 'list'], { encoding: 'utf8', env: { PATH: process.env.PATH, HOME: home } });
  if (status !== 0) findings.add(where, `exit code ${status}: ${stderr}\n${text}`);
  const warnings = stdout.trim().startsWith('{') ? (JSON.parse(stdout).warnings ?? []) : [];
  for (const warning of warnings) findings.add(where, `warning: ${JSON.stringify(warning)}\n${text}`);
}

/** Commands as the quick start shows them, over the demo's servers. */
function runs() {
  const directory = join(home, '.config/mcpzip');
  mkdirSync(directory, { recursive: true });
  const mcpServers = Object.fromEntries(SERVERS.map((name) => [name, { command: binary, args: ['__demo-server', name, join(home, 'store')] }]));
  writeFileSync(join(directory, 'config.json'), JSON.stringify({ mcpServers }), { mode: 0o600 });
  const env = { PATH: process.env.PATH, HOME: home };
  const attempt = (args, expected, { tries = 1, ...options } = {}) => {
    counts.runs += 1;
    try {
      const output = execFileSync(binary, args, { encoding: 'utf8', env, stdio: ['pipe', 'pipe', 'pipe'], ...options });
      if (expected.test(output)) return;
      if (tries > 1) attempt(args, expected, { ...options, tries: tries - 1 });
      else findings.add(`mcpzip ${args.join(' ')}`, `should print ${expected}, printed ${output.slice(-500)}`);
    } catch (error) {
      findings.add(`mcpzip ${args.join(' ')}`, `${error.message} ${error.stdout ?? ''}`);
    }
  };
  attempt(['servers'], /"calendar"/);
  // The meaning of the tools is computed in the background, which takes some searches on a busy machine.
  attempt(['search', 'when am I free tomorrow'], /find_free_slots/, { tries: 30 });
  attempt(['search', '--limit', '3', '--server', 'units', 'convert'], /units__convert_units/);
  attempt(['describe', 'units__convert_units'], /inputSchema|parameters|quantity/);
  attempt(['call', 'units__convert_units', '{"value": 26.2, "from": "mi", "to": "km"}'], /42\.1648/);
  attempt(['tools', 'notes'], /notes__create_note/);
  attempt(['stats', '--since', '7d'], /./);
  attempt(['gain', '--since', '7d'], /./);
  attempt(['auth', 'status'], /./);
  attempt(['undo', '--list'], /./);
  attempt(['connect', 'cursor', '--dry-run'], /cursor/);
  attempt(['migrate', '--dry-run'], /./);
  // Warnings, such as a short PATH, are no errors.
  const { status, stdout } = spawnSync(binary, ['doctor'], { encoding: 'utf8', env });
  if (![0, 6].includes(status)) findings.add('mcpzip doctor', `exit code ${status}: ${stdout}`);
  attempt(['status'], /calendar/);
  attempt(['list'], /calendar/);
  attempt(['init', '--yes', '--dry-run', '--no-test', '--server', 'time'], /mcp-server-time/);
  attempt(['config', 'schema'], /mcpServers/);
  attempt(['demo'], /find_free_slots/, { timeout: 120_000 });
  // The session of the quick start: what its shell line sends. On a machine that is very busy the first search may only say
  // that it is to be made again.
  const quickStart = readFileSync(join(website, 'src/content/docs/start/quick-start.mdx'), 'utf8');
  const lines = [...quickStart.matchAll(/^\s*'(\{"jsonrpc".*\})' \\$/gm)].map((match) => match[1]);
  if (lines.length !== 3) findings.add('quick start', `${lines.length} messages in its session, there should be 3`);
  attempt(['serve'], /"id":2[\s\S]*calendar__convert_time/, { input: `${lines.join('\n')}\n`, timeout: 60_000, tries: 3 });
}
