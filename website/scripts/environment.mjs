// The reference of environment variables, from src/config/env.rs, where each name has its meaning.
import { fail, need, page, write } from './lib.mjs';

export function environment() {
  const source = need('src/config/env.rs', 'It names every variable.');
  const named = {};
  const entry = /(?:pub(?:\(crate\))? const (\w+): Variable =\s*)?Variable \{\s*name: "([^"]+)",\s*doc: "((?:[^"\\]|\\.)*)",?\s*\}/g;
  for (const [, constant, name, doc] of source.matchAll(entry)) if (constant) named[constant] = [name, doc];
  const list = (title) => {
    const text = source.match(new RegExp(`pub(?:\\(crate\\))? const ${title}: &\\[Variable\\] = &\\[([\\s\\S]*?)\\n\\];`))?.[1] ?? fail(`src/config/env.rs has no ${title}`);
    const rows = [];
    for (const [, name, doc, constant] of text.matchAll(/Variable \{\s*name: "([^"]+)",\s*doc: "((?:[^"\\]|\\.)*)",?\s*\}|^ {4}([A-Z_]+),/gm)) {
      rows.push(constant ? named[constant] ?? fail(`src/config/env.rs: ${constant} is not understood`) : [name, doc]);
    }
    return `| Variable | Meaning |\n|---|---|\n${rows.map(([name, doc]) => `| \`${name}\` | ${doc} |`).join('\n')}`;
  };
  write('src/content/docs/reference/environment.md', page('Environment variables', 'What mcpzip reads, and what its servers inherit', `
This page is made from the source, where each variable is defined with its meaning.

## Read by mcpzip

A flag overrides its variable, and a variable overrides the configuration.

${list('VARIABLES')}

## Inherited by servers

A server's process gets these variables, its own \`env\`, and \`MCPZIP_PARENT\`, a mark by which mcpzip finds the processes that the server started. It gets
no other variables: a key that is set in your shell reaches a server only if its \`env\` names it, as \`"TOKEN": "\${TOKEN}"\` does.

${list('INHERITED')}
`));
}
