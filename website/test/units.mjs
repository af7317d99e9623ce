// The parts of the site that think: the builder's form and check, and the reading of help texts and sources.
import assert from 'node:assert/strict';
import test from 'node:test';
import { scrollingTables, twin, withBase } from '../scripts/base.mjs';
import { entries, sections } from '../scripts/commands.mjs';
import { validator } from '../scripts/configuration.mjs';
import { withDrawings, withPages } from '../scripts/documents.mjs';
import { tables } from '../scripts/lib.mjs';
import { toMarkdown } from '../scripts/markdown.mjs';
import { terminal as drawn, terminalHtml } from '../scripts/pictures.mjs';
import { ofEnums } from '../scripts/troubleshooting.mjs';
import { session } from '../src/lib/calculator.js';
import { fromForm, parse, problems } from '../src/lib/configuration.js';

const { validate } = validator();
const wrong = (value) => problems(validate, value);

test('a form becomes the configuration that it says, without what is empty', () => {
  const made = fromForm([
    { kind: 'command', name: 'files', command: 'npx', args: '-y\n\n server ', env: 'A=b=c', deny: '', trust: '', disabled: false, override: '{"read": {"form": "compact"}}', sandbox: 'network' },
    { kind: 'command', name: 'gh', command: 'gh', cli: true, cli_only: 'pr\nissue list', cli_read: 'pr list' },
    { kind: 'command', name: 'time', command: 'uvx', args: 'mcp-server-time', sandbox: 'strict' },
    { kind: 'url', name: 'web', url: 'https://example.com/mcp', headers: 'X-Key: ${KEY}', deny: 'delete_*', trust: 'pin', share: 'all', disabled: true },
  ], { call_timeout: '', budget: '0', management: 'off', daemon: 'auto', http: ':9090', ask: '', deny: '@destructive', wait: '25s', audit: 'hash', notify: true, show: 'files__read\n\nweb__*', form: 'compact' });
  assert.deepEqual(made, {
    mcpServers: {
      files: { command: 'npx', args: ['-y', 'server'], env: { A: 'b=c' }, sandbox: { network: 'all' }, tools: { override: { read: { form: 'compact' } } } },
      gh: { command: 'gh', cli: true, cli_only: ['pr', 'issue list'], cli_read: ['pr list'] },
      time: { command: 'uvx', args: ['mcp-server-time'], sandbox: 'strict' },
      web: { url: 'https://example.com/mcp', headers: { 'X-Key': '${KEY}' }, tools: { deny: ['delete_*'] }, trust: 'pin', share: 'all', disabled: true },
    },
    results: { budget: 0, form: 'compact' },
    show: ['files__read', 'web__*'],
    management: 'off',
    daemon: 'auto',
    http: { address: ':9090' },
    tools: { deny: ['@destructive'] },
    approvals: { wait: '25s' },
    notify: true,
    audit: { arguments: 'hash' },
  });
  assert.deepEqual(wrong(made), []);
});

test('comments and trailing commas are read, and what looks like them in a text is left alone', () => {
  const { value } = parse('{ // a\n "mcpServers": { /* b */ "x": {"url": "http://a/,}//b",}, }, }');
  assert.equal(value.mcpServers.x.url, 'http://a/,}//b');
  assert.deepEqual(parse('{"a": 1, // ${B}\n "c": 2 // }\n}').value, { a: 1, c: 2 });
  assert.match(parse('{"a": }').error, /^This is not JSON/);
});

test('what the program would not take is found', () => {
  assert.deepEqual(wrong({ mcpServers: { x: { command: 'a' } } }), []);
  assert.notDeepEqual(wrong({ mcpServers: { x: { command: ['a'] } } }), []);
  assert.notDeepEqual(wrong({ mcpServers: { a__b: { command: 'a' } } }), []);
  assert.notDeepEqual(wrong({ mcpServers: { x: {} } }), []);
  assert.notDeepEqual(wrong({ mcpServers: { x: { command: 'a', url: 'https://b' } } }), []);
  assert.notDeepEqual(wrong({ mcpServers: [] }), []);
});

test('faults are told in words, and only web addresses are taken', () => {
  assert.deepEqual(wrong({ servers: {} }), ['The configuration has the key `servers`, which mcpzip does not know: it is called `mcpServers` here']);
  assert.deepEqual(wrong({ mcpServers: { x: { command: 5 } } }), ['`command` of the server `x` must be a string, but is a number']);
  assert.deepEqual(wrong({ mcpServers: { x: { url: 'ftp://a/b' } } }), ['`url` of the server `x` has to begin with https:// or http://']);
  assert.deepEqual(wrong({ mcpServers: { x: { url: '${BASE}/mcp' }, y: { url: 'https://${HOST}/mcp' } } }), []);
  assert.match(wrong({ mcpServers: {}, management: 'all' })[0], /^`management` is `all`, and has to be one of: .*full/);
  const schemaWords = /must (NOT|have|match|be (?!an? ))|additional properties/;
  const faulty = [{ mcpServers: [] }, { mcpServers: { x: { command: 'a', args: 'b' } } }, { mcpServers: { a__b: { command: 'a' } } }, { results: { budget: -1 } }, { mcpServers: { x: 1 } }, []];
  for (const value of faulty) for (const line of wrong(value)) assert.doesNotMatch(line, schemaWords);
});

test('the calculator says what is saved, and what is lost', () => {
  const one = { tokens: 10_000, tools: 80, turns: 10, searches: 1, describes: 1, context: 1000, price: 3, cached: 0, discount: 10, own: 374, search: 145, describe: 293 };
  const { out, bars } = session(one);
  assert.equal(out['session-without'], '100,000');
  assert.equal(out['definitions-with'], (374 * 12).toLocaleString('en'));
  assert.equal(out['session-with'], (374 * 12 + 438 * 5 + 2000).toLocaleString('en'));
  assert.equal(bars.without, 100);
  assert.match(out.verdict, /saves 91,322 tokens/);
  assert.match(session({ ...one, tokens: 100 }).out.verdict, /costs .* more/);
});

test('a page becomes Markdown: samples, tables and drawings in words, without controls', () => {
  const { title, markdown } = toMarkdown(`<head><meta name="description" content="About"></head><body><h1>Page</h1><div class="sl-markdown-content"><p>See <a href="/x/">x</a>.</p>
    <figure><pre data-language="sh"><code><div class="ec-line"><div class="code">mcpzip init</div></div><div class="ec-line"><div class="code">mcpzip undo</div></div></code></pre><button>Copy</button></figure>
    <table><thead><tr><th>a</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table><svg class="wide"><desc>A drawing.</desc></svg><svg class="narrow"><desc>A drawing.</desc></svg></div></body>`);
  assert.equal(title, 'Page');
  assert.equal(markdown, '# Page\n\n> About\n\nSee [x](/x/).\n\n```sh\nmcpzip init\nmcpzip undo\n```\n\n| a |\n| - |\n| 1 |\n\nA drawing.\n');
  assert.deepEqual(['/', '/guides/search/'].map(twin), ['/index.md', '/guides/search.md']);
});

test('the terminal for a page is the recorded one, from a command on', () => {
  const svg = drawn([{ command: 'one', output: ['1'] }, { command: 'two', output: ['\u001b[1mx\u001b[0m <b>'] }], 't');
  const [first, ...others] = [...svg.matchAll(/<text [^>]*>/g)].map(([tag]) => tag.includes('animation'));
  assert.deepEqual([first, others], [false, [false, true, true]]);
  assert.equal(terminalHtml(svg, 1), '<span style="color:#4ade80;font-weight:700">$</span> two\n<span style="font-weight:700">x</span> &lt;b&gt;');
});

test('the terminal breaks its lines between words, and a page joins them again', () => {
  const words = `${'word '.repeat(30)}end`;
  const svg = drawn([{ command: 'one', output: [`\u001b[1m${words}\u001b[0m`, 'x'.repeat(120)] }], 't');
  const lines = [...svg.matchAll(/<text [^>]*>(.*)<\/text>/g)].map(([, text]) => text.replace(/<[^>]*>/g, ''));
  assert.deepEqual(lines.slice(1).map((line) => line.trimEnd().length), [104, 48, 108, 12]);
  assert.equal(terminalHtml(svg).replace(/<[^>]*>/g, ''), `$ one\n${words}\n${'x'.repeat(120)}`);
});

test('a help text falls into its parts', () => {
  const { about, parts } = sections('Do it\n\nUsage: mcpzip do [OPTIONS] <WHAT>\n\nArguments:\n  <WHAT>  What\n          it is\n\nOptions:\n  -n, --number <N>\n          How many\n      --now        At once\n');
  assert.equal(about, 'Do it');
  assert.deepEqual(parts.map(({ title }) => title), ['Usage', 'Arguments', 'Options']);
  assert.deepEqual(entries(parts[1].text), [['<WHAT>', 'What it is']]);
  assert.deepEqual(entries(parts[2].text), [['-n, --number <N>', 'How many'], ['--now', 'At once']]);
});

test('error texts are read with their meaning', () => {
  const found = ofEnums('pub enum E {\n    /// It broke.\n    #[error("`{server}` broke: {0}, {{x}}{}", more(.a))]\n    Broken {\n');
  assert.deepEqual(found, [{ key: 'E::Broken', text: '`SERVER` broke: 0, {x}…', meaning: 'It broke.' }]);
});

test('links to files become links to pages, and tables keep their bars', () => {
  assert.equal(withPages('[a](docs/search.md) [b](https://x/y.md) [c](tests/it)'), '[a](/guides/search/) [b](https://x/y.md) c');
  assert.deepEqual(tables('## T\n\n| a | b |\n|---|---|\n| `x \\| y` | 1 |\n').T[0], [['a', 'b'], ['`x | y`', '1']]);
});

test('only a block without a language becomes a drawing', () => {
  const made = withDrawings('```json\n{}\n```\n\nwords\n\n```\na < b\n```\n\n```sh\nls\n```\n');
  assert.match(made, /^```json\n\{\}\n```\n\nwords\n\n<pre [^>]*><code>a &lt; b<\/code><\/pre>\n\n```sh\nls\n```\n$/);
});

test('a site below a path has all its links there, and wide tables can be scrolled by keyboard', () => {
  const element = (tagName, properties = {}, children = []) => ({ type: 'element', tagName, properties, children });
  const tree = { type: 'root', children: [element('a', { href: '/guides/search/' }), element('a', { href: 'https://x/' }), element('table', {}, [element('tr', {}, [element('th')])])] };
  withBase('/mcpzip')(tree);
  scrollingTables()(tree);
  const [inside, outside, table] = tree.children;
  assert.equal(inside.properties.href, '/mcpzip/guides/search/');
  assert.equal(outside.properties.href, 'https://x/');
  assert.equal(table.properties.tabIndex, 0);
  assert.equal(table.children[0].children[0].children[0].tagName, 'td');
});
