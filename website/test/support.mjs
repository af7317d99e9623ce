// The parts that the tests share: findings, the built pages, a server for them, and the browser.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { delimiter, extname, join, relative } from 'node:path';
import { website } from '../scripts/lib.mjs';

export const dist = join(website, 'dist');

/** The addresses of the site and of its source in the tests. */
export const ADDRESS = 'https://site.example';
export const SOURCE = 'https://source.example/owner/mcpzip';

/** Collects what is wrong, and ends the test with it. */
export class Findings {
  list = [];
  add(where, what) {
    this.list.push(`${where}: ${what}`);
  }
  end(passed) {
    if (this.list.length) {
      console.error(this.list.map((line) => `- ${line}`).join('\n'));
      console.error(`${this.list.length} findings`);
      process.exit(1);
    }
    console.log(passed);
  }
}

/** All files below a directory with one of these endings. */
export function files(directory, ...endings) {
  return readdirSync(directory, { recursive: true }).map((name) => join(directory, name)).filter((file) => endings.includes(extname(file)) && statSync(file).isFile());
}

/** The pages by their path, `/guides/search/` say, with their HTML. */
export function pages() {
  return Object.fromEntries(files(dist, '.html').map((file) => {
    const path = `/${relative(dist, file).replaceAll('\\', '/')}`.replace(/index\.html$/, '');
    return [path, readFileSync(file, 'utf8')];
  }));
}

const TYPES = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.json': 'application/json', '.wasm': 'application/wasm', '.png': 'image/png' };

/** How long anything in the browser may take, in milliseconds: a busy machine must not cause a failure. */
export const PATIENCE = 60_000;

/** Serves the built site on a free port of this machine, and notes in `sent` what it sent; `close` ends it. */
export async function serve() {
  const sent = [];
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url, 'http://localhost').pathname);
    const file = join(dist, path.endsWith('/') ? `${path}index.html` : path);
    const isThere = file.startsWith(dist) && existsSync(file) && statSync(file).isFile();
    const body = isThere ? readFileSync(file) : Buffer.alloc(0);
    const kind = TYPES[extname(file)] ?? 'application/octet-stream';
    // Nothing is kept, so that a page's weight is that of a first visit.
    sent.push({ url: request.url, status: isThere ? 200 : 404, kind, bytes: body.length });
    response.writeHead(isThere ? 200 : 404, { 'content-type': kind, 'cache-control': 'no-store' }).end(body);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { origin: `http://127.0.0.1:${server.address().port}`, sent, close: () => server.close() };
}

/** The first of these programs that is there. */
function onPath(...names) {
  const directories = (process.env.PATH ?? '').split(delimiter).filter(Boolean);
  return names.flatMap((name) => directories.map((directory) => join(directory, name))).find(existsSync);
}

/** A Chromium with a profile of its own, gone when closed. */
export async function browser() {
  const { chromium } = await import('playwright-core');
  const executablePath = process.env.CHROMIUM ?? onPath('chromium', 'chromium-browser', 'google-chrome');
  if (!executablePath || !existsSync(executablePath)) {
    console.error('website: there is no Chromium: install the package `chromium`, or set CHROMIUM to one');
    process.exit(1);
  }
  return chromium.launch({
    executablePath,
    headless: true,
    timeout: PATIENCE,
    args: ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage', '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1'],
  });
}
