// Every page in a real browser, in both themes and at two widths: no error, nothing from elsewhere, light, readable, and
// usable without a mouse; and the interactive parts do what they say. SCREENSHOTS=DIRECTORY keeps pictures.
import { createRequire } from 'node:module';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { website } from '../scripts/lib.mjs';
import { parts } from './parts.mjs';
import { Findings, browser, pages, serve } from './support.mjs';

const MOST = 300_000;
const VIEWS = [
  { name: 'wide-dark', width: 1280, height: 900, theme: 'dark', rules: { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'] } },
  // What another width and theme can change.
  { name: 'phone-light', width: 390, height: 844, theme: 'light', rules: { runOnly: { type: 'rule', values: ['color-contrast', 'scrollable-region-focusable', 'landmark-unique', 'meta-viewport'] } } },
];
// Pictures are taken of all four.
const ALL_VIEWS = [...VIEWS, { ...VIEWS[0], name: 'wide-light', theme: 'light' }, { ...VIEWS[1], name: 'phone-dark', theme: 'dark' }];

// The search button of Starlight is called "Search" and shows its shortcut beside that.
const RULES = { 'label-content-name-mismatch': { enabled: false } };

const findings = new Findings();
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const site = await serve();
const chromium = await browser();
const pictures = process.env.SCREENSHOTS;
if (pictures) mkdirSync(pictures, { recursive: true });
// A few pages alone: `node test/pages.mjs /guides/search/ …`.
const named = process.argv.slice(2);
const paths = Object.keys(pages()).sort().filter((path) => !named.length || named.includes(path));
let heaviest = [0, ''];

/** A tab of its own, with nothing remembered, that reaches this site alone. */
async function open(view) {
  const context = await chromium.newContext({ colorScheme: view.theme, viewport: { width: view.width, height: view.height } });
  await context.route((url) => url.protocol.startsWith('http') && url.origin !== site.origin, (route) => {
    findings.add('network', `something asks for ${route.request().url()}`);
    return route.abort();
  });
  return context.newPage();
}

await Promise.all((pictures ? ALL_VIEWS : VIEWS).map(async (view) => {
  for (const path of paths) {
    // A new one for each page, so that its weight is that of a first visit.
    const tab = await open(view);
    await look(tab, path, view);
    await tab.context().close();
  }
}));
if (!named.length) await parts(await open(VIEWS[0]), site.origin, findings);
await chromium.close();
site.close();
findings.end(`${paths.length} pages looked at in ${VIEWS.map(({ name }) => name).join(' and ')}; the heaviest is ${heaviest[1]} with ${Math.round(heaviest[0] / 1000)} kB`);

async function look(tab, path, view) {
  const where = `${path} (${view.name})`;
  let weight = 0;
  tab.on('console', (message) => message.type() === 'error' && findings.add(where, `console: ${message.text()}`));
  tab.on('pageerror', (error) => findings.add(where, `error: ${error.message}`));
  tab.on('response', async (response) => {
    if (response.status() >= 400) findings.add(where, `${response.status()} for ${response.url()}`);
    if (response.request().resourceType() !== 'image') weight += (await response.body().catch(() => Buffer.alloc(0))).length;
  });
  await tab.goto(site.origin + path, { waitUntil: 'load' });
  const size = await tab.evaluate(() => ({ page: document.documentElement.scrollWidth, window: window.innerWidth, theme: document.documentElement.dataset.theme, title: document.title }));
  if (size.page > size.window) findings.add(where, `${size.page} pixels wide, the window has ${size.window}`);
  if (size.theme !== view.theme) findings.add(where, `the theme is ${size.theme}`);
  if (!size.title) findings.add(where, 'no title');
  await tab.evaluate(axe);
  const { violations } = await tab.evaluate((options) => window.axe.run(document, options), { resultTypes: ['violations'], rules: RULES, ...view.rules });
  for (const { id, help, nodes } of violations) findings.add(where, `axe ${id}: ${help}: ${nodes.slice(0, 2).map(({ html, failureSummary }) => `${html.slice(0, 200)} ${failureSummary?.split('\n')[1] ?? ''}`).join(' | ')} (${nodes.length})`);
  if (pictures) await tab.screenshot({ path: join(pictures, `${(path.replace(/\/$/, '').slice(1) || 'index').replaceAll('/', '-')}-${view.name}.png`) });
  if (weight > MOST) findings.add(where, `${weight} bytes, the limit is ${MOST}`);
  if (weight > heaviest[0]) heaviest = [weight, path];
}
