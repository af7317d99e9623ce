// Every link of every page leads somewhere: to a page, to an anchor that is there, or to another site by https.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { twin } from '../scripts/base.mjs';
import { ADDRESS, Findings, SOURCE, dist, pages } from './support.mjs';

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
// Each page names its Markdown twin, `llms.txt` lists them, and their links lead somewhere too.
const list = readFileSync(join(dist, 'llms.txt'), 'utf8');
const twins = Object.keys(all).filter((path) => path.endsWith('/'));
for (const path of twins) {
  if (!all[path].includes(`type="text/markdown" href="${twin(path)}"`)) findings.add(path, 'names no Markdown twin');
  if (path !== '/' && !list.includes(`](${twin(path)})`)) findings.add('llms.txt', `does not list ${path}`);
  const text = existsSync(join(dist, twin(path))) ? readFileSync(join(dist, twin(path)), 'utf8') : '';
  if (!text.startsWith('# ') || text.length < 200) findings.add(path, `its twin ${twin(path)} has no content`);
  if (text.includes('&#xA;')) findings.add(path, `its twin ${twin(path)} has encoded line breaks`);
}
// Each page names its own address and links to its source; the home page links to the repository, and the sitemap lists the pages.
const map = readFileSync(join(dist, 'sitemap-0.xml'), 'utf8');
for (const path of twins) {
  if (!all[path].includes(`<link rel="canonical" href="${ADDRESS}${path}"`)) findings.add(path, 'does not name its own address');
  if (!all[path].includes(`content="${ADDRESS}/card.png"`)) findings.add(path, 'has no picture for shared links');
  if (!all[path].includes(`href="${SOURCE}"`)) findings.add(path, 'does not link to the repository');
  if (!map.includes(`<loc>${ADDRESS}${path}</loc>`)) findings.add('sitemap-0.xml', `does not list ${path}`);
}
for (const [path, file] of [['/guides/search/', 'search.mdx'], ['/guides/window/', 'window.md']]) {
  if (!all[path].includes(`href="${SOURCE}/edit/main/website/src/content/docs/guides/${file}"`)) findings.add(path, 'has no link to edit it');
}
findings.end(`${count} links on ${Object.keys(all).length} pages lead somewhere, and ${twins.length} have a Markdown twin`);
