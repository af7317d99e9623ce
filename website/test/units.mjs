// The parts of the site that think: the builder's form and check, and the reading of help texts and sources.
import assert from 'node:assert/strict';
import test from 'node:test';
import { scrollingTables, withBase } from '../scripts/base.mjs';
import { entries, sections } from '../scripts/commands.mjs';
import { validator } from '../scripts/configuration.mjs';
import { withDrawings, withPages } from '../scripts/documents.mjs';
import { tables } from '../scripts/lib.mjs';
import { ofEnums } from '../scripts/troubleshooting.mjs';
import { fromForm, parse, problems } from '../src/lib/configuration.js';

const { validate } = validator();
const wrong = (value) => problems(validate, value);

test('a form becomes the configuration that it says, without what is empty', () => {
  const made = fromForm([
    { kind: 'command', name: 'files', command: 'npx', args: '-y\n\n server ', env: 'A=b=c', deny: '', trust: '', disabled: false },
    { kind: 'url', name: 'web', url: 'https://example.com/mcp', headers: 'X-Key: ${KEY}', deny: 'delete_*', trust: 'pin', disabled: true },
  ], { call_timeout: '', budget: '0', management: 'off', ask: '', deny: '@destructive' });
  assert.deepEqual(made, {
    mcpServers: {
      files: { command: 'npx', args: ['-y', 'server'], env: { A: 'b=c' } },
      web: { url: 'https://example.com/mcp', headers: { 'X-Key': '${KEY}' }, tools: { deny: ['delete_*'] }, trust: 'pin', disabled: true },
    },
    results: { budget: 0 },
    management: 'off',
    tools: { deny: ['@destructive'] },
  });
  assert.deepEqual(wrong(made), []);
});

test('comments and trailing commas are read, and what looks like them in a text is left alone', () => {
  const { value } = parse('{ // a\n "mcpServers": { /* b */ "x": {"url": "http://a/,}//b",}, }, }');
  assert.equal(value.mcpServers.x.url, 'http://a/,}//b');
  assert.deepEqual(parse('{"a": 1, // ${B}\n "c": 2 // }\n}').value, { a: 1, c: 2 });
  assert.match(parse('{"a": }').error, /^No JSON/);
});

test('what the program would not take is found', () => {
  assert.deepEqual(wrong({ mcpServers: { x: { command: 'a' } } }), []);
  assert.notDeepEqual(wrong({ mcpServers: { x: { command: ['a'] } } }), []);
  assert.notDeepEqual(wrong({ mcpServers: { a__b: { command: 'a' } } }), []);
  assert.notDeepEqual(wrong({ mcpServers: { x: {} } }), []);
  assert.notDeepEqual(wrong({ mcpServers: { x: { command: 'a', url: 'https://b' } } }), []);
  assert.notDeepEqual(wrong({ mcpServers: [] }), []);
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
