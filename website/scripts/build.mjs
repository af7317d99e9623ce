// Generates and builds, without telemetry, regardless of the machine's settings.
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { website } from './lib.mjs';
import './generate.mjs';

const astro = join(dirname(createRequire(import.meta.url).resolve('astro/package.json')), 'astro.js');
const { status } = spawnSync(process.execPath, [astro, 'build', ...process.argv.slice(2)], {
  cwd: website, stdio: 'inherit', env: { ...process.env, ASTRO_TELEMETRY_DISABLED: '1' },
});
process.exit(status ?? 1);
