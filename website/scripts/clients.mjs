// The pages about migration and a page for each client, with the entry that `connect CLIENT --dry-run` showed.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fail, page, website, write } from './lib.mjs';

const language = (file) => (file.endsWith('.toml') ? 'toml' : file.endsWith('.yaml') ? 'yaml' : 'json');

export function clients() {
  const read = (name) => {
    const file = join(website, 'src/data', name);
    return existsSync(file) ? readFileSync(file, 'utf8') : fail(`src/data/${name} is missing. \`npm run record\` writes the recorded ones.`);
  };
  const recorded = JSON.parse(read('clients.json'));
  const notes = JSON.parse(read('client-notes.json'));
  const unknown = Object.keys(notes).filter((name) => !recorded.some((client) => client.name === name));
  if (unknown.length) fail(`src/data/client-notes.json: no such client: ${unknown.join(', ')}`);
  for (const client of recorded) {
    const note = notes[client.name] ?? fail(`src/data/client-notes.json says nothing of ${client.name}`);
    write(`src/content/docs/clients/${client.name}.md`, page(client.title, `Use mcpzip with ${client.title}`, one(client, note)));
  }
  const list = recorded.map(({ name, title, file }) => `| [${title}](/clients/${name}/) | \`${name}\` | \`${file}\` |`).join('\n');
  write('src/content/docs/guides/migrate.md', page('Move your servers here', 'Migration from 16 clients, and back', `${read('migrate.md').trim()}

| Client | Name for \`--client\` | Its file, on Linux |
|---|---|---|
${list}`));
  write('src/content/docs/guides/migrate-rules.md', page('Migration: which rules count', 'Which rules of a client count in a migration, and what becomes of each', read('migrate-rules.md')));
  write('src/content/docs/guides/migrate-proxies.md', page('Coming from another proxy', 'What becomes of the servers and protections of another proxy', read('migrate-proxies.md')));
}

function one({ name, title, file, entry }, note) {
  return `
## Connect ${title}

\`\`\`sh
mcpzip connect ${name} --dry-run    # shows the change
mcpzip connect ${name}              # adds the one entry, and keeps your own servers there
\`\`\`

On Linux the entry goes into \`${file}\`:

\`\`\`${language(file)} title="${file}"
${entry}
\`\`\`

${note}

## Move its servers to mcpzip

\`\`\`sh
mcpzip migrate --client ${name} --dry-run    # what moves, what stays and why, and the change of each file
mcpzip migrate --client ${name}
\`\`\`

Rules of ${title} for single tools do not match the tools behind mcpzip; \`migrate\` shows what becomes of each rule. [What moves and what
stays](/guides/migrate/#what-to-expect), and [which rules count](/guides/migrate-rules/#by-client)

## Go back

\`\`\`sh
mcpzip undo                   # reverts the last change, byte for byte
mcpzip disconnect ${name}     # or removes the one entry
\`\`\`

## If it does not work

\`mcpzip doctor\` checks the configuration, the servers and the entry in ${title}. [Troubleshooting](/guides/troubleshooting/)
`;
}
