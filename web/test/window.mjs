// The actions of a person in the window, in a real browser, against the real program with real servers.
import { createRequire } from 'node:module';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { Home, HOSTILE, PATIENCE, browser, overlay, wait } from './support.mjs';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const named = process.argv.slice(2);
const failures = [];
let passed = 0;
const chromium = await browser();
/** A registry with one server. */
const registry = createServer((request, response) => {
  const server = { name: 'io.github.test/weather', title: 'Weather', version: '1.2.0', description: `Tells the weather. ${HOSTILE[0]}`, remotes: [{ type: 'streamable-http', url: 'http://127.0.0.1:9/mcp' }] };
  const entry = { server, _meta: { 'io.modelcontextprotocol.registry/official': { status: 'active' } } };
  const isOne = /\/versions\//.test(request.url);
  const isFound = new URL(request.url, 'http://registry').searchParams.get('search') !== 'nothing';
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(isOne ? entry : { servers: isFound ? [entry] : [], metadata: { count: 1 } }));
});
await new Promise((resolve) => registry.listen(0, '127.0.0.1', resolve));
let home = new Home();
home.env.MCPZIP_REGISTRY = `http://127.0.0.1:${registry.address().port}/`;
let session = await home.session();
let opened = await enter(home);

/** A window of its own in the browser: a tab, its address, and what went wrong in it. */
async function enter(of, options = [], context) {
  const { link, child, origin } = await of.window(options);
  const own = context ?? (await chromium.newContext({ viewport: { width: 1280, height: 860 }, permissions: [] }));
  await overlay(own);
  const tab = await own.newPage();
  tab.setDefaultTimeout(PATIENCE);
  const errors = [];
  tab.on('pageerror', (error) => errors.push(error.message));
  tab.on('console', (message) => message.type() === 'error' && !/Failed to load resource|ERR_/.test(message.text()) && errors.push(message.text()));
  await tab.goto(link);
  // A redirected page has no overlay.
  if (process.env.FILES === '1') await tab.goto(tab.url());
  await tab.getByText('Live').first().waitFor();
  return { tab, context: own, base: tab.url(), link, child, origin, errors };
}

/** The rows of the list, those with this in them. */
const rows = (tab, text) => tab.locator('[role=option]').filter(text ? { hasText: text } : {});
/** A choice of the page. */
const choice = (tab, name) => tab.getByRole('combobox', { name, exact: true });
const expect = (isSo, fault) => {
  if (!isSo) throw new Error(fault);
};
const read = () => readFileSync(home.config, 'utf8');

async function open(address, tab = opened.tab) {
  await tab.keyboard.press('Escape');
  await tab.evaluate((hash) => (location.hash = hash), address);
}

/** Waits until something holds. */
async function until(what, holds, limit = PATIENCE) {
  for (const end = Date.now() + limit; Date.now() < end; await wait(50)) if (await holds()) return;
  throw new Error(`this did not come: ${what}`);
}

const dialog = (tab = opened.tab) => tab.getByRole('dialog');

/** Runs the action of the open dialog, whose command has this in it, and gives what the dialog then says. */
async function confirm(command, word, tab = opened.tab, outcome = 'Done.') {
  await dialog(tab).locator('.line code').filter({ hasText: command }).waitFor();
  await dialog(tab).getByRole('button', { name: word, exact: true }).click();
  await dialog(tab).getByText(outcome).waitFor();
  const text = await dialog(tab).innerText();
  await dialog(tab).getByRole('button', { name: 'Close' }).click();
  await dialog(tab).waitFor({ state: 'detached' }).catch(() => dialog(tab).waitFor({ state: 'hidden' }));
  return text;
}

async function violations(tab = opened.tab) {
  await tab.evaluate((script) => window.axe ?? (0, eval)(script), axe).catch(() => tab.evaluate(axe));
  const found = await tab.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  return found.violations.map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 200)}`);
}

async function test(name, steps) {
  if (named.length && !named.some((one) => name.includes(one))) return;
  const begun = Date.now();
  try {
    await steps();
    expect(opened.errors.length === 0, `the page says: ${opened.errors.join('; ')}`);
    passed += 1;
    console.log(`ok    ${name} (${Date.now() - begun} ms)`);
  } catch (error) {
    failures.push(name);
    console.log(`FAILS ${name}: ${String(error.message).slice(0, 1200)}`);
    if (process.env.SCREENSHOTS) await opened.tab.screenshot({ path: `${process.env.SCREENSHOTS}/failed-${failures.length}.png` }).catch(() => undefined);
    opened.errors.length = 0;
  }
}

await test('a link works once, and a request without a cookie sees nothing', async () => {
  const other = await chromium.newContext();
  await overlay(other);
  const tab = await other.newPage();
  const again = await tab.goto(opened.link);
  expect(again.status() === 403, `a used link is answered with ${again.status()}`);
  expect(/mcpzip ui/.test(await tab.innerText('body')), 'a used link names the command for a new one');
  const door = new URL('api/control', opened.base).href;
  const headers = { 'Content-Type': 'application/json', 'X-Mcpzip': '1' };
  const body = JSON.stringify({ method: 'daemon.status', params: {} });
  const status = async (extra) => (await opened.context.request.post(door, { headers: { ...headers, ...extra }, data: body })).status();
  expect((await status({})) === 200, 'the window itself may ask');
  expect((await status({ Origin: 'http://evil.example' })) >= 400, 'another origin is refused');
  expect((await status({ 'X-Mcpzip': '' })) >= 400, 'a request without the header is refused');
  expect((await fetch(door, { method: 'POST', headers, body })).status === 401, 'a request without a cookie is refused');
  const page = await opened.context.request.get(opened.base);
  expect(/default-src 'none'/.test(page.headers()['content-security-policy'] ?? ''), 'the page has a policy');
  await other.close();
});

await test('overview: a call is seen at once, and what waits', async () => {
  await open('#/overview');
  await opened.tab.getByText('Servers that failed').waitFor();
  await opened.tab.getByText('`no-such-program`').or(opened.tab.locator('code', { hasText: 'no-such-program' })).first().waitFor();
  await session.call('convert_units', { value: 1, from: 'mi', to: 'km' });
  await opened.tab.getByRole('row', { name: /convert_units ok/ }).first().waitFor();
  void session.call('create_note', { title: 'one' });
  await opened.tab.getByRole('link', { name: /1 call waits/ }).waitFor();
  await until('the title counts', async () => (await opened.tab.title()).startsWith('(1)'));
});

await test('overview: reload and restart of the daemon are commands', async () => {
  await open('#/overview');
  await opened.tab.getByRole('button', { name: 'Reload' }).click();
  await confirm('mcpzip daemon reload', 'Reload');
  await opened.tab.getByText('daemon.reload').first().waitFor();
  await opened.tab.locator('.commands summary', { hasText: /mcpzip/ }).click();
  await opened.tab.locator('.commands li', { hasText: 'mcpzip daemon reload' }).first().waitFor();
  await opened.tab.locator('.commands summary').click();
});

await test('overview: a pause holds calls, is shown on every page, and ends by a button', async () => {
  await open('#/overview');
  await opened.tab.getByRole('button', { name: 'Pause', exact: true }).click();
  await confirm('mcpzip daemon pause', 'Pause');
  await opened.tab.getByText('mcpzip is paused since').waitFor();
  await opened.tab.getByText('mcpzip was paused').first().waitFor();
  expect((await violations()).length === 0, `axe while paused: ${await violations()}`);
  const held = await session.call('convert_units', { value: 1, from: 'mi', to: 'km' });
  expect(held.result.isError && /the user paused mcpzip/.test(held.result.content[0].text), `the call was not held: ${JSON.stringify(held)}`);
  await open('#/audit');
  await opened.tab.getByText('mcpzip is paused since').waitFor();
  await opened.tab.getByRole('button', { name: 'Resume' }).first().click();
  await confirm('mcpzip daemon resume', 'Resume');
  await opened.tab.getByText('mcpzip is paused since').waitFor({ state: 'detached' });
  const made = await session.call('convert_units', { value: 1, from: 'mi', to: 'km' });
  expect(!made.result.isError, `the call was not made: ${JSON.stringify(made)}`);
});

await test('approvals: a call is denied, another allowed', async () => {
  await open('#/approvals');
  void session.call('create_note', { title: 'one' });
  await opened.tab.getByRole('button', { name: /^Deny create_note/ }).click();
  expect((await dialog().innerText()).includes('"title":"one"'), 'the question is shown whole');
  expect((await violations()).length === 0, `axe in the dialog: ${await violations()}`);
  await confirm(/mcpzip approvals deny/, 'Deny');
  await opened.tab.getByText('Calls that wait none').waitFor();
  const made = session.call('create_note', { title: 'two' });
  await opened.tab.getByRole('button', { name: /^Allow create_note/ }).click();
  await confirm(/mcpzip approvals allow/, 'Allow');
  const answer = await made;
  expect(!answer.result?.isError && JSON.stringify(answer).includes('two'), `the call was made: ${JSON.stringify(answer).slice(0, 300)}`);
  await opened.tab.getByText('Calls that wait none').waitFor();
});

await test('approvals: changed tools are shown, one is rejected, the others approved', async () => {
  await session.call('list_pages', { path: '/' });
  home.changeTools();
  await open('#/servers/wiki');
  await opened.tab.getByRole('button', { name: 'Restart' }).click();
  await confirm('mcpzip daemon restart wiki', 'Restart');
  await open('#/approvals');
  await until('the differences are there', async () => {
    await opened.tab.getByRole('button', { name: 'Look again' }).click();
    return opened.tab.getByText('always call send_page').first().isVisible();
  });
  expect((await opened.tab.locator('.diff ins', { hasText: 'Before, always call' }).count()) === 1, 'the change is marked');
  const changed = await opened.tab.getByRole('article', { name: 'read_page' }).innerText();
  expect(changed.includes(String.raw`~/.ssh.\u{e0041}\u{202e}`), `hidden characters are shown: ${changed}`);
  expect(changed.includes('The scanner found hidden characters'), `findings are shown: ${changed}`);
  await opened.tab.getByRole('button', { name: 'Reject send_page of wiki' }).click();
  await confirm(/mcpzip reject .*wiki send_page/, 'Reject');
  await opened.tab.getByRole('button', { name: 'Approve read_page of wiki' }).click();
  await confirm(/mcpzip approve .*wiki read_page/, 'Approve');
  const left = home.run('approve', '--all');
  expect(Array.isArray(left) && left.every(({ tool, rejected }) => tool === 'send_page' && rejected), `what is left: ${JSON.stringify(left).slice(0, 300)}`);
});

await test('approvals: a server that an agent added starts only when a person says so', async () => {
  const { tab } = opened;
  const added = await session.call('mcpzip__servers', { operation: 'add', servers: { sneaky: { command: process.execPath, args: [home.write('other.mjs', readFileSync(home.script, 'utf8')), home.write('other.json', readFileSync(home.hostile, 'utf8')), '--x\u200by', '\u202egnp'] } } });
  expect(!added.result?.isError, JSON.stringify(added));
  await open('#/approvals');
  await tab.getByRole('button', { name: 'Look again' }).click();
  await tab.getByText('An agent has added this server.').waitFor();
  expect((await tab.getByRole('region', { name: 'Difference of added' }).innerText()).includes(String.raw`"--x\u{200b}y","\u{202e}gnp"`), 'its whole command line is shown');
  expect(/no server|not/.test(JSON.stringify(home.run('logs', 'sneaky'))) || !JSON.stringify(home.run('logs', 'sneaky')).includes('scripted server starts'), 'it does not run');
  await tab.getByRole('button', { name: 'Approve all of sneaky' }).click();
  await confirm('mcpzip approve', 'Approve');
  // It runs, and what it shows waits for a decision of its own.
  await tab.getByText('evil_0').first().waitFor();
  await until('its tools wait', () => JSON.stringify(home.run('approve', 'sneaky', '--json')).includes('evil_0'));
  home.run('remove', 'sneaky');
});

await test('servers: filter, detail, tools, log', async () => {
  await open('#/servers');
  const { tab } = opened;
  await rows(tab, /^broken/).waitFor();
  await choice(tab, 'State').selectOption('failed');
  await until('one is left', async () => (await rows(tab).count()) === 1);
  await choice(tab, 'State').selectOption('');
  await tab.getByLabel('Find').fill('cal');
  await rows(tab, /^calendar/).click();
  await tab.getByRole('heading', { name: /calendar/ }).waitFor();
  await tab.getByRole('link', { name: 'Tools' }).click();
  await rows(tab, /calendar__create_event/).waitFor();
  await open('#/servers/wiki?tab=log');
  await rows(tab, /scripted server starts/).first().waitFor();
  await session.call('list_pages', { path: '/a' });
  await rows(tab, /called list_pages/).first().waitFor();
});

await test('servers: disable, enable, stop, add, remove', async () => {
  const { tab } = opened;
  await open('#/servers/text');
  await tab.getByRole('button', { name: 'Disable' }).click();
  await confirm('mcpzip disable', 'Disable');
  await tab.locator('h1', { hasText: 'disabled' }).waitFor();
  expect(/"text"[^}]*"disabled": true/s.test(read()), 'the file says so');
  await tab.getByRole('button', { name: 'Enable' }).click();
  await confirm('mcpzip enable', 'Enable');
  await tab.locator('h1:not(:has-text("disabled"))').waitFor();
  await open('#/servers/units');
  await tab.getByRole('button', { name: 'Stop' }).click();
  await confirm('mcpzip daemon stop units', 'Stop');
  await tab.locator('h1', { hasText: 'idle' }).waitFor();
  await open('#/add');
  await tab.getByLabel('Name', { exact: true }).fill('second');
  await tab.getByLabel('Command and arguments').fill(`node ${home.script} ${home.pinned} "${home.path}/a b"`);
  await tab.getByLabel('Variables').fill('MODE=test');
  await tab.locator('form .line code', { hasText: 'mcpzip add' }).waitFor();
  await tab.getByRole('button', { name: 'Add…' }).click();
  await confirm('mcpzip add', 'Add');
  await tab.getByRole('heading', { name: /^second/ }).waitFor();
  expect(JSON.parse(read().replace(/^\s*\/\/.*$|\/\/ asked.*$/gm, '')).mcpServers.second.args.at(-1) === `${home.path}/a b`, 'quotes keep words together');
  expect(read().includes('// Servers of the demo'), 'comments stay');
  await tab.getByRole('button', { name: 'Remove' }).click();
  await until('a dangerous action is not one key away', async () => (await tab.evaluate(() => document.activeElement?.textContent)) === 'Cancel');
  await confirm('mcpzip remove', 'Remove');
  await tab.getByRole('heading', { name: 'Servers' }).waitFor();
  await until('it is gone', async () => !(await rows(tab, /^second/).count()));
});

await test('servers: found in the registry, and added', async () => {
  const { tab } = opened;
  await open('#/add');
  await tab.getByLabel('Part of the name').fill('nothing');
  await tab.keyboard.press('Enter');
  await tab.getByText('No server has this in its name.').waitFor();
  await tab.getByLabel('Part of the name').fill('weather');
  await tab.keyboard.press('Enter');
  await tab.locator('.cards li', { hasText: HOSTILE[0] }).waitFor();
  expect((await violations()).length === 0, `axe with what was found: ${await violations()}`);
  await tab.getByRole('button', { name: 'Add io.github.test/weather' }).click();
  await confirm(/mcpzip add .*io.github.test\/weather/, 'Add', tab, /Done|It failed with exit code 4/);
  expect(read().includes('http://127.0.0.1:9/mcp'), 'its entry is written');
  await tab.getByRole('heading', { name: /^weather/ }).waitFor();
  home.run('remove', 'weather');
});

await test('servers: a failure has its reason in words', async () => {
  const { tab } = opened;
  await open('#/servers/units');
  await tab.getByRole('button', { name: 'Update' }).click();
  const text = await confirm('mcpzip update', 'Update', tab, /It failed|Done/);
  expect(/registry/i.test(text), `it says why: ${text}`);
});

await test('servers: a login shows its address, and ends when the dialog closes', async () => {
  const { tab } = opened;
  // A server that answers as one that needs a login does.
  const login = createServer((request, response) => {
    const own = `http://127.0.0.1:${login.address().port}`;
    const json = (value, status = 200, headers = {}) => response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value));
    if (request.url.startsWith('/.well-known/oauth-protected-resource')) return json({ resource: `${own}/mcp`, authorization_servers: [own] });
    if (request.url.startsWith('/.well-known/')) return json({ issuer: own, authorization_endpoint: `${own}/authorize`, token_endpoint: `${own}/token`, registration_endpoint: `${own}/register`, response_types_supported: ['code'], code_challenge_methods_supported: ['S256'] });
    if (request.url === '/register') return json({ client_id: 'window-test', redirect_uris: ['http://127.0.0.1/callback'] }, 201);
    return json({ error: 'no' }, 401, { 'www-authenticate': `Bearer resource_metadata="${own}/.well-known/oauth-protected-resource/mcp"` });
  });
  await new Promise((resolve) => login.listen(0, '127.0.0.1', resolve));
  try {
    home.run('add', 'remote', `http://127.0.0.1:${login.address().port}/mcp`, '--no-check');
    await open('#/servers/remote');
    await tab.getByRole('button', { name: 'Log in' }).click();
    await dialog().locator('.line code', { hasText: 'mcpzip login' }).waitFor();
    await dialog().getByRole('button', { name: 'Log in', exact: true }).click();
    await dialog().getByRole('link', { name: /\/authorize\?/ }).waitFor();
    await tab.keyboard.press('Escape');
    home.run('remove', 'remote');
  } finally {
    login.closeAllConnections();
    login.close();
  }
});

await test('search: hits with their reasons, a tool called by a form and as JSON', async () => {
  const { tab } = opened;
  await open('#/search');
  await rows(tab, /calendar__create_event/).waitFor();
  await tab.getByLabel('What do you need done?').fill('convert miles to kilometres');
  await tab.keyboard.press('Enter');
  await tab.locator('.hits li').first().waitFor();
  expect((await tab.locator('.hits li').first().innerText()).includes('units__convert_units'), 'the fitting tool is first');
  await tab.getByText('Why it is first').click();
  await tab.getByText('words in the description').first().waitFor();
  expect((await violations()).length === 0, `axe with the reasons: ${await violations()}`);
  await tab.locator('.hits a').first().click();
  await tab.getByLabel(/^value/).fill('26.2');
  await tab.getByLabel(/^from/).fill('mi');
  await tab.getByLabel(/^to/).fill('km');
  await tab.keyboard.press('Tab');
  await tab.locator('form .line code', { hasText: '26.2' }).waitFor();
  await tab.getByRole('button', { name: 'Call', exact: true }).click();
  await tab.getByRole('heading', { name: /Result ok/ }).waitFor();
  await tab.getByText('42.16').first().waitFor();
  await tab.getByRole('checkbox', { name: 'As JSON' }).check();
  await tab.getByLabel('Arguments').fill('{"value": 1,');
  await tab.getByText('This is not JSON.').waitFor();
  expect(await tab.getByRole('button', { name: 'Call', exact: true }).isDisabled(), 'what is not JSON is not sent');
  await tab.getByLabel('Arguments').fill('{"value": 1, "from": "mi", "to": "furlongs of nowhere"}');
  await tab.getByRole('button', { name: 'Call', exact: true }).click();
  await tab.getByRole('heading', { name: /Result error/ }).waitFor();
});

await test('audit: filtered, followed and exported', async () => {
  const { tab } = opened;
  await session.call('convert_units', { value: 3, from: 'mi', to: 'km' });
  await open('#/audit');
  await rows(tab, 'convert_units').first().waitFor();
  await choice(tab, 'Kind').selectOption('call');
  const before = await tab.getByRole('status').filter({ hasText: 'of' }).innerText();
  await session.call('count_words', { text: 'one two' });
  await until('the new line is there', async () => (await rows(tab).first().innerText()).includes('count_words'));
  expect((await tab.getByRole('status').filter({ hasText: 'of' }).innerText()) !== before, 'the count follows');
  await rows(tab).first().click();
  await dialog().getByText('count_words').waitFor();
  expect((await violations()).length === 0, `axe in the dialog: ${await violations()}`);
  await dialog().getByRole('button', { name: 'Close' }).click();
  const [download] = await Promise.all([tab.waitForEvent('download'), tab.getByRole('button', { name: 'Export CSV' }).click()]);
  const csv = readFileSync(await download.path(), 'utf8');
  expect(csv.startsWith('time,kind,outcome') && csv.includes('count_words'), `the file is ${csv.slice(0, 200)}`);
  const [lines] = await Promise.all([tab.waitForEvent('download'), tab.getByRole('button', { name: 'Export JSON' }).click()]);
  expect(JSON.parse(readFileSync(await lines.path(), 'utf8').split('\n')[0]).kind === 'call', 'each line is JSON');
});

await test('savings: charts and tables', async () => {
  const { tab } = opened;
  await open('#/savings');
  await tab.locator('.chart canvas').waitFor();
  await tab.getByText('The numbers').click();
  expect((await tab.getByRole('region', { name: 'Tokens by day' }).getByRole('row').count()) > 20, 'each day is a row');
  await tab.getByRole('region', { name: 'Calls by tool' }).getByRole('button', { name: 'Tokens saved' }).click();
  await tab.locator('th[aria-sort=descending]', { hasText: 'Tokens saved' }).waitFor();
  await choice(tab, 'Since').selectOption('7d');
  await until('fewer days', async () => (await tab.getByRole('region', { name: 'Tokens by day' }).locator('tr').count()) < 12 && (await tab.locator('.chart canvas').count()) === 1);
  expect((await violations()).length === 0, `axe: ${await violations()}`);
});

await test('clients: connected with a preview, and undone', async () => {
  const { tab } = opened;
  await open('#/clients');
  const file = `${home.path}/.cursor/mcp.json`;
  const before = readFileSync(file, 'utf8');
  await tab.getByRole('button', { name: /^Connect cursor/i }).click();
  await dialog().locator('.diff ins', { hasText: 'mcpzip' }).first().waitFor();
  expect(readFileSync(file, 'utf8') === before, 'the preview changes nothing');
  expect((await violations()).length === 0, `axe in the dialog: ${await violations()}`);
  await confirm(/mcpzip connect .*cursor/, 'Connect');
  expect(readFileSync(file, 'utf8').includes('mcpzip'), 'the entry is there');
  await tab.getByRole('button', { name: /^Disconnect cursor/i }).waitFor();
  await tab.getByRole('button', { name: 'Undo the last change…' }).click();
  await confirm('mcpzip undo', 'Undo');
  expect(readFileSync(file, 'utf8') === before, 'the file is as before');
  await tab.getByRole('button', { name: /^Take over the servers of cursor/i }).click();
  await confirm(/mcpzip migrate .*cursor/, 'Take over');
  expect(read().includes('shared-server'), 'its server is taken over');
  await tab.getByRole('button', { name: 'Undo the last change…' }).click();
  await confirm('mcpzip undo', 'Undo');
});

await test('configuration: the form changes the text, comments stay, faults are where they are', async () => {
  const { tab } = opened;
  await open('#/configuration');
  await tab.locator('.editor .cm-content').waitFor();
  await tab.getByText('No faults.').waitFor();
  await tab.getByLabel('Find a key').fill('call_timeout');
  await tab.getByLabel('call_timeout').fill('90s');
  await tab.keyboard.press('Tab');
  const text = () => tab.locator('.editor .cm-content').evaluate((element) => element.cmTile?.view?.state.doc.toString() ?? element.innerText);
  await until('the text has it', async () => (await text()).includes('"call_timeout": "90s"'));
  await tab.getByText('changed, not saved').waitFor();
  await tab.getByLabel('Find a key').fill('mcpServers');
  await tab.locator('summary', { hasText: 'mcpServers' }).click();
  await tab.locator('summary', { hasText: /^calendar/ }).first().click();
  await tab.getByLabel('description').first().fill('My appointments');
  await tab.keyboard.press('Tab');
  expect((await violations()).length === 0, `axe with open parts: ${await violations()}`);
  await tab.getByRole('button', { name: 'Save…' }).click();
  await dialog().locator('.diff ins', { hasText: 'My appointments' }).waitFor();
  await confirm('mcpzip config write', 'Write');
  expect(/"call_timeout": "90s"/.test(read()) && /"description": "My appointments"/.test(read()), 'both are in the file');
  expect(read().includes('// Servers of the demo') && read().includes('// asked about at each call'), 'comments stay');
  // A fault, typed into the text.
  await tab.locator('.editor .cm-content').click();
  await tab.keyboard.press('Control+End');
  await tab.keyboard.press('Control+Home');
  await tab.keyboard.type('{ "no_such_key": 1 ');
  const fault = tab.locator('.faults li').first();
  await fault.waitFor();
  expect(/Line \d+, column \d+/.test(await fault.innerText()), `it says where: ${await fault.innerText()}`);
  await tab.locator('.editor .cm-lint-marker').first().waitFor();
  await tab.getByRole('button', { name: 'Discard' }).click();
  await tab.getByText('No faults.').waitFor();
  // Another program writes meanwhile.
  await tab.getByLabel('Find a key').fill('call_timeout');
  await tab.getByLabel('call_timeout').fill('80s');
  await tab.keyboard.press('Tab');
  writeFileSync(home.config, read().replace('"90s"', '"70s"'));
  await tab.getByRole('button', { name: 'Save…' }).click();
  const refused = await confirm('mcpzip config write', 'Write', tab, 'It failed');
  expect(/changed/.test(refused), `it says why: ${refused}`);
  expect(read().includes('"70s"'), 'what the other wrote stays');
});

await test('hostile texts stay texts', async () => {
  const { tab } = opened;
  for (const address of ['#/servers/evil', '#/servers/evil?tab=tools', '#/servers/evil?tab=log', ...HOSTILE.map((_, at) => `#/tool/evil__evil_${at}`), '#/approvals', '#/audit', `#/search?q=${encodeURIComponent(HOSTILE[0])}`, `#/servers/${encodeURIComponent(HOSTILE[0])}`, `#/tool/${encodeURIComponent(HOSTILE[1])}`, `#/${encodeURIComponent(HOSTILE[2])}`]) {
    await open(address);
    await wait(400);
  }
  await open('#/tool/evil__evil_2');
  await tab.getByRole('button', { name: 'Call', exact: true }).click();
  await tab.getByRole('heading', { name: /Result/ }).waitFor();
  for (const text of HOSTILE.slice(0, 5)) await tab.locator('pre', { hasText: text }).first().waitFor();
  const found = await tab.evaluate(() => ({ broken: window.broken, markup: document.querySelectorAll('main img, main script, main svg, main iframe, main [onerror], main [onload]').length, links: [...document.querySelectorAll('a')].filter(({ href }) => /^javascript:/i.test(href)).length }));
  expect(found.broken === undefined && found.markup === 0 && found.links === 0, JSON.stringify(found));
});

await test('without a mouse: pages, lists, dialogs', async () => {
  const { tab } = opened;
  await tab.goto(`${opened.base.split('#')[0]}#/servers`);
  await tab.reload();
  await rows(tab, /^broken/).waitFor();
  await tab.keyboard.press('Tab');
  expect((await tab.evaluate(() => document.activeElement?.textContent)) === 'Skip to the page', 'the first stop skips the row of pages');
  await tab.keyboard.press('Enter');
  expect((await tab.evaluate(() => document.activeElement?.id)) === 'main', 'and goes to the page');
  for (let turn = 0; turn < 12 && (await tab.evaluate(() => document.activeElement?.getAttribute('role'))) !== 'listbox'; turn += 1) await tab.keyboard.press('Tab');
  await tab.keyboard.press('ArrowDown');
  await tab.keyboard.press('ArrowDown');
  const active = await tab.evaluate(() => document.getElementById(document.activeElement?.getAttribute('aria-activedescendant') ?? '')?.textContent);
  expect(active?.startsWith('calendar'), `the arrows move: ${active}`);
  await tab.keyboard.press('End');
  await tab.keyboard.press('Enter');
  await tab.getByRole('heading', { name: /^wiki/ }).waitFor();
  await tab.getByRole('button', { name: 'Stop' }).focus();
  await tab.keyboard.press('Enter');
  await dialog().locator('.line code').waitFor();
  await until('the dialog begins with its action', async () => (await tab.evaluate(() => document.activeElement?.textContent)) === 'Stop' && (await dialog().isVisible()));
  await tab.keyboard.press('Escape');
  await until('Escape closes it', async () => !(await dialog().isVisible()));
  expect((await tab.evaluate(() => document.activeElement?.textContent)) === 'Stop', 'and the focus is back');
});

await test('the theme can be switched, and is kept', async () => {
  const { tab } = opened;
  const background = () => tab.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  await choice(tab, 'Theme').selectOption('dark');
  const dark = await background();
  await tab.reload();
  expect((await background()) === dark, 'it is kept');
  await choice(tab, 'Theme').selectOption('light');
  expect((await background()) !== dark, 'it changes');
  await choice(tab, 'Theme').selectOption('system');
});

await test('two windows see the same', async () => {
  const other = await enter(home);
  const { tab } = other;
  try {
    await open('#/approvals', tab);
    await open('#/approvals');
    void session.call('create_note', { title: 'both' });
    const [here, there] = [opened.tab, tab].map((one) => one.locator('.cards li', { hasText: '"title":"both"' }));
    await here.waitFor();
    await there.getByRole('button', { name: /^Allow create_note/ }).click();
    await confirm(/mcpzip approvals allow/, 'Allow', tab);
    await here.waitFor({ state: 'detached' });
    await open('#/servers/notes', tab);
    await tab.getByRole('button', { name: 'Stop' }).click();
    await confirm('mcpzip daemon stop notes', 'Stop', tab);
    await open('#/servers/notes');
    await opened.tab.locator('h1', { hasText: 'idle' }).waitFor();
    expect(other.errors.length === 0, other.errors.join('; '));
  } finally {
    await other.context.close();
  }
});

await test('eight windows of one browser all hear, and no window asks while nothing happens', async () => {
  const tabs = [];
  try {
    for (let count = 0; count < 7; count += 1) {
      const tab = await opened.context.newPage();
      tab.setDefaultTimeout(PATIENCE);
      await tab.goto(`${opened.base.split('#')[0]}#/overview`);
      await tab.getByText('Live').first().waitFor();
      tabs.push(tab);
    }
    await session.call('count_words', { text: 'heard' });
    for (const tab of tabs) await tab.getByRole('row', { name: /count_words ok/ }).first().waitFor();
    await wait(2500);
    const asked = [];
    for (const tab of [opened.tab, ...tabs]) tab.on('request', (request) => asked.push(`${request.method()} ${request.url()} ${request.postData() ?? ''}`));
    await wait(4000);
    expect(asked.length === 0, `without a reason: ${asked.slice(0, 5).join(', ')}`);
    // The one that listens is closed: another one listens.
    await opened.tab.goto('about:blank');
    for (const tab of tabs) {
      await until('it hears again', async () => {
        // Calls that come in between are not kept.
        await session.call('convert_units', { value: 5, from: 'mi', to: 'km' });
        await wait(300);
        return tab.getByRole('row', { name: /convert_units ok/ }).first().isVisible();
      });
    }
  } finally {
    for (const tab of tabs) await tab.close();
    await opened.tab.goto(opened.base);
    await opened.tab.getByText('Live').first().waitFor();
  }
});

await test('the window says that the daemon is gone, and comes back', async () => {
  await open('#/overview');
  const { tab } = opened;
  const { daemon } = home.run('daemon', 'status');
  process.kill(daemon.process, 'SIGKILL');
  await tab.getByText('The daemon does not answer.').or(tab.getByText('session ended')).first().waitFor();
  // The client's session goes on in a new daemon.
  await session.call('convert_units', { value: 1, from: 'mi', to: 'km' });
  await until('there is a new daemon', () => home.run('daemon', 'status').daemon?.process);
  if (home.hasOwn) {
    // The new daemon knows nothing of the old window: it has a link of its own.
    opened.errors.length = 0;
    await opened.context.close();
    opened = await enter(home);
  }
  await opened.tab.getByText('Live').first().waitFor();
  await session.call('count_words', { text: 'after' });
  await opened.tab.getByRole('row', { name: /count_words ok/ }).first().waitFor();
  opened.errors.length = 0;
});

await test('a window whose session ended says what to run', async () => {
  const { tab } = opened;
  await opened.context.clearCookies();
  await tab.reload();
  await tab.getByRole('heading', { name: /session ended/ }).waitFor();
  await tab.locator('code', { hasText: 'mcpzip ui' }).first().waitFor();
  expect((await violations()).length === 0, `axe: ${await violations()}`);
});

await opened.context.close();
await home.end();

await test('a thousand servers and fifty thousand tools stay usable', async () => {
  home = new Home();
  session = await home.session();
  opened = await enter(home, ['--large']);
  const { tab } = opened;
  try {
    // Two thousand calls in each second.
    await open('#/overview');
    await until('the calls are counted', async () => /[\d,]{5,} calls in the last minute/.test(await tab.locator('main').innerText()));
    const answered = await tab.evaluate(async () => {
      const times = [];
      for (let turn = 0; turn < 10; turn += 1) {
        const from = performance.now();
        await new Promise((resolve) => setTimeout(resolve, 100));
        times.push(performance.now() - from - 100);
      }
      return Math.max(...times);
    });
    console.log(`      with two thousand calls a second the page is busy for ${Math.round(answered)} ms at most`);
    expect(answered < 500, `the page is busy for ${answered} ms`);
    await open('#/servers');
    await rows(tab, /^server-0000/).waitFor();
    expect((await rows(tab).count()) < 100, 'only the rows in sight are in the page');
    await tab.getByRole('listbox').focus();
    await tab.keyboard.press('End');
    await rows(tab, /^server-0999/).waitFor();
    await open('#/search');
    await rows(tab, /server-0000__list_issue_0/).waitFor();
    const begun = Date.now();
    await tab.getByLabel('What do you need done?').fill('server-0999 export');
    await rows(tab, /server-0999__export/).first().waitFor();
    const took = Date.now() - begun;
    console.log(`      fifty thousand tools are filtered and drawn in ${took} ms`);
    expect(took < 2000, `it took ${took} ms`);
    expect((await rows(tab).count()) < 100, 'only the rows in sight are in the page');
  } finally {
    await opened.context.close();
    await home.end();
  }
});

await chromium.close();
registry.close();
console.log(failures.length ? `${failures.length} of ${passed + failures.length} fail: ${failures.join('; ')}` : `${passed} tests passed`);
process.exit(failures.length ? 1 : 0);
