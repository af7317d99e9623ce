// The pictures of the window in the README and on the website: `just pictures`. They are taken of the real program with the servers of
// the demo, after calls of two clients, in both themes, and written to website/public/window as WebP. A picture whose page has not
// changed still differs in its times, so they are made when a page has another look, and checked in.
import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Home, PATIENCE, browser, fail, overlay, program, repository, wait } from './support.mjs';

/** The most that a picture may weigh, in bytes. */
const MOST = 100_000;
const SIZE = { width: 1120, height: 790 };
const target = join(repository, 'website/public/window');
mkdirSync(target, { recursive: true });

// Its times are shown.
if (/[\\/]debug[\\/]/.test(program())) fail('the pictures need a release build: set MCPZIP_BIN');
const chromium = await browser();
const home = new Home();
const demo = (name) => ({ command: home.binary, args: ['__demo-server', name, join(home.path, 'store')] });
home.write('.config/mcpzip/config.json', JSON.stringify({
  mcpServers: Object.fromEntries(['calendar', 'notes', 'text', 'units'].map((name) => [name, demo(name)])),
  tools: { ask: ['create_note', 'delete_note'] },
  audit: {},
}, null, 2));

/** Waits until all tools have a vector, so that the search ranks as it does for a person. */
async function embedded() {
  for (const end = Date.now() + PATIENCE; ; await wait(200)) {
    const { hits, by_meaning: byMeaning } = home.run('search', '--explain', '--limit', '50', 'read, create, convert or count something');
    if (byMeaning && hits.length > 20 && hits.every(({ meaning }) => meaning !== null)) return;
    if (Date.now() > end) fail('the tools have no vectors');
  }
}

/** The calls of two agents: calls of some seconds, most of them good, and one that waits for the person. */
async function work() {
  const [one, two] = [await home.session('claude-code'), await home.session('cursor')];
  const calls = [
    ['list_events', { from: '2026-03-02T00:00:00Z', to: '2026-03-09T00:00:00Z' }], ['convert_units', { value: 42.2, from: 'km', to: 'mi' }], ['search_notes', { query: 'plan' }],
    ['convert_units', { value: 180, from: 'C', to: 'F' }], ['list_notes', {}],
  ];
  for (let end = Date.now() + 40_000, round = 0; Date.now() < end; round++) {
    for (const [at, [name, args]] of calls.entries()) {
      // A note that does not exist, once: the picture shows what an error looks like.
      if (round === 9 && name === 'list_notes') await one.call('get_note', { id: 9 });
      else await (at % 2 ? two : one).call(name, args);
      await wait(150 + ((at * 7 + Math.floor(Date.now() / 5000)) % 5) * 180);
    }
  }
  void one.call('create_note', { title: 'Release on Monday', body: 'The plan is agreed. Write to the team.', tags: ['release'] });
}

/** The screen as WebP, made by the browser. */
async function picture(tab, quality) {
  const png = (await tab.screenshot({ type: 'png' })).toString('base64');
  const data = await painter.evaluate(async ([source, quality]) => {
    const image = new Image();
    image.src = `data:image/png;base64,${source}`;
    await image.decode();
    const canvas = document.createElement('canvas');
    Object.assign(canvas, { width: image.width, height: image.height });
    canvas.getContext('2d').drawImage(image, 0, 0);
    return canvas.toDataURL('image/webp', quality).split(',')[1];
  }, [png, quality]);
  return Buffer.from(data, 'base64');
}

const painter = await (await chromium.newContext()).newPage();
// Removes the calls that the other tests have made, so that the pictures do not count them.
rmSync(join(home.path, '.local/state/mcpzip/statistics'), { recursive: true });
const { link } = await home.window();
const context = await chromium.newContext({ viewport: SIZE, deviceScaleFactor: 1.4, reducedMotion: 'reduce' });
await overlay(context);
const tab = await context.newPage();
tab.setDefaultTimeout(PATIENCE);
await tab.goto(link);
if (process.env.FILES === '1') await tab.goto(tab.url());
await tab.getByText('Live').first().waitFor();

/** Each picture: its name, its address, and what must be on it. */
const pictures = [
  ['overview', '#/overview', () => tab.getByRole('link', { name: /1 call waits/ }).waitFor()],
  ['search', '#/search?q=when%20am%20I%20free%20on%20monday', () => tab.getByText('calendar__').first().waitFor()],
  ['approvals', '#/approvals', async () => {
    await tab.getByRole('button', { name: /^Allow create_note/ }).click();
    await tab.getByRole('dialog').locator('.line code').filter({ hasText: 'mcpzip approvals allow' }).waitFor();
  }],
];
async function takeAll() {
  for (const theme of ['light', 'dark']) {
    await tab.getByRole('combobox', { name: 'Theme' }).selectOption(theme);
    for (const [name, address, ready] of pictures) {
      await tab.evaluate((hash) => (location.hash = hash), address);
      await ready();
      await tab.evaluate(() => document.fonts.ready);
      await wait(400);
      const path = join(target, `${name}-${theme}.webp`);
      writeFileSync(path, await picture(tab, 0.6));
      const { size } = statSync(path);
      console.log(`${path}: ${size.toLocaleString('en')} bytes`);
      if (size > MOST) fail(`${path} has ${size} bytes, more than ${MOST}`);
      await tab.keyboard.press('Escape');
    }
  }
}

try {
  // The window counts the calls that it has received events of.
  await work();
  await embedded();
  await takeAll();
} finally {
  await chromium.close();
  await home.end();
}
