// Fills in what is known only when a release is made, version, repository and checksums, in the files that name them:
// `node render.mjs VERSION OWNER/REPOSITORY DIST`.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));

export const TEMPLATES = {
  'install.sh': 'mcpzip-installer.sh',
  'install.ps1': 'mcpzip-installer.ps1',
  'homebrew/mcpzip.rb': 'mcpzip.rb',
  'registry/server.json': 'server.json',
};

/** `@VERSION@`, `@REPOSITORY@`, `@OWNER@` and `@SHA256:file@` in a text; what is not known stops the release. */
export function render(text, { version, repository, dist }) {
  const filled = text
    .replaceAll('@VERSION@', version)
    .replaceAll('@REPOSITORY@', repository)
    .replaceAll('@OWNER@', repository.split('/')[0].toLowerCase())
    .replace(/@SHA256:([\w.-]+)@/g, (_, file) => {
      const path = join(dist, file);
      if (!existsSync(path)) throw new Error(`${file} is not in ${dist}`);
      return createHash('sha256').update(readFileSync(path)).digest('hex');
    });
  const left = filled.match(/@[A-Z][A-Z0-9:]*[^@\s]*@/);
  if (left) throw new Error(`nothing fills in ${left[0]}`);
  return filled;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [version, repository, dist] = process.argv.slice(2);
  for (const [from, to] of Object.entries(TEMPLATES)) {
    writeFileSync(join(dist, to), render(readFileSync(join(here, from), 'utf8'), { version, repository, dist }));
  }
}
