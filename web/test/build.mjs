// The files that are checked in are those that the sources make, byte for byte; they are small, and hold nothing that the window's policy forbids.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { web } from './support.mjs';

/** The most that all files may have together, compressed. */
const MOST = 400_000;

const findings = [];
const made = mkdtempSync(join(tmpdir(), 'mcpzip-web-build-'));
const files = (directory) => readdirSync(directory, { recursive: true }).filter((name) => statSync(join(directory, name)).isFile()).sort();

try {
  for (const args of [['scripts/types.mjs'], ['node_modules/typescript/bin/tsc'], ['node_modules/vite/bin/vite.js', 'build', '--outDir', made, '--emptyOutDir', '--logLevel', 'warn']]) {
    const { status } = spawnSync(process.execPath, args, { cwd: web, stdio: 'inherit' });
    if (status !== 0) findings.push(`${args[0]} failed`);
  }
  const own = join(web, 'dist');
  const [now, before] = [files(made), files(own)];
  for (const name of new Set([...now, ...before])) {
    if (!before.includes(name)) findings.push(`dist/${name} is missing: run \`npm run build\``);
    else if (!now.includes(name)) findings.push(`dist/${name} is of another build: run \`npm run build\``);
    else if (!readFileSync(join(made, name)).equals(readFileSync(join(own, name)))) findings.push(`dist/${name} differs: run \`npm run build\``);
  }
  const sizes = before.map((name) => [gzipSync(readFileSync(join(own, name)), { level: 9 }).length, name]);
  const sum = sizes.reduce((total, [size]) => total + size, 0);
  if (sum > MOST) findings.push(`the files have ${sum} bytes compressed, the limit is ${MOST}`);
  const page = readFileSync(join(own, 'index.html'), 'utf8');
  if (/<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)/.test(page)) findings.push('dist/index.html has an inline script or style');
  if (/(src|href)="(https?:)?\/\//.test(page)) findings.push('dist/index.html loads something from elsewhere');
  for (const name of files(join(web, 'src'))) {
    const text = readFileSync(join(web, 'src', name), 'utf8');
    if (/dangerouslySetInnerHTML|\.(inner|outer)HTML|insertAdjacentHTML|document\.write|\beval\(|new Function/.test(text)) findings.push(`src/${name} makes markup or code of a text`);
  }
  const lock = readFileSync(join(web, 'package-lock.json'), 'utf8');
  if (/"resolved"|https?:\/\/[^"]*registry/.test(lock)) findings.push('package-lock.json names a registry');
  const { dependencies, devDependencies } = JSON.parse(readFileSync(join(web, 'package.json'), 'utf8'));
  for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies })) if (!/^\d+\.\d+\.\d+$/.test(version)) findings.push(`the version of ${name} is not fixed`);
  if (!findings.length) console.log(`${before.length} files are as built, ${Math.round(sum / 1000)} kB compressed, the largest ${sizes.sort(([one], [other]) => other - one)[0].join(' bytes, ')}`);
} finally {
  rmSync(made, { recursive: true, force: true });
}
if (findings.length) {
  console.error(findings.map((line) => `- ${line}`).join('\n'));
  process.exit(1);
}
