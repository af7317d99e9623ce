// The page of the benchmark, from what the harness wrote: docs/performance.md for people, docs/performance.json for programs.
import { withPages } from './documents.mjs';
import { fail, need, page, write, writeJson } from './lib.mjs';

const MAKER = 'The benchmark harness writes it; docs/performance.md names the command.';

export function performance() {
  const text = need('docs/performance.md', MAKER);
  const figures = JSON.parse(need('docs/performance.json', MAKER));
  if (Object.keys(figures).length === 0) fail('docs/performance.json has no figures');
  writeJson('src/generated/performance.json', figures);
  write('src/content/docs/project/performance.md', page('Performance', 'Measured beside a direct connection and a plain relay, in the same run', withPages(text.replace(/^#\s.*\n/, ''))));
}
