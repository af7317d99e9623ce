// Makes the npm packages: `node build.mjs UNPACKED VERSION OWNER/REPOSITORY OUT`. One package for each system that was built, with the
// program in it, and `mcpzip`, which npm completes with the one that fits.
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const root = dirname(dirname(here));
const [unpacked, version, repository, out] = process.argv.slice(2);
const SYSTEMS = [
  ['x86_64-unknown-linux-musl', 'linux', 'x64'],
  ['aarch64-unknown-linux-musl', 'linux', 'arm64'],
  ['x86_64-apple-darwin', 'darwin', 'x64'],
  ['aarch64-apple-darwin', 'darwin', 'arm64'],
  ['x86_64-pc-windows-msvc', 'win32', 'x64'],
  ['aarch64-pc-windows-msvc', 'win32', 'arm64'],
];
const common = { repository: { type: 'git', url: `git+https://github.com/${repository}.git` } };
const work = mkdtempSync(join(tmpdir(), 'mcpzip-npm-'));
mkdirSync(out, { recursive: true });

function pack(directory, manifest, target) {
  for (const file of ['LICENSE', 'README.md']) copyFileSync(join(root, file), join(directory, file));
  writeFileSync(join(directory, 'package.json'), `${JSON.stringify({ ...manifest, version, ...common }, null, 2)}\n`);
  const made = execFileSync('npm', ['pack', '--silent', '--pack-destination', work], { cwd: directory, encoding: 'utf8' }).trim().split('\n').at(-1);
  renameSync(join(work, made), join(work, target));
  cpSync(join(work, target), resolve(out, target));
}

try {
  const optionalDependencies = {};
  for (const [target, os, cpu] of SYSTEMS) {
    const program = os === 'win32' ? 'mcpzip.exe' : 'mcpzip';
    const built = join(unpacked, `mcpzip-${target}`, program);
    if (!existsSync(built)) continue;
    const name = `mcpzip-${os}-${cpu}`;
    const directory = join(work, name);
    mkdirSync(directory);
    copyFileSync(built, join(directory, program));
    chmodSync(join(directory, program), 0o755);
    pack(directory, { name, description: `The program mcpzip for ${os} on ${cpu}`, license: 'MIT', os: [os], cpu: [cpu], files: [program, 'LICENSE', 'README.md'], preferUnplugged: true }, `npm-${name}.tgz`);
    optionalDependencies[name] = version;
  }
  if (!Object.keys(optionalDependencies).length) throw new Error(`there is no program in ${unpacked}`);
  const directory = join(work, 'mcpzip');
  cpSync(join(here, 'bin'), join(directory, 'bin'), { recursive: true });
  // The registry looks for its name in the package that its entry names.
  const mcpName = `io.github.${repository.split('/')[0].toLowerCase()}/mcpzip`;
  pack(directory, { ...JSON.parse(readFileSync(join(here, 'package.json'), 'utf8')), mcpName, optionalDependencies }, 'npm-mcpzip.tgz');
} finally {
  rmSync(work, { recursive: true, force: true });
}
