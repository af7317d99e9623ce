// Makes the types of the control interface from its schema.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { compile } from 'json-schema-to-typescript';

const here = (path) => new URL(path, import.meta.url);
const schema = JSON.parse(readFileSync(here('../../docs/control.schema.json'), 'utf8'));
// Formats are about numbers of the program; a description that names another type would be repeated in each place.
const types = await compile(schema, 'Control', { additionalProperties: false, bannerComment: '// Made from docs/control.schema.json by scripts/types.mjs.', format: false });
mkdirSync(here('../src/generated/'), { recursive: true });
writeFileSync(here('../src/generated/control.ts'), types);
