// The measured figures, read from docs/answers.md and docs/search.md.
import { fail, need, number, tables } from './lib.mjs';

/** docs/answers.md: what definitions, results, searches and descriptions of ten real servers cost. */
export function answers() {
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
  const calls = rows('Results').slice(1).map(([call, raw, both, shown, compact, select, filter]) => ({
    call: call.replaceAll('*', ''),
    raw: number(raw),
    both: number(both),
    shown: number(shown),
    compact: number(compact),
    select: select === '–' ? null : number(select),
    filter: filter.replace(/^`|`$/g, ''),
  }));
  const total = calls.pop();
  // Results over the budget: they were stored, and the model was shown their heads.
  const cut = calls.filter(({ raw, shown }) => raw !== shown);
  const sum = (key) => cut.reduce((tokens, call) => tokens + call[key], 0);
  const stored = { calls: cut.length, raw: sum('raw'), shown: sum('shown') };
  const searches = rows('Searches').slice(1).map(([query, tokens]) => ({ query: query.replaceAll('*', ''), tokens: number(tokens) }));
  const meanSearch = searches.pop().tokens;
  const [tools, mean] = rows('Descriptions')[1].map(number);
  const filtered = text.match(/The (\d+) calls with a filter cost (\d+) tokens raw and (\d+) with it/) ?? fail('docs/answers.md says nothing of the calls with a filter');
  if (!own || !all || total.call !== `${calls.length} calls`) fail('docs/answers.md: the sums are not where they were');
  return {
    servers, own, all, calls, total, stored, searches, meanSearch,
    description: { tools, mean },
    filtered: { calls: number(filtered[1]), raw: number(filtered[2]), select: number(filtered[3]) },
  };
}

/** docs/search.md: the quality of the search, by set and by kind of query. */
export function search() {
  const found = tables(need('docs/search.md', 'It tells of the search and its figures.'));
  const all = Object.values(found).flat();
  const by = (first) => all.find((table) => table[0][0] === first) ?? fail(`docs/search.md has no table of "${first}"`);
  // The last column compares with an earlier model.
  const writers = by('independent writers').map((row) => row.slice(0, 6));
  return { sets: by('set'), kinds: by('dev by kind'), writers };
}
