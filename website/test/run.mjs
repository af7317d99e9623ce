// The site's tests, from a fresh clone: installs, builds, and looks at every page as a person would. Needs Node.js 20 or newer,
// the npm registry for the first run, Chromium (Debian's will do), and a built mcpzip (MCPZIP_BIN, or the last one in `target`).
import { spawnSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ADDRESS, SOURCE } from './support.mjs';

const website = dirname(dirname(fileURLToPath(import.meta.url)));
const started = Date.now();
const parts = process.argv.slice(2);

const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 3)) {
  console.error(`website: Node.js 20.3 or newer is needed, this is ${process.version}`);
  process.exit(1);
}

function step(name, command, args, options = {}) {
  if (parts.length && !parts.includes(name)) return;
  const begun = Date.now();
  console.log(`\n== ${name}`);
  const { status, error } = spawnSync(command, args, { cwd: website, stdio: 'inherit', ...options });
  if (error || status !== 0) {
    console.error(`\nwebsite: ${name} failed${error ? `: ${error.message}` : ''}`);
    process.exit(1);
  }
  console.log(`== ${name}: passed after ${Math.round((Date.now() - begun) / 1000)} s`);
}

const installed = join(website, 'node_modules/.package-lock.json');
const isCurrent = existsSync(installed) && statSync(installed).mtimeMs >= statSync(join(website, 'package-lock.json')).mtimeMs;
if (!isCurrent || parts.includes('install')) step('install', process.platform === 'win32' ? 'npm.cmd' : 'npm', ['ci', '--no-audit', '--no-fund'], { shell: process.platform === 'win32' });
step('recordings', process.execPath, ['scripts/record.mjs', '--check']);
// With addresses, as the published site has them: pages then link to their source and name themselves.
const env = { ...process.env, SITE_URL: ADDRESS, SITE_SOURCE: SOURCE };
step('build', process.execPath, ['scripts/build.mjs', '--silent'], { env });
step('units', process.execPath, ['--test', 'test/units.mjs']);
step('links', process.execPath, ['test/links.mjs']);
step('samples', process.execPath, ['test/samples.mjs']);
step('pages', process.execPath, ['test/pages.mjs']);
console.log(`\nwebsite: all passed after ${Math.round((Date.now() - started) / 1000)} s`);
