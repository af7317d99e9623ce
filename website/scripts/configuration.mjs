// The configuration reference and the schema that the configuration builder checks against, from docs/config.schema.json,
// which `mcpzip config schema` prints.
import Ajv from 'ajv';
import Ajv2020 from 'ajv/dist/2020.js';
import standalone from 'ajv/dist/standalone/index.js';
import { cell, fail, need, page, write, writeJson } from './lib.mjs';

export const SCHEMA = 'docs/config.schema.json';

export function readSchema() {
  return JSON.parse(need(SCHEMA, '`mcpzip config schema > docs/config.schema.json` writes it.'));
}

/** A validator of the schema; `compile` gives a function with `errors`. */
export function validator(options = {}) {
  // Descriptions and messages would weigh on the builder's page, which has words of its own.
  const schema = JSON.parse(JSON.stringify(readSchema(), (key, value) => (key === 'description' && typeof value === 'string' ? undefined : value)));
  const Validator = /2020-12/.test(schema.$schema ?? '') ? Ajv2020.default ?? Ajv2020 : Ajv.default ?? Ajv;
  // A definition is a function of its own, not a copy at each place.
  const ajv = new Validator({ inlineRefs: false, allErrors: true, strict: false, logger: false, messages: false, ...options });
  return { ajv, validate: ajv.compile(schema) };
}

const literal = (value) => `\`${JSON.stringify(value).replaceAll('|', '\\|')}\``;

export function configuration() {
  const schema = readSchema();
  // The builder's check, compiled to a plain function, so that the page needs no validator.
  const { ajv, validate } = validator({ code: { source: true, esm: true } });
  // The page does not show where in the schema a fault was found, and those paths are a sixth of the code.
  const code = (standalone.default ?? standalone)(ajv, validate).replace(/schemaPath:"[^"]*",/g, '');
  const helpers = [...code.matchAll(/const (\w+) = require\("([^"]+)"\)\.default;?/g)];
  const imports = helpers.map(([, name, path]) => `import ${name}Module from ${JSON.stringify(path.endsWith('.js') ? path : `${path}.js`)};\nconst ${name} = ${name}Module.default ?? ${name}Module;`);
  write('src/generated/validate.js', `// @ts-nocheck\n${imports.join('\n')}\n${helpers.reduce((text, [line]) => text.replace(line, ''), code)}\n`);
  writeJson('src/generated/schema.json', schema);
  const definition = (node) => {
    if (!node?.$ref) return node ?? {};
    const target = node.$ref.replace(/^#\//, '').split('/').reduce((at, step) => at?.[step], schema);
    return { ...(target ?? fail(`${SCHEMA}: ${node.$ref} leads nowhere`)), ...node, $ref: undefined };
  };
  // The permitted values, in a few words.
  const kind = (raw) => {
    const node = definition(raw);
    const choices = node.anyOf ?? node.oneOf;
    if (node.const !== undefined) return literal(node.const);
    if (node.enum) return node.enum.filter((value) => value !== null).map(literal).join(', ');
    if (choices) return [...new Set(choices.map(kind))].filter(Boolean).join(' or ');
    const kinds = [node.type ?? []].flat().filter((type) => type !== 'null');
    if (kinds[0] === 'array') return `list of ${{ string: 'texts' }[node.items?.type] ?? (kind(node.items) || 'values')}`;
    const types = kinds.map((type) => ({ boolean: '`true` or `false`', integer: 'whole number', string: 'text' })[type] ?? type);
    return types.join(' or ');
  };
  const rows = (node, prefix) => Object.entries(node.properties ?? {}).flatMap(([key, raw]) => {
    const value = definition(raw);
    const name = prefix ? `${prefix}.${key}` : key;
    const row = `| \`${name}\` | ${cell(value.description ?? fail(`${SCHEMA}: ${name} has no description`))} | ${kind(raw)} | ${value.default === undefined ? '' : literal(value.default)} |`;
    const inner = (value.anyOf ?? value.oneOf ?? []).map(definition).concat(value).find(({ properties }) => properties);
    return inner ? [row, ...rows(inner, name)] : [row];
  });
  const servers = schema.properties?.mcpServers ?? fail(`${SCHEMA} has no mcpServers`);
  const server = definition(definition(servers).additionalProperties ?? Object.values(definition(servers).patternProperties ?? {})[0]);
  const entry = server.properties ? server : (server.anyOf ?? server.oneOf ?? server.allOf ?? []).map(definition).reduce((all, { properties }) => ({ properties: { ...all.properties, ...properties } }), {});
  const { mcpServers, ...others } = schema.properties;
  const table = (list) => `| Key | Meaning | Value | Default |\n|---|---|---|---|\n${list.join('\n')}`;
  write('src/content/docs/reference/configuration.md', page('Configuration', 'Every key of the configuration file', `
This page is made from the configuration's JSON Schema, which \`mcpzip config schema\` prints. Editors complete the keys when the file
names that schema in \`$schema\`. The [configuration builder](/try/configuration-builder/) writes a file from a form.

## The file

| System | Place |
|---|---|
| Linux | \`~/.config/mcpzip/config.json\` |
| macOS | \`~/Library/Application Support/mcpzip/config.json\` |
| Windows | \`%APPDATA%\\mcpzip\\config\\config.json\` |

\`--config FILE\` or \`MCPZIP_CONFIG\` names another file. Comments and trailing commas are permitted. \`\${NAME}\` and \`\${NAME:-default}\` in any
string are filled in from the environment. mcpzip picks up edits while it runs; it reports an edit that cannot be read, and keeps the configuration
before it. One bad entry does not affect the others. \`null\` is the same as leaving a key out, except for \`sandbox\` and in profiles and roles, where it is a fault.

## Secrets

Values for \`\${NAME}\` can be in a file next to the configuration, with its name and the ending \`.secrets.json\`: \`config.secrets.json\`. The file is an object of names and
strings, which only you should be able to read. A value in it overrides a variable of the environment, and also reaches clients that are started from the
desktop without a shell. [\`migrate\` and \`init\`](/guides/migrate/#secrets) write the file. mcpzip picks up edits of it, and restarts servers whose secrets have changed.

\`\${keyring:NAME}\` is a secret in the system's keychain or an encrypted file; \`mcpzip secret set NAME\` sets it ([Secrets](/guides/secrets/)).

## An example

\`\`\`json
${JSON.stringify(EXAMPLE, null, 2)}
\`\`\`

## A server

Each member of \`mcpServers\` is a server: its name and its entry. A name has 1 to 64 letters, digits, \`-\`, \`_\` and \`.\`, without \`__\`. An entry has
a \`command\` or a \`url\`, in the form that clients use, so you can paste one; or it has one of the keys \`openapi\`, \`graphql\` and \`skills\`.

${table(rows(entry, ''))}

## Everything else

${table(rows({ properties: others }, ''))}
`));
}

const EXAMPLE = {
  mcpServers: {
    files: { command: 'npx', args: ['-y', '@modelcontextprotocol/server-filesystem@2026.8.31', '.'] },
    github: {
      command: 'github-mcp-server',
      args: ['stdio'],
      env: { GITHUB_PERSONAL_ACCESS_TOKEN: '${GITHUB_TOKEN:-}' },
      tools: { deny: ['delete_*'], ask: ['@destructive'] },
    },
    linear: { url: 'https://mcp.linear.app/mcp', timeout: '90s' },
  },
  results: { budget: 50000 },
};
