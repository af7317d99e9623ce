// Makes a bundle for each system that was built: `node build.mjs UNPACKED VERSION OUT`. A bundle is a zip of the manifest and the
// program; the one for macOS has the program for Apple's own processors.
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const [unpacked, version, out] = process.argv.slice(2);
const manifest = JSON.parse(readFileSync(join(here, 'manifest.json'), 'utf8'));
const SYSTEMS = [
  ['x86_64-unknown-linux-musl', 'linux', 'mcpzip'],
  ['aarch64-apple-darwin', 'darwin', 'mcpzip'],
  ['x86_64-pc-windows-msvc', 'win32', 'mcpzip.exe'],
];
mkdirSync(out, { recursive: true });
for (const [target, platform, program] of SYSTEMS) {
  const built = join(unpacked, `mcpzip-${target}`, program);
  if (!existsSync(built)) continue;
  const work = mkdtempSync(join(tmpdir(), 'mcpzip-mcpb-'));
  try {
    mkdirSync(join(work, 'server'));
    copyFileSync(built, join(work, 'server', program));
    chmodSync(join(work, 'server', program), 0o755);
    const own = { ...manifest, version, compatibility: { platforms: [platform] }, server: { ...manifest.server, entry_point: `server/${program}` } };
    writeFileSync(join(work, 'manifest.json'), `${JSON.stringify(own, null, 2)}\n`);
    const bundle = resolve(out, `mcpzip-${platform}.mcpb`);
    rmSync(bundle, { force: true });
    execFileSync('zip', ['-q', '-X', '-r', bundle, '.'], { cwd: work, stdio: 'inherit' });
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
