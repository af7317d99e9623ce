// The interactive parts, used as a person uses them.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { program, website } from '../scripts/lib.mjs';

const read = (path) => JSON.parse(readFileSync(join(website, path), 'utf8'));

export async function parts(tab, origin, findings) {
  tab.on('pageerror', (error) => findings.add(tab.url(), error.message));
  for (const [name, part] of Object.entries({ calculator, builder, playground, still, search, keyboard })) {
    try {
      await part(tab, origin, (isSo, what) => isSo || findings.add(name, what));
    } catch (error) {
      findings.add(name, error.message);
    }
  }
}

async function calculator(tab, origin, expect) {
  const { answers } = read('src/generated/measured.json');
  await tab.goto(`${origin}/try/token-calculator/`);
  const out = async (name) => (await tab.locator(`[data-out="${name}"]`).textContent()).trim();
  for (const box of await tab.locator('input[name="server"]').all()) await box.uncheck();
  await tab.locator('input[name="server"][value="n8n"]').check();
  await tab.getByLabel('Other tools, how many').fill('10');
  await tab.getByLabel('tokens of each').fill('100');
  await tab.getByLabel('Turns').fill('20');
  const n8n = answers.servers.find(({ name }) => name === 'n8n').tokens;
  expect((await out('turn-without')) === (n8n + 1000).toLocaleString('en'), `a turn without is ${await out('turn-without')}`);
  expect((await out('session-without')) === ((n8n + 1000) * 20).toLocaleString('en'), `a session without is ${await out('session-without')}`);
  expect((await out('turn-with')) === String(answers.own.tokens), `a turn with is ${await out('turn-with')}`);
  await tab.locator('input[name="server"][value="n8n"]').uncheck();
  await tab.getByLabel('Other tools, how many').fill('2');
  expect(/costs .* more/.test(await out('verdict')), `with two tools it should say that it costs more: ${await out('verdict')}`);
  await tab.getByLabel('Other tools, how many').fill('1000');
  expect(/saves/.test(await out('verdict')), `with a thousand tools it should save: ${await out('verdict')}`);
  await tab.getByLabel('Turns').fill('');
  expect(!/NaN|Infinity/.test(await tab.locator('#calculator output').textContent()), 'an empty field gives no number');
}

async function builder(tab, origin, expect) {
  await tab.goto(`${origin}/try/configuration-builder/`);
  const text = tab.locator('#build-json');
  const findings = tab.locator('[data-findings]');
  expect(/^Valid/.test(await findings.textContent()), `what it begins with should be valid: ${await findings.textContent()}`);
  await tab.getByRole('button', { name: 'Add a remote server' }).click();
  const remote = tab.locator('fieldset[data-kind="url"]');
  await remote.getByLabel('Name', { exact: true }).fill('linear');
  await remote.getByLabel('URL').fill('https://mcp.linear.app/mcp');
  await remote.getByLabel('Headers').fill('X-Team: ${TEAM:-none}');
  await tab.getByLabel('Never call (one per line)').fill('@destructive');
  const made = JSON.parse(await text.inputValue());
  expect(made.mcpServers.linear?.headers?.['X-Team'] === '${TEAM:-none}', `made ${JSON.stringify(made)}`);
  expect(/^Valid/.test(await findings.textContent()), `should be valid: ${await findings.textContent()}`);
  const directory = mkdtempSync(join(tmpdir(), 'mcpzip-builder-'));
  try {
    writeFileSync(join(directory, 'config.json'), await text.inputValue());
    execFileSync(program(), ['--config', join(directory, 'config.json'), '--state-dir', directory, '--cache-dir', directory, 'auth', 'status'], { stdio: 'pipe' });
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
  await text.fill('{ "mcpServers": { "x": { "command": 5 } } } // a comment');
  expect((await findings.locator('li.bad').count()) > 0, 'a number as command should be found');
  await text.fill('{ "mcpServers": { "x": { "url": "ftp://example.com" } } }');
  expect(/https:/.test(await findings.textContent()), 'an address that is not of the web should be refused');
  await text.fill('{ "mcpServers": ');
  expect(/not JSON/.test(await findings.textContent()), 'what is no JSON should be told');
  await remote.getByRole('button', { name: 'Remove this server' }).click();
  expect(!(await text.inputValue()).includes('linear'), 'a removed server should be gone');
}

async function playground(tab, origin, expect) {
  const { answers } = read('src/data/playground.json');
  await tab.goto(`${origin}/try/recorded-searches/`);
  for (const summary of await tab.locator('#playground summary').all()) {
    if (!(await summary.evaluate((node) => node.parentElement.open))) await summary.click();
  }
  for (const { query, hits } of answers) {
    await tab.locator(`#playground details [data-query="${query.replaceAll('"', '\\"')}"]`).click();
    const shown = await tab.locator('#play-answer li code').allTextContents();
    expect(shown.length === hits.length && hits.every(({ name }, index) => shown[index].startsWith(name)), `\`${query}\` shows ${shown.join(', ')}`);
  }
  await tab.locator('#play-query').fill('open the pod bay doors');
  expect(/not recorded/.test(await tab.locator('#play-answer').textContent()), 'what was not recorded should be told');
}

/** Waits for the results of a search: each comes on its own, in the place that is kept for it. */
async function results(tab) {
  await tab.locator('.pagefind-ui__result-link').first().waitFor();
  await tab.locator('.pagefind-ui__loading').first().waitFor({ state: 'detached' });
}

async function search(tab, origin, expect) {
  await tab.goto(`${origin}/introduction/`);
  await tab.getByRole('button', { name: /search/i }).first().click();
  await tab.locator('.pagefind-ui__search-input').fill('log in to a remote server');
  await results(tab);
  const found = await tab.locator('.pagefind-ui__result-link').allTextContents();
  expect(found.some((title) => /Login/.test(title)), `the search finds ${found.join(', ')}`);
  // Words that people use, and the page that answers them.
  for (const [query, page] of [['how do I uninstall', 'Install'], ['uninstall', 'Install'], ['deny a tool', 'Rules for tools'], ['block a tool', 'Rules for tools']]) {
    await tab.locator('.pagefind-ui__search-input').fill('');
    await tab.locator('.pagefind-ui__result-link').first().waitFor({ state: 'detached' });
    await tab.locator('.pagefind-ui__search-input').fill(query);
    await results(tab);
    const first = (await tab.locator('.pagefind-ui__result-title .pagefind-ui__result-link').first().textContent()).trim();
    expect(first === page, `\`${query}\` finds ${first} first`);
  }
}

/** A page before any script ran: a reader without scripts gets it, and no script may move its parts. */
async function still(tab, origin, expect) {
  const context = await tab.context().browser().newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(`${origin}/try/token-calculator/`);
  expect(/\d/.test(await page.locator('[data-out="turn-without"]').textContent()), 'the calculator is empty without scripts');
  await page.goto(`${origin}/try/configuration-builder/`);
  expect((await page.locator('#build-json').inputValue()).includes('mcpServers'), 'the builder is empty without scripts');
  await page.goto(`${origin}/try/recorded-searches/`);
  expect((await page.locator('#play-answer li').count()) > 0, 'the recorded searches are empty without scripts');
  await context.close();
  for (const path of ['/try/token-calculator/', '/try/configuration-builder/', '/try/recorded-searches/']) {
    await tab.goto(origin + path);
    const shift = await tab.evaluate(() => new Promise((resolve) => {
      let sum = 0;
      new PerformanceObserver((list) => list.getEntries().forEach(({ value, hadRecentInput }) => { if (!hadRecentInput) sum += value; })).observe({ type: 'layout-shift', buffered: true });
      setTimeout(() => resolve(sum), 1000);
    }));
    expect(shift < 0.02, `${path} shifts by ${shift.toFixed(3)}`);
  }
}

async function keyboard(tab, origin, expect) {
  await tab.goto(`${origin}/start/quick-start/`);
  await tab.keyboard.press('Tab');
  const focused = await tab.evaluate(() => document.activeElement.textContent.trim());
  expect(/skip/i.test(focused), `the first stop of the Tab key is ${focused}`);
  await tab.getByRole('tab', { name: 'Claude Code' }).focus();
  await tab.keyboard.press('ArrowRight');
  expect(await tab.getByRole('tab', { name: 'Cursor' }).getAttribute('aria-selected') === 'true', 'the arrow keys should change tabs');
}
