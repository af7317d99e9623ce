// The page of the benchmark, from what the harness wrote: docs/performance.md for people, docs/performance.json for programs.
import { withPages } from './documents.mjs';
import { fail, need, page, write, writeJson } from './lib.mjs';

const MAKER = 'The benchmark harness writes it; docs/performance.md names the command.';

export function performance() {
  const text = need('docs/performance.md', MAKER);
  const measured = text.match(/<!-- measured:[^>]*-->([\s\S]*?)<!-- end of measured -->/)?.[1] ?? fail('docs/performance.md has no place for what was measured');
  let body = text;
  if (measured.trim()) {
    const figures = JSON.parse(need('docs/performance.json', MAKER));
    if (Object.keys(figures).length === 0) fail('docs/performance.json has no figures');
    writeJson('src/generated/performance.json', figures);
  } else {
    console.error(`website: docs/performance.md has no figures yet, and its page says so. ${MAKER}`);
    body = text.replace('<!-- end of measured -->', ':::caution\nNo figures were recorded for this version yet; the command above makes them.\n:::\n');
  }
  write('src/content/docs/project/performance.md', page('Performance', 'Measured next to a direct connection and a plain relay, in the same run', withPages(body.replace(/^#\s.*\n/, ''))));
}
