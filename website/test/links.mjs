// Every link of every page leads somewhere: to a page, to an anchor that is there, or to another site by https.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Findings, dist, pages } from './support.mjs';

const findings = new Findings();
const all = pages();
const ids = Object.fromEntries(Object.entries(all).map(([path, html]) => [path, new Set([...html.matchAll(/\sid="([^"]+)"/g)].map((match) => match[1]))]));
let count = 0;
for (const [path, html] of Object.entries(all)) {
  for (const [, raw] of html.matchAll(/<(?:a|link)\s[^>]*?href="([^"]*)"/g)) {
    const target = raw.replaceAll('&amp;', '&').replaceAll('&#38;', '&');
    count += 1;
    if (/^(https:|mailto:|data:)/.test(target)) continue;
    if (/^\w+:/.test(target)) {
      findings.add(path, `${target} is not by https`);
      continue;
    }
    const url = new URL(target, `http://site${path}`);
    const page = decodeURIComponent(url.pathname);
    const anchor = decodeURIComponent(url.hash.slice(1));
    if (page in all) {
      if (anchor && anchor !== '_top' && !ids[page].has(anchor)) findings.add(path, `${target}: no such anchor`);
    } else if (!existsSync(join(dist, page))) findings.add(path, `${target}: no such page`);
    else if (!page.includes('.')) findings.add(path, `${target}: should end with a slash`);
  }
  const headings = [...html.matchAll(/<h1[\s>]/g)].length;
  if (headings !== 1) findings.add(path, `${headings} first headings`);
}
findings.end(`${count} links on ${Object.keys(all).length} pages lead somewhere`);
