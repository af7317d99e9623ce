// Troubleshooting: what `mcpzip doctor` finds (docs/doctor.md), and every error text that an agent can see, read from the
// source, so that a text that is new there is an entry here. The remedies are in src/data/advice.json.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { withPages } from './documents.mjs';
import { fail, need, page, repository, website, write } from './lib.mjs';

const SOURCES = [
  ['src/proxy/answers/error.rs', 'A call was refused or failed', 'proxy'],
  ['src/upstream/error.rs', 'A server cannot be reached, or gives no answer', 'upstream'],
  ['src/upstream/transport/http/error.rs', 'A server behind HTTP', 'http'],
  ['src/config/error.rs', 'The configuration', 'config'],
];

const plain = (text) => text.replaceAll('{{', '{').replaceAll('}}', '}').replace(/\\\s*\n\s*/g, '').replaceAll('\\"', '"');
const placeholder = (text) => plain(text.replace(/(?<!\{)\{(\w*)(?::[^}]*)?\}(?!\})/g, (_, name) => (name ? name.toUpperCase() : '…')));

/** The texts of `#[error("…")]`, each with the sentence above it and the enum it is of. */
export function ofEnums(source) {
  const found = [];
  let enumeration = '';
  for (const match of source.matchAll(/pub(?:\(crate\))? enum (\w+)|((?:^[ \t]*\/\/\/[^\n]*\n)*)[ \t]*#\[error\(\s*"((?:[^"\\]|\\[\s\S])*)"[\s\S]*?\)\]\s*\n\s*(\w+)/gm)) {
    if (match[1]) enumeration = match[1];
    else {
      const meaning = match[2].split('\n').map((line) => line.replace(/^\s*\/\/\/ ?/, '').trim()).filter(Boolean).join(' ');
      found.push({ key: `${enumeration}::${match[4]}`, text: placeholder(match[3]), meaning });
    }
  }
  return found;
}

/** The texts of `format!` in functions that word an error, each with the sentence above the function. */
export function ofFunctions(source) {
  const found = [];
  const functions = source.matchAll(/((?:^\/\/\/[^\n]*\n)+)(?:pub\((?:super|in [\w:]+)\) )?fn (\w+)[\s\S]*?\n\}\n/gm);
  for (const [whole, doc, name] of functions) {
    const texts = [...whole.matchAll(/format!\(\s*"((?:[^"\\]|\\[\s\S])*)"/g)].map((match) => placeholder(match[1]));
    // The whole sentence begins with a name; the others are parts of it.
    const sentences = texts.filter((text) => /^[`A-Z]/.test(text));
    const longest = (sentences.length ? sentences : texts).sort((a, b) => b.length - a.length)[0] ?? fail(`src/proxy/answers/error.rs: ${name} has no text`);
    found.push({ key: name, text: longest.replaceAll('\\n', '\n'), meaning: doc.replaceAll('///', '').replace(/\s+/g, ' ').trim() });
  }
  return found;
}

export function readErrors() {
  return SOURCES.map(([file, title, key]) => {
    const source = need(file, 'It words errors.').split('#[cfg(test)]')[0];
    const entries = key === 'proxy' ? ofFunctions(source) : ofEnums(source);
    if (entries.length < 3) fail(`${file}: its error texts are not where they were`);
    return { title, key, entries: entries.filter(({ text }) => text.trim()) };
  });
}

// Plain, as there are many of them on one page.
// Enums of what the agent is answered when a filter, or the reading of a stored result, goes wrong.
const PARTS = ['src/proxy/answers/projection/mod.rs', 'src/results/mod.rs'];

/** Answers of `src/proxy` with `isError` whose text is in the code that makes them. */
export function ofReplies() {
  const texts = new Set();
  const proxy = join(repository, 'src/proxy');
  for (const name of readdirSync(proxy, { recursive: true }).filter((file) => file.endsWith('.rs')).sort()) {
    const source = readFileSync(join(proxy, name), 'utf8').split('#[cfg(test)]')[0];
    for (const [, text] of source.matchAll(/(?:tool_error|Refused)\(\s*&?(?:format!\(\s*)?"((?:[^"\\]|\\[\s\S])*)"/g)) texts.add(placeholder(text).replaceAll('\\n', '\n'));
  }
  const failures = need('src/proxy/answers/error.rs', 'It words errors.').split('impl Failure {')[1]?.split(/\n\}\n/)[0] ?? fail('src/proxy/answers/error.rs: the texts of `Failure` are not where they were');
  for (const [, text] of failures.matchAll(/format!\(\s*"((?:[^"\\]|\\[\s\S])*)"/g)) texts.add(placeholder(text).replaceAll('\\n', '\n'));
  for (const file of PARTS) ofEnums(need(file, 'It words errors.')).forEach(({ text }) => texts.add(text));
  const worth = [...texts].filter((text) => /[a-z]{3,}/.test(text.replace(/\b[A-Z]+\b/g, '')));
  if (worth.length < 15) fail('src/proxy: its answers are not where they were');
  return worth.sort((a, b) => a.localeCompare(b));
}

const fence = (text) => `<pre class="plain"><code>${text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</code></pre>`;
const escaped = (text) => text.replaceAll('<', '&lt;').replace(/\[`([^`]+)`\]/g, '`$1`');

export function troubleshooting() {
  const advice = JSON.parse(readFileSync(join(website, 'src/data/advice.json'), 'utf8'));
  const groups = readErrors();
  const keys = new Set(groups.flatMap(({ entries }) => entries.map(({ key }) => key)));
  const unused = Object.keys(advice).filter((key) => !keys.has(key));
  if (unused.length) fail(`src/data/advice.json has advice for errors that are gone: ${unused.join(', ')}`);
  const findings = withPages(need('docs/doctor.md', 'It has an entry for each finding of `mcpzip doctor`.').replace(/^#\s.*\n/, '')).replace(/^(#+) /gm, '#$1 ');
  const start = readFileSync(join(website, 'src/data/troubleshooting.md'), 'utf8');
  const errors = groups.map(({ title, entries }) => [
    `### ${title}`,
    ...entries.map(({ key, text, meaning }) => [`#### ${escaped(headline(text))}`, fence(text), escaped(meaning), advice[key] ? `**What to do:** ${advice[key]}` : ''].filter(Boolean).join('\n\n')),
  ].join('\n\n')).join('\n\n');
  write('src/content/docs/guides/troubleshooting.md', page('Troubleshooting', 'Each finding of mcpzip doctor, and each error text that an agent can see', [
    start, '## Findings of mcpzip doctor', findings, '## Error texts',
    'Words in capitals stand for a name or a value. The texts are read from the source when this page is made.', errors,
    '### Answers of mcpzip itself',
    'The agent reads these answers and can correct its request. Nothing was called, unless the text says so.',
    ofReplies().map(fence).join('\n\n'),
  ].join('\n\n')));
}

/** The beginning of a text, as a heading. */
function headline(text) {
  const words = text.split('\n')[0].replaceAll('`', '').replaceAll('{', '').replaceAll('}', '').replaceAll('$', '').split(/[:;(]/)[0].trim().split(/\s+/);
  const short = words.slice(0, 9).join(' ');
  return words.length > 9 ? `${short} …` : short;
}
