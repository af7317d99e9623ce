// Finds and reads files and output. A missing or unexpected one stops the build with one clear sentence.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

export const website = dirname(dirname(fileURLToPath(import.meta.url)));
export const repository = dirname(website);

/** The text of a file of the repository; `maker` says what writes it, for the error message. */
export function need(path, maker) {
  // WEBSITE_INPUTS is a second place to look, for work on the site before the code is there.
  const places = [repository, process.env.WEBSITE_INPUTS].filter(Boolean);
  const file = places.map((place) => join(place, path)).find(existsSync);
  return file ? readFileSync(file, 'utf8') : fail(`${path} is missing. ${maker}`);
}

export function fail(message) {
  throw new Error(`website: ${message}`);
}

export function write(path, text) {
  const file = join(website, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

export const writeJson = (path, value) => write(path, `${JSON.stringify(value, null, 1)}\n`);

/** The program: MCPZIP_BIN, or what cargo built last in this repository; undefined where there is none. */
export function program() {
  const named = process.env.MCPZIP_BIN;
  if (named) return existsSync(named) ? resolve(named) : fail(`MCPZIP_BIN names ${named}, which is not there`);
  const target = process.env.CARGO_TARGET_DIR ?? join(repository, 'target');
  const ending = process.platform === 'win32' ? '.exe' : '';
  const built = ['release', 'dist', 'debug'].map((profile) => join(target, profile, `mcpzip${ending}`)).filter(existsSync);
  return built.sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs)[0];
}

/** The output of the program, in a home of its own. */
export function run(binary, args, options = {}) {
  return execFileSync(binary, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], ...options });
}

/** The tables of a Markdown text, by the heading above each: a list of rows, each a list of cells. */
export function tables(markdown) {
  const found = {};
  let heading = '';
  let table;
  for (const line of markdown.split('\n')) {
    const title = line.match(/^#+\s+(.*)/);
    if (title) heading = title[1];
    if (!line.startsWith('|')) {
      table = undefined;
      continue;
    }
    const cells = line
      .replaceAll('\\|', '\u0000')
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.replaceAll('\u0000', '|').trim());
    if (!table) {
      table = [];
      (found[heading] ??= []).push(table);
    }
    if (!cells.every((cell) => /^:?-+:?$/.test(cell))) table.push(cells);
  }
  return found;
}

/** A number as it stands in a table: `**1234**` or `1,234`. */
export function number(cell) {
  const value = Number(cell.replace(/[*,]/g, ''));
  return Number.isFinite(value) ? value : fail(`\`${cell}\` should be a number`);
}

export const page = (title, description, body) =>
  `---\ntitle: ${JSON.stringify(title)}\ndescription: ${JSON.stringify(description)}\neditUrl: false\n---\n\n${body.trim()}\n`;

/** A text as a cell of a table: code stays as it is, angle brackets elsewhere are no HTML. */
export const cell = (text) => text
  .replaceAll('|', '\\|')
  .replaceAll('\n', ' ')
  .split('`')
  .map((part, index) => (index % 2 ? part : part.replaceAll('<', '&lt;')))
  .join('`');

/** The address of the source: SITE_SOURCE, or the `repository` of `Cargo.toml`; undefined without either. */
export function sourceAddress() {
  if (process.env.SITE_SOURCE) return process.env.SITE_SOURCE;
  const cargo = readFileSync(join(repository, 'Cargo.toml'), 'utf8');
  return cargo.match(/^repository\s*=\s*"([^"]+)"/m)?.[1].replace(/\/$/, '');
}
