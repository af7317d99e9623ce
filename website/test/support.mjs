// What the tests share: findings, the built pages, a server for them, and the browser.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, relative } from 'node:path';
import { website } from '../scripts/lib.mjs';

export const dist = join(website, 'dist');

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

/** Serves the built site on a free port of this machine; `close` ends it. */
export async function serve() {
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url, 'http://localhost').pathname);
    const file = join(dist, path.endsWith('/') ? `${path}index.html` : path);
    if (!file.startsWith(dist) || !existsSync(file) || !statSync(file).isFile()) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { 'content-type': TYPES[extname(file)] ?? 'application/octet-stream' }).end(readFileSync(file));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { origin: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
}

/** A Chromium with a profile of its own, gone when closed. */
export async function browser() {
  const { chromium } = await import('playwright-core');
  const named = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].filter(Boolean);
  const executablePath = named.find(existsSync);
  if (!executablePath) {
    console.error('website: there is no Chromium: install the package `chromium`, or set CHROMIUM to one');
    process.exit(1);
  }
  return chromium.launch({
    executablePath,
    headless: true,
    args: ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'],
  });
}
