// Makes the pages and figures that say what the code does or what was measured, from the code and the measurements.
import { fail, need, sourceAddress, write, writeJson } from './lib.mjs';
import { clients } from './clients.mjs';
import { commands } from './commands.mjs';
import { configuration } from './configuration.mjs';
import { environment } from './environment.mjs';
import { fromRepository } from './documents.mjs';
import { answers, search } from './measured.mjs';
import { performance } from './performance.mjs';
import { troubleshooting } from './troubleshooting.mjs';

const measured = { answers: answers(), search: search(), definitions: definitions() };
writeJson('src/generated/measured.json', measured);
writeJson('src/generated/source.json', { address: sourceAddress() ?? null });
clients();
commands();
configuration();
environment();
performance();
troubleshooting();
fromRepository();

/** src/proxy/tools/definitions.rs: the three definitions, as clients of two servers get them. */
function definitions() {
  const source = need('src/proxy/tools/definitions.rs', 'The three definitions are in it.');
  const parts = [...source.split('const DEFINITIONS')[1].split(');')[0].matchAll(/r#?"(.*?)"#?,?\n/g)].map((match) => match[1]);
  const text = parts.join('').replace('$AS', '').replace('$SERVERS', ' Servers: github, notes.');
  const { tools } = JSON.parse(text);
  if (tools.length !== 3) fail('src/proxy/tools/definitions.rs: there should be three definitions');
  const shown = tools.map((tool) => `### ${tool.name}\n\n\`\`\`json\n${JSON.stringify(tool, null, 2)}\n\`\`\``).join('\n\n');
  write('src/generated/definitions.md', `${shown}\n`);
  return { bytes: text.length };
}
