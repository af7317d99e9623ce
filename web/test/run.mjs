// The window's tests, from a fresh clone: installs, builds, compares, and uses every page as a person would. Needs Node.js 20.19 or newer,
// the npm registry for the first run, Chromium (Debian's will do), and a built mcpzip (MCPZIP_BIN, or the last one in `target`).
// `node test/run.mjs window -- NAME…` runs the named tests alone. BRIDGE=1 uses the bridge even if the program has a window of its own.
import { spawnSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fail, web } from './support.mjs';

const started = Date.now();
const given = process.argv.slice(2);
const cut = given.indexOf('--');
const names = cut < 0 ? [] : given.splice(cut).slice(1);

function step(name, command, args) {
  if (given.length && !given.includes(name)) return;
  const begun = Date.now();
  console.log(`\n== ${name}`);
  const { status, error } = spawnSync(command, args, { cwd: web, stdio: 'inherit', shell: process.platform === 'win32' });
  if (error || status !== 0) fail(`${name} failed${error ? `: ${error.message}` : ''}`);
  console.log(`== ${name}: passed after ${Math.round((Date.now() - begun) / 1000)} s`);
}

const installed = join(web, 'node_modules/.package-lock.json');
const isCurrent = existsSync(installed) && statSync(installed).mtimeMs >= statSync(join(web, 'package-lock.json')).mtimeMs;
if (!isCurrent || given.includes('install')) step('install', 'npm', ['ci', '--no-audit', '--no-fund']);
step('build', process.execPath, ['test/build.mjs']);
step('pages', process.execPath, ['test/pages.mjs', ...names]);
step('window', process.execPath, ['test/window.mjs', ...names]);
step('gateway', process.execPath, ['test/gateway.mjs']);
console.log(`\nweb: all passed after ${Math.round((Date.now() - started) / 1000)} s`);
