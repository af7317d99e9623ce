// Every page in a real browser, in both themes and at three widths: no error, nothing from elsewhere, nothing wider than the window, no
// finding of axe; and the first paint is quick. SCREENSHOTS=DIRECTORY keeps pictures.
import { createRequire } from 'node:module';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Home, PATIENCE, browser, overlay, wait } from './support.mjs';

/** The first paint, in milliseconds; and how often as long as a page of one word it may take where a slow machine misses that. */
const QUICK = 200;
const TIMES = 5;

/** Pages, and an element that appears when they are ready. */
export const PAGES = {
  overview: ['#/overview', 'text=Servers that failed'],
  servers: ['#/servers', '[role=option]'],
  server: ['#/servers/units', 'text=Connections'],
  failed: ['#/servers/broken', 'p.box'],
  tools: ['#/servers/calendar?tab=tools', '[role=option]'],
  log: ['#/servers/units?tab=log', '[role=option]'],
  add: ['#/add', 'text=From the registry'],
  search: ['#/search', '[role=option]'],
  hits: ['#/search?q=write+something+down', '.hits li'],
  tool: ['#/tool/calendar__create_event', 'text=Call it'],
  hostile: ['#/tool/evil__evil_2', 'text=Call it'],
  approvals: ['#/approvals', 'text=send_page'],
  audit: ['#/audit', '[role=option]'],
  savings: ['#/savings', '.chart canvas'],
  clients: ['#/clients', '.clients td'],
  configuration: ['#/configuration', '.editor'],
  absent: ['#/nothing', 'text=Not found'],
};
const WIDTHS = [[1280, 860], [820, 1100], [390, 844]];
const ALL = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

const findings = [];
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const pictures = process.env.SCREENSHOTS;
if (pictures) mkdirSync(pictures, { recursive: true });
const named = process.argv.slice(2).filter((name) => name in PAGES);

const home = new Home();
const chromium = await browser();
const paints = [];
const plain = [];
try {
  const session = await home.session('claude-code');
  await session.call('read_page', { path: '/' });
  home.changeTools();
  home.run('daemon', 'restart', 'wiki');
  void session.call('create_note', { title: 'Shopping list', body: '- milk\n- bread', tags: ['home'] });
  const { link, origin } = await home.window();
  const first = await chromium.newContext();
  const tab = await first.newPage();
  await tab.goto(link);
  const base = tab.url();
  const cookies = await first.cookies();
  await first.close();
  for (const theme of ['light', 'dark']) {
    for (const [width, height] of WIDTHS) {
      const context = await chromium.newContext({ colorScheme: theme, viewport: { width, height } });
      await context.addCookies(cookies);
      await overlay(context);
      await walk(await context.newPage(), { theme, width, base, origin, session });
      await context.close();
    }
  }
  // An overlay takes longer than the program.
  if (process.env.FILES !== '1') await paint(cookies, base);
} finally {
  await chromium.close();
  await home.end();
}
if (findings.length) {
  console.error(findings.map((line) => `- ${line}`).join('\n'));
  console.error(`${findings.length} findings`);
  process.exit(1);
}
console.log(`${named.length || Object.keys(PAGES).length} pages without a finding in both themes at ${WIDTHS.map(([width]) => width).join(', ')} pixels; first paint ${paints.length ? `after ${paints.map(Math.round).join(', ')} ms, of a plain page after ${plain.map(Math.round).join(', ')} ms` : 'not measured'}`);
process.exit(0);

async function walk(tab, { theme, width, base, origin, session }) {
  let where = '';
  tab.setDefaultTimeout(PATIENCE);
  tab.on('console', (message) => message.type() === 'error' && findings.push(`${where}: console: ${message.text()}`));
  tab.on('pageerror', (error) => findings.push(`${where}: ${error.message}`));
  tab.on('request', (request) => {
    const url = new URL(request.url());
    if (url.protocol.startsWith('http') && url.origin !== origin) findings.push(`${where}: something asks for ${url}`);
  });
  await tab.goto(base);
  // Not injected as a script element, which the policy refuses.
  await tab.evaluate(axe);
  for (const [name, [address, ready]] of Object.entries(PAGES)) {
    if (named.length && !named.includes(name)) continue;
    where = `${name}, ${theme}, ${width}`;
    await tab.evaluate((hash) => (location.hash = hash), address);
    try {
      await tab.locator(ready).first().waitFor({ state: 'attached' });
    } catch {
      findings.push(`${where}: \`${ready}\` does not appear; the page says ${(await tab.locator('main').innerText()).slice(0, 300)}`);
      continue;
    }
    if (name === 'overview') await session.call('convert_units', { value: 1, from: 'mi', to: 'km' });
    await wait(150);
    const size = await tab.evaluate(() => ({ page: document.documentElement.scrollWidth, main: document.querySelector('main').scrollWidth - document.querySelector('main').clientWidth, headings: document.querySelectorAll('h1').length, title: document.title }));
    if (size.page > width || size.main > 0) findings.push(`${where}: wider than the window by ${Math.max(size.page - width, size.main)} pixels`);
    if (size.headings !== 1) findings.push(`${where}: ${size.headings} first headings`);
    if (!size.title.endsWith('mcpzip')) findings.push(`${where}: the title is ${size.title}`);
    const { violations } = await tab.evaluate((only) => window.axe.run(document, { resultTypes: ['violations'], runOnly: only }), ALL);
    for (const { id, help, nodes } of violations) findings.push(`${where}: axe ${id}: ${help}: ${nodes.slice(0, 2).map(({ html, failureSummary }) => `${html.slice(0, 160)} ${failureSummary?.split('\n')[1] ?? ''}`).join(' | ')} (${nodes.length})`);
    if (pictures) await tab.screenshot({ path: join(pictures, `${name}-${theme}-${width}.png`) });
  }
}

/** The first paint of a browser that has nothing yet: ten times, and up to fifty on a machine that has other things to do. */
async function paint(cookies, base) {
  const took = async (address) => {
    const context = await chromium.newContext();
    await context.addCookies(cookies);
    await overlay(context);
    const tab = await context.newPage();
    await tab.goto(address, { waitUntil: 'load' });
    await tab.getByText('Live').first().waitFor();
    await tab.waitForFunction(() => performance.getEntriesByName('first-contentful-paint').length > 0);
    const time = await tab.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0].startTime);
    await context.close();
    return time;
  };
  // The best of each: a busy machine makes any one slow.
  const limit = () => Math.max(QUICK, TIMES * Math.min(...plain));
  const isLate = () => Math.min(...paints) > limit();
  for (let turn = 0; turn < 10 || (turn < 50 && isLate()); turn += 1) {
    plain.push(await took('data:text/html,<p>Live</p>'));
    paints.push(await took(base));
  }
  if (isLate()) findings.push(`the first paint comes after ${paints.map(Math.round)} ms, and that of a plain page after ${plain.map(Math.round)} ms: the limit is ${limit()}`);
}
