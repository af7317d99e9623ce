// The command reference, from the program's own help. Where no program was built, the recorded help is taken; a test
// compares the two, so that the recorded one cannot grow old unseen.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { cell, fail, page, program, run, website, write } from './lib.mjs';

export const RECORDED = join(website, 'src/data/commands.json');

/** `[{name: "auth status", help: "…"}]`, the program itself first, each command before what is below it. */
export function readCommands(binary) {
  const found = [];
  const visit = (path) => {
    const help = run(binary, [...path, '--help'], { env: { ...process.env, COLUMNS: '100', NO_COLOR: '1', TERM: 'dumb' } });
    found.push({ name: path.join(' '), help: help.trimEnd() });
    // The program's own help has its commands in groups, those of a command stand under `Commands:`.
    const lists = path.length ? sections(help).parts.filter(({ title }) => title === 'Commands') : groups(help);
    for (const { text } of lists) {
      for (const [, child] of text.matchAll(/^ {2}([a-z][\w-]*)(?=\s|$)/gm)) {
        if (child !== 'help') visit([...path, child]);
      }
    }
  };
  visit([]);
  return found;
}

export function recordedCommands() {
  if (!existsSync(RECORDED)) fail('src/data/commands.json is missing. `npm run record` writes it.');
  return JSON.parse(readFileSync(RECORDED, 'utf8'));
}

/** The parts of a help text: what it is about, and its sections by title, in order. */
export function sections(help) {
  const [, about, rest] = help.match(/^([\s\S]*?)\n\n(Usage:[\s\S]*)$/) ?? fail(`this is no help text: ${help.slice(0, 60)}`);
  const parts = [];
  for (const line of rest.split('\n')) {
    const title = line.match(/^(Usage|\S[^:]*(?=:$)):\s*(.*)$/);
    if (title) parts.push({ title: title[1], lines: title[2] ? [title[2]] : [] });
    else parts.at(-1).lines.push(line);
  }
  return { about, parts: parts.map(({ title, lines }) => ({ title, text: lines.join('\n').replace(/\s+$/, '').replace(/^\n+/, '') })) };
}

/** The groups of commands in the program's own help: all sections between its usage and its options. */
export function groups(help) {
  return sections(help).parts.filter(({ title }) => title !== 'Usage' && title !== 'Exit codes' && !GLOBAL.test(title));
}

/** Options or arguments of a section: `[term, text]`. */
export function entries(text) {
  const found = [];
  for (const line of text.split('\n')) {
    const start = line.match(/^ {2,6}(-\S.*?|<\S.*?|\[\S.*?|[a-z0-9]\S*)(?: {2,}(\S.*))?$/);
    if (start && line.search(/\S/) <= 6) found.push([start[1], start[2] ? [start[2]] : []]);
    else if (line.trim() && found.length) found.at(-1)[1].push(line.trim());
  }
  return found.map(([term, lines]) => [term, lines.join(' ')]);
}

const GLOBAL = /^Options for all commands/;

export function commands() {
  const binary = program();
  const all = binary ? readCommands(binary) : recordedCommands();
  const table = (rows, head) => `| ${head} | |\n|---|---|\n${rows.map(([term, text]) => `| \`${term.replaceAll('|', '\\|')}\` | ${cell(text)} |`).join('\n')}`;
  const [root, ...rest] = all;
  const top = sections(root.help);
  const global = top.parts.find(({ title }) => GLOBAL.test(title)) ?? fail('the help has no options for all commands');
  const codes = top.parts.find(({ title }) => title === 'Exit codes') ?? fail('the help has no exit codes');
  const body = [
    'This page is made from the output of `mcpzip --help` and `mcpzip COMMAND --help`.',
    `Commands print text on a terminal, and JSON when piped or with \`--json\`. With \`--json\` the last line of stderr is the error, as
\`{"error": {"code": 3, "kind": "configuration", "message": "…", "hints": ["…"]}}\`; the kinds are \`failed\`, \`usage\`, \`configuration\`,
\`unavailable\`, \`tool\` and \`warnings\`. Stdout has only the result.`,
    '## All commands',
    table(rest.map(({ name, help }) => [`mcpzip ${name}`, sections(help).about.split('\n')[0]]), 'Command'),
    '## Options for all commands',
    table(entries(global.text), 'Option'),
    '## Exit codes',
    table(entries(codes.text), 'Code'),
    ...rest.map(({ name, help }) => {
      const { about, parts } = sections(help);
      const usage = parts.find(({ title }) => title === 'Usage').text;
      const own = parts.filter(({ title }) => title !== 'Usage' && title !== 'Exit codes' && !GLOBAL.test(title));
      return [
        `## mcpzip ${name}`,
        cell(about),
        `\`${usage}\``,
        ...own.map(({ title, text }) => {
          if (title === 'Examples') {
            const lines = text.replace(/\n+`mcpzip --help` shows the options.*$/s, '').split('\n').map((line) => line.replace(/^ {2}/, '')).join('\n');
            return `**Examples**\n\n<pre class="plain"><code>${lines.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</code></pre>`;
          }
          const rows = entries(text).filter(([term]) => !term.startsWith('-h,') && term !== 'help');
          return rows.length ? table(rows, title) : '';
        }),
      ].filter(Boolean).join('\n\n');
    }),
  ];
  write('src/content/docs/reference/commands.md', page('Commands', 'Every command of mcpzip and its options', body.join('\n\n')));
}
