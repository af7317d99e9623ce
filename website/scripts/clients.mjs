// The migration guide: what is written of all clients, then each with the entry that `connect CLIENT --dry-run` showed.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fail, page, website, write } from './lib.mjs';

export function clients() {
  const read = (name) => {
    const file = join(website, 'src/data', name);
    return existsSync(file) ? readFileSync(file, 'utf8') : fail(`src/data/${name} is missing. \`npm run record\` writes the recorded ones.`);
  };
  const recorded = JSON.parse(read('clients.json'));
  const notes = JSON.parse(read('client-notes.json'));
  const unknown = Object.keys(notes).filter((name) => !recorded.some((client) => client.name === name));
  if (unknown.length) fail(`src/data/client-notes.json: no such client: ${unknown.join(', ')}`);
  const language = (file) => (file.endsWith('.toml') ? 'toml' : file.endsWith('.yaml') ? 'yaml' : 'json');
  const each = recorded.map(({ name, title, file, entry }) => `### ${title}

\`mcpzip migrate --client ${name} --dry-run\`, or the entry alone: \`mcpzip connect ${name}\`

${notes[name] ?? fail(`src/data/client-notes.json says nothing of ${name}`)}

\`\`\`${language(file)} title="${file}"
${entry}
\`\`\``);
  write('src/content/docs/guides/migrate.md', page('Move your servers here', 'Migration from 16 clients, and back', `${read('migrate.md').trim()}\n\n${each.join('\n\n')}`));
}
