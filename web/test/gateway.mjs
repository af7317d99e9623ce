// The window of a gateway in a real browser: two people with two roles, each by a token in the form.
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Home, PATIENCE, browser, wait } from './support.mjs';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const home = new Home();
const demo = (name) => ({ command: home.binary, args: ['__demo-server', name, join(home.path, 'store')] });
const file = home.write('gateway.json', JSON.stringify({
  mcpServers: { units: demo('units'), notes: { ...demo('notes'), env: { NOTES_KEY: 's3cret-of-the-notes' } } },
  tools: { ask: ['units__convert_units'] },
  approvals: { wait: '60s' },
  profiles: { counting: { servers: ['units'] } },
  roles: { dev: { profiles: ['counting'] }, admin: { profiles: ['*'], manage: true } },
  http: { auth: 'tokens', ui: true },
  search: { semantic: false },
  audit: {},
}));
const cli = (...args) => spawnSync(home.binary, [...args, '--config', file], { env: home.env, cwd: home.path, encoding: 'utf8' }).stdout.trim();
const expect = (isSo, fault) => {
  if (!isSo) throw new Error(fault);
};
const until = async (what, holds) => {
  for (const end = Date.now() + PATIENCE; Date.now() < end; await wait(50)) if (await holds()) return;
  throw new Error(`this did not come: ${what}`);
};

const tokens = { anna: cli('token', 'create', 'anna', '--role', 'dev'), zoe: cli('token', 'create', 'zoe', '--role', 'admin', '--manage') };
const gateway = home.start(home.binary, ['serve', '--http', '127.0.0.1:0', '--config', file]);
let said = '';
gateway.stderr.on('data', (data) => (said += data));
let address;
await until('the URL of the window', () => (address = said.match(/the window is at (http:\/\/\S+\/ui\/)/)?.[1]));
const chromium = await browser();

/** A browser of a person, who has shown their token. */
async function enter(name) {
  const context = await chromium.newContext({ viewport: { width: 1280, height: 860 } });
  const tab = await context.newPage();
  tab.setDefaultTimeout(PATIENCE);
  const errors = [];
  tab.on('pageerror', (error) => errors.push(error.message));
  tab.on('console', (message) => message.type() === 'error' && !/Failed to load resource|ERR_/.test(message.text()) && errors.push(message.text()));
  await tab.goto(address);
  await tab.getByLabel('Token').fill(tokens[name]);
  await tab.getByRole('button', { name: 'Go on' }).click();
  await tab.getByText('Live').first().waitFor();
  await tab.locator('.visitor').getByText(name).waitFor();
  expect(!tab.url().includes(tokens[name]), 'the token is in the address');
  return { tab, errors };
}

const open = (tab, hash) => tab.evaluate((to) => (location.hash = to), hash);
const pages = (tab) => tab.locator('nav a').allInnerTexts().then((all) => all.map((text) => text.replace(/\s*\d+$/, '').trim()));
const servers = async (tab) => {
  await open(tab, '#/servers');
  await tab.locator('[role=option]').filter({ hasText: 'units' }).first().waitFor();
  return (await tab.locator('[role=option] strong').allInnerTexts()).sort();
};
async function violations(tab) {
  await tab.evaluate(axe);
  const { violations: found } = await tab.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  return found.map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 200)}`);
}

try {
  const [anna, zoe] = [await enter('anna'), await enter('zoe')];
  const whole = ['Overview', 'Servers', 'Search', 'Approvals', 'Audit', 'Savings'];
  expect(`${await pages(anna.tab)}` === `${whole.filter((page) => page !== 'Approvals')}`, `anna has the pages ${await pages(anna.tab)}`);
  expect(`${await pages(zoe.tab)}` === `${whole}`, `zoe has the pages ${await pages(zoe.tab)}`);
  expect(`${await servers(anna.tab)}` === 'units', `anna sees ${await servers(anna.tab)}`);
  expect(`${await servers(zoe.tab)}` === 'notes,units', `zoe sees ${await servers(zoe.tab)}`);

  // Buttons that a person cannot use are not there.
  for (const { tab } of [anna, zoe]) {
    await open(tab, '#/servers/units');
    await tab.getByRole('heading', { name: /units/ }).waitFor();
  }
  const buttons = (tab) => tab.locator('.title .buttons button').allInnerTexts();
  expect((await buttons(anna.tab)).length === 0, `anna has the buttons ${await buttons(anna.tab)}`);
  await zoe.tab.getByRole('button', { name: 'Disable' }).waitFor();
  expect(!(await buttons(zoe.tab)).some((word) => ['Update', 'Remove'].includes(word)), `zoe has the buttons ${await buttons(zoe.tab)}`);
  for (const hash of ['#/clients', '#/configuration', '#/add']) {
    await open(zoe.tab, hash);
    await zoe.tab.getByText('Not at this gateway').waitFor();
  }
  await open(anna.tab, '#/approvals');
  await anna.tab.getByText('Not at this gateway').waitFor();

  // Anna calls a tool that a rule asks about, and zoe lets it be made.
  await open(anna.tab, '#/tool/units__convert_units');
  await anna.tab.getByRole('checkbox', { name: 'As JSON' }).check();
  await anna.tab.getByRole('textbox', { name: 'Arguments' }).fill('{"value": 1, "from": "mi", "to": "km"}');
  await anna.tab.getByRole('button', { name: 'Call', exact: true }).click();
  await open(zoe.tab, '#/approvals');
  await zoe.tab.getByRole('button', { name: /^Allow convert_units/ }).click();
  await zoe.tab.getByRole('dialog').getByRole('button', { name: 'Allow', exact: true }).click();
  await zoe.tab.getByRole('dialog').getByText('Done.').waitFor();
  await zoe.tab.keyboard.press('Escape');
  await anna.tab.getByText('1.609').first().waitFor();

  // Each sees the lines of their own, zoe all of them, and no one a secret.
  for (const { tab } of [anna, zoe]) {
    await open(tab, '#/audit');
    await tab.locator('[role=option]').filter({ hasText: 'convert_units' }).first().waitFor();
  }
  const lines = (tab, text) => tab.locator('[role=option]').filter({ hasText: text }).count();
  expect((await lines(anna.tab, 'token:zoe')) === 0, 'anna sees a line of zoe');
  expect((await lines(zoe.tab, 'token:zoe')) > 0 && (await lines(zoe.tab, 'token:anna')) > 0, 'zoe does not see all lines');
  await open(anna.tab, '#/savings');
  await anna.tab.getByText('These are your calls').waitFor();
  await open(zoe.tab, '#/servers/notes');
  await zoe.tab.getByRole('button', { name: 'Disable' }).click();
  await zoe.tab.getByRole('dialog').getByRole('button', { name: 'Disable' }).click();
  await zoe.tab.getByRole('dialog').getByText('Done.').waitFor();
  await zoe.tab.keyboard.press('Escape');
  await zoe.tab.getByRole('button', { name: 'Enable' }).waitFor();
  expect(!(await zoe.tab.content()).includes('s3cret-of-the-notes'), 'a secret is shown');
  for (const { tab } of [anna, zoe]) {
    await open(tab, '#/overview');
    await tab.getByRole('heading', { name: 'Overview' }).waitFor();
    const found = await violations(tab);
    expect(!found.length, found.join('\n'));
  }

  // A revoked token ends the visit while the page is open; one who leaves is out.
  cli('token', 'revoke', 'anna');
  await anna.tab.getByText('Your visit has ended').waitFor();
  await zoe.tab.getByRole('button', { name: 'Leave' }).click();
  await zoe.tab.getByText('Your visit has ended').waitFor();
  await zoe.tab.getByRole('link', { name: 'Open the window again' }).click();
  await zoe.tab.getByLabel('Token').waitFor();
  for (const { errors } of [anna, zoe]) expect(!errors.length, errors.join('\n'));
  console.log('two people with two roles each saw and did what is theirs at a gateway');
} finally {
  await chromium.close();
  await home.end();
}
process.exit(0);
