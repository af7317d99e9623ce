// Makes the pages and figures that say what the code does or what was measured, from the code and the measurements.
import { fail, need, number, page, tables, write, writeJson } from './lib.mjs';
import { clients } from './clients.mjs';
import { commands } from './commands.mjs';
import { configuration } from './configuration.mjs';
import { environment } from './environment.mjs';
import { fromRepository } from './documents.mjs';
import { performance } from './performance.mjs';
import { troubleshooting } from './troubleshooting.mjs';

const measured = { answers: answers(), search: search(), definitions: definitions() };
writeJson('src/generated/measured.json', measured);
clients();
commands();
configuration();
environment();
performance();
troubleshooting();
fromRepository();

/** docs/answers.md: what definitions, results, searches and descriptions of ten real servers cost. */
function answers() {
  const text = need('docs/answers.md', 'The example `answer_tokens` writes it.');
  const found = tables(text);
  const rows = (title) => found[title]?.[0] ?? fail(`docs/answers.md has no table under "${title}"`);
  const servers = [];
  let own, all;
  for (const [name, tools, tokens] of rows('Definitions').slice(1)) {
    const row = { name: name.replaceAll('*', ''), tools: number(tools), tokens: number(tokens) };
    if (row.name === 'mcpzip') own = row;
    else if (row.name === 'all') all = row;
    else servers.push(row);
  }
  const calls = rows('Results').slice(1).map(([call, raw, both, shown, select, filter]) => ({
    call: call.replaceAll('*', ''),
    raw: number(raw),
    both: number(both),
    shown: number(shown),
    select: select === '–' ? null : number(select),
    filter: filter.replace(/^`|`$/g, ''),
  }));
  const total = calls.pop();
  const searches = rows('Searches').slice(1).map(([query, tokens]) => ({ query: query.replaceAll('*', ''), tokens: number(tokens) }));
  const meanSearch = searches.pop().tokens;
  const [tools, mean] = rows('Descriptions')[1].map(number);
  const filtered = text.match(/The (\d+) calls with a filter cost (\d+) tokens raw and (\d+) with it/) ?? fail('docs/answers.md says nothing of the calls with a filter');
  if (!own || !all || total.call !== `${calls.length} calls`) fail('docs/answers.md: the sums are not where they were');
  return {
    servers, own, all, calls, total, searches, meanSearch,
    description: { tools, mean },
    filtered: { calls: number(filtered[1]), raw: number(filtered[2]), select: number(filtered[3]) },
  };
}

/** docs/search.md: the quality of the search, by set and by kind of query. */
function search() {
  const found = tables(need('docs/search.md', 'It tells of the search and its figures.'));
  const all = Object.values(found).flat();
  const by = (first) => all.find((table) => table[0][0] === first) ?? fail(`docs/search.md has no table of "${first}"`);
  return { sets: by('set'), kinds: by('dev by kind') };
}

/** src/proxy/definitions.rs: the three definitions, as every client is shown them. */
function definitions() {
  const source = need('src/proxy/definitions.rs', 'The three definitions are in it.');
  const parts = [...source.split('pub const DEFINITIONS')[1].split(');')[0].matchAll(/r#?"(.*?)"#?,?\n/g)].map((match) => match[1]);
  const { tools } = JSON.parse(parts.join(''));
  if (tools.length !== 3) fail('src/proxy/definitions.rs: there should be three definitions');
  const shown = tools.map((tool) => `### ${tool.name}\n\n\`\`\`json\n${JSON.stringify(tool, null, 2)}\n\`\`\``).join('\n\n');
  write('src/generated/definitions.md', `${shown}\n`);
  return { bytes: parts.join('').length };
}
