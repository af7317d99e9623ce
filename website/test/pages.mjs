// Every page in a real browser, in both themes and at two widths: no error, nothing from elsewhere, light, readable, and
// usable without a mouse; and the interactive parts do what they say. SCREENSHOTS=DIRECTORY keeps pictures.
import { createRequire } from 'node:module';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parts } from './parts.mjs';
import { Findings, PATIENCE, browser, pages, serve } from './support.mjs';

const MOST = 400_000;
const VIEWS = [
  { name: 'wide-dark', width: 1280, height: 900, theme: 'dark', rules: { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'] } },
  // Only the rules that depend on width and theme.
  { name: 'phone-light', width: 390, height: 844, theme: 'light', rules: { runOnly: { type: 'rule', values: ['color-contrast', 'scrollable-region-focusable', 'landmark-unique', 'meta-viewport'] } } },
];
// Pictures are taken of all four.
const ALL_VIEWS = [...VIEWS, { ...VIEWS[0], name: 'wide-light', theme: 'light' }, { ...VIEWS[1], name: 'phone-dark', theme: 'dark' }];

// The search button of Starlight is called "Search" and shows its shortcut next to that.
const RULES = { 'label-content-name-mismatch': { enabled: false } };

const findings = new Findings();
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const chromium = await browser();
const pictures = process.env.SCREENSHOTS;
if (pictures) mkdirSync(pictures, { recursive: true });
// A few pages alone: `node test/pages.mjs /guides/search/ …`.
const named = process.argv.slice(2);
const paths = Object.keys(pages()).sort().filter((path) => !named.length || named.includes(path));
let heaviest = [0, ''];

/** A tab with a server and a profile of its own; asking for anything else is a finding. */
async function open(view) {
  const site = await serve();
  const context = await chromium.newContext({ colorScheme: view.theme, viewport: { width: view.width, height: view.height } });
  const tab = await context.newPage();
  tab.setDefaultTimeout(PATIENCE);
  tab.on('request', (request) => {
    const url = new URL(request.url());
    if (url.protocol.startsWith('http') && url.origin !== site.origin) findings.add('network', `something asks for ${url}`);
  });
  return { tab, site, close: () => context.close().then(site.close) };
}

/** All pages one after the other in one tab. */
async function walk(view) {
  const { tab, site, close } = await open(view);
  let where = view.name;
  tab.on('console', (message) => message.type() === 'error' && findings.add(where, `console: ${message.text()}`));
  tab.on('pageerror', (error) => findings.add(where, `error: ${error.message}`));
  for (const path of paths) {
    where = `${path} (${view.name})`;
    await look(tab, site, path, view, where);
  }
  await close();
}

async function use() {
  const { tab, site, close } = await open(VIEWS[0]);
  await parts(tab, site.origin, findings);
  await close();
}

await Promise.all([...(pictures ? ALL_VIEWS : VIEWS).map(walk), ...(named.length ? [] : [use()])]);
await chromium.close();
findings.end(`${paths.length} pages looked at in ${VIEWS.map(({ name }) => name).join(' and ')}; the heaviest is ${heaviest[1]} with ${Math.round(heaviest[0] / 1000)} kB`);

async function look(tab, site, path, view, where) {
  site.sent.length = 0;
  await tab.goto(site.origin + path, { waitUntil: 'load' });
  // The page's search is loaded when the browser has time for it: it is the last thing that comes.
  await tab.waitForFunction(() => document.querySelector('.pagefind-ui__search-input'), undefined, { polling: 50 });
  const weight = site.sent.reduce((sum, { kind, bytes }) => (kind.startsWith('image/') ? sum : sum + bytes), 0);
  for (const { url, status } of site.sent) if (status >= 400) findings.add(where, `${status} for ${url}`);
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
