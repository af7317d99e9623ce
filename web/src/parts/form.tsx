// A form made of a JSON Schema. A value that a field cannot show is edited as JSON.
import type { ComponentChildren } from 'preact';
import { useId, useState } from 'preact/hooks';

import { Prose } from './text';

export interface Schema {
  type?: string | string[];
  title?: string;
  description?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  additionalProperties?: boolean | Schema;
  minimum?: number;
  maximum?: number;
  format?: string;
  $ref?: string;
  $defs?: Record<string, Schema>;
  definitions?: Record<string, Schema>;
}

export type Path = (string | number)[];

interface Props {
  schema: Schema;
  root: Schema;
  name: string;
  value: unknown;
  path: Path;
  set: (path: Path, value: unknown) => void;
  isRequired?: boolean;
  depth?: number;
}

/** The schema that a reference names, with its own words kept. */
export function resolve(schema: Schema, root: Schema, depth = 0): Schema {
  if (!schema.$ref || depth > 8) return schema;
  let at: unknown = root;
  for (const part of schema.$ref.replace(/^#\/?/, '').split('/').filter(Boolean)) at = (at as Record<string, unknown> | undefined)?.[part.replaceAll('~1', '/').replaceAll('~0', '~')];
  if (typeof at !== 'object' || at === null) return schema;
  const { $ref: _, ...own } = schema;
  return resolve({ ...(at as Schema), ...own }, root, depth + 1);
}

type Kind = 'object' | 'map' | 'strings' | 'choice' | 'boolean' | 'number' | 'integer' | 'string' | 'json';

/** How a value of the schema is edited. */
function kindOf(schema: Schema, root: Schema, value?: unknown): { kind: Kind; choices?: unknown[]; one?: Schema } {
  if (schema.enum) return { kind: 'choice', choices: schema.enum };
  if (schema.const !== undefined) return { kind: 'choice', choices: [schema.const] };
  const types = [schema.type ?? []].flat().filter((type) => type !== 'null');
  const ways = flat(schema, root);
  if (ways.length && !schema.properties) {
    const scalars = ways.filter((way) => way.enum || way.const !== undefined || isScalar(way));
    if (ways.every((way) => way.enum || way.const !== undefined)) return { kind: 'choice', choices: ways.flatMap((way) => way.enum ?? [way.const]) };
    // A duration, say: a number, a word, or a text with a unit.
    if (scalars.length === ways.length) return { kind: 'string', one: { ...schema, type: ways.some((way) => [way.type].flat().includes('number') || [way.type].flat().includes('integer')) ? ['string', 'number'] : 'string' } };
    // A word in place of an object is its most important member.
    const whole = ways.find((way) => way.properties);
    if (whole && (value === undefined || typeof value === 'object')) return { kind: 'object', one: whole };
    if (whole && scalars.length) return { kind: 'string', one: { ...schema, type: scalars.flatMap((way) => way.type ?? 'string') } };
    const list = ways.find((way) => way.type === 'array');
    if (list && kindOf(list, root).kind === 'strings') return { kind: 'strings' };
    return { kind: 'json' };
  }
  if (types.length > 1) return types.every((type) => type !== 'object' && type !== 'array') ? { kind: 'string', one: { ...schema, type: types } } : { kind: 'json' };
  const [type] = types;
  if (type === 'object' || schema.properties) {
    if (schema.properties && Object.keys(schema.properties).length) return { kind: 'object' };
    return typeof schema.additionalProperties === 'object' ? { kind: 'map' } : { kind: 'json' };
  }
  if (type === 'array') return { kind: schema.items && isText(resolve(schema.items, root), root) ? 'strings' : 'json' };
  if (type === 'boolean' || type === 'number' || type === 'integer' || type === 'string') return { kind: type };
  return { kind: 'json' };
}

function flat(schema: Schema, root: Schema): Schema[] {
  const ways = schema.anyOf ?? schema.oneOf ?? [];
  return ways.map((way) => resolve(way, root)).filter((way) => way.type !== 'null').flatMap((way) => ((way.anyOf || way.oneOf) && !way.type && !way.properties ? flat(way, root) : [way]));
}

const isScalar = (schema: Schema) => [schema.type ?? []].flat().length > 0 && [schema.type ?? []].flat().every((type) => ['string', 'number', 'integer', 'boolean'].includes(type));
const isText = (schema: Schema, root: Schema): boolean => schema.type === 'string' || (schema.anyOf ?? schema.oneOf ?? []).some((way) => resolve(way, root).type === 'string');

export function Field(props: Props) {
  const schema = resolve(props.schema, props.root);
  const { value, name, depth = 0 } = props;
  const { kind, choices, one } = kindOf(schema, props.root, value);
  const id = useId();
  const change = (next: unknown) => props.set(props.path, next);
  const isOdd = value !== undefined && !fits(kind, value, choices);
  if (kind === 'object' && !isOdd && depth < 12) return <Group {...props} schema={one ? { ...one, ...(schema.description ? { description: schema.description } : {}) } : schema} depth={depth} />;
  if (kind === 'map' && !isOdd && depth < 12) return <Entries {...props} schema={schema} depth={depth} />;
  const label = <span class="name"><code>{name}</code>{props.isRequired && <span class="faint"> required</span>}</span>;
  const words = schema.description ?? schema.title;
  const about = words ? <span class="about" id={`${id}-about`}><Prose text={words} />{withDefault(schema)}</span> : withDefault(schema) ? <span class="about" id={`${id}-about`}>{withDefault(schema).trim()}</span> : null;
  const described = about ? { 'aria-describedby': `${id}-about` } : {};
  let control: ComponentChildren;
  if (isOdd || kind === 'json' || kind === 'object' || kind === 'map') control = <Json id={id} described={described} value={value} change={change} />;
  else if (kind === 'choice' || kind === 'boolean') {
    const all = kind === 'boolean' ? [true, false] : (choices ?? []);
    const at = all.findIndex((choice) => choice === value);
    control = (
      <select id={id} {...described} value={at < 0 ? '' : String(at)} onChange={({ currentTarget }) => change(currentTarget.value === '' ? undefined : all[Number(currentTarget.value)])}>
        <option value="">not set</option>
        {all.map((choice, index) => <option key={index} value={String(index)}>{choice === null ? 'null' : String(choice)}</option>)}
      </select>
    );
  } else if (kind === 'strings') {
    const text = Array.isArray(value) ? value.join('\n') : typeof value === 'string' ? value : '';
    control = <textarea id={id} {...described} rows={Math.min(8, Math.max(2, text.split('\n').length))} placeholder="One per line" value={text} onChange={({ currentTarget }) => {
      const list = currentTarget.value.split('\n').map((line) => line.trim()).filter(Boolean);
      change(list.length ? list : undefined);
    }} />;
  } else if (kind === 'number' || kind === 'integer') {
    control = <input id={id} {...described} type="number" step={kind === 'integer' ? 1 : 'any'} value={typeof value === 'number' ? String(value) : ''} onChange={({ currentTarget }) => change(currentTarget.value === '' ? undefined : Number(currentTarget.value))} />;
  } else {
    const takesNumber = [one?.type ?? []].flat().some((type) => type === 'number' || type === 'integer');
    const text = value === undefined || value === null ? '' : String(value);
    const takesWords = [one?.type ?? []].flat().includes('boolean');
    const write = (written: string) => change(written === '' ? undefined : takesWords && (written === 'true' || written === 'false') ? written === 'true' : takesNumber && /^-?\d+(\.\d+)?$/.test(written) ? Number(written) : written);
    const isLong = /body|text|content|message|code|query|description/i.test(name) && kind === 'string' && !one && !schema.format;
    control = isLong
      ? <textarea id={id} {...described} rows={3} value={text} onChange={({ currentTarget }) => write(currentTarget.value)} />
      : <input id={id} {...described} type="text" spellcheck={false} autocomplete="off" placeholder={schema.format === 'date-time' ? '2026-01-31T09:00:00Z' : ''} value={text} onChange={({ currentTarget }) => write(currentTarget.value)} />;
  }
  return <div class={`field ${value === undefined ? '' : 'set'}`}><label for={id}>{label}</label>{about}{control}</div>;
}

function withDefault(schema: Schema): string {
  return schema.default === undefined || schema.default === null || JSON.stringify(schema.default).length <= 2 ? '' : ` Default: ${typeof schema.default === 'string' ? schema.default : JSON.stringify(schema.default)}.`;
}

function fits(kind: Kind, value: unknown, choices: unknown[] | undefined): boolean {
  switch (kind) {
    case 'object':
    case 'map':
      return typeof value === 'object' && value !== null && !Array.isArray(value);
    case 'strings':
      return typeof value === 'string' || (Array.isArray(value) && value.every((one) => typeof one === 'string'));
    case 'choice':
      return choices?.includes(value) ?? false;
    case 'boolean':
      return typeof value === 'boolean';
    case 'number':
    case 'integer':
      return typeof value === 'number';
    case 'string':
      return ['string', 'number', 'boolean'].includes(typeof value) || value === null;
    case 'json':
      return true;
  }
}

/** Members that most entries of a server need. */
const COMMON = ['command', 'args', 'env', 'url', 'headers', 'description', 'disabled', 'cwd', 'tools', 'trust'];

/** How early a member is shown; tools have an order of their own. */
function place(key: string, members: Record<string, unknown>): number {
  const common = COMMON.includes(key) && 'command' in members !== 'url' in members ? COMMON.length - COMMON.indexOf(key) : 0;
  return (members[key] !== undefined ? 100 : 0) + common;
}

/** An object whose members are known. */
function Group({ schema, root, name, value, path, set, depth = 0, isRequired }: Props) {
  const members = (value ?? {}) as Record<string, unknown>;
  // Members with values come first. The order stays while the form is open.
  const [order] = useState(() => Object.keys(schema.properties ?? {}).sort((one, other) => place(other, members) - place(one, members)));
  const fields = order.map((key): [string, Schema] => [key, schema.properties?.[key] ?? {}]).map(([key, member]) => (
    <Field key={key} schema={member} root={root} name={key} value={members[key]} path={[...path, key]} set={set} isRequired={schema.required?.includes(key) ?? false} depth={depth + 1} />
  ));
  if (depth === 0) return <>{fields}</>;
  return <Fold name={name} about={schema.description} isSet={value !== undefined} isRequired={isRequired ?? false}>{() => <>{fields}{value !== undefined && <Remove path={path} set={set} name={name} />}</>}</Fold>;
}

/** An object whose members have names of the user's: servers, say. */
function Entries({ schema, root, name, value, path, set, depth = 0 }: Props) {
  const [added, setAdded] = useState('');
  const id = useId();
  const members = (value ?? {}) as Record<string, unknown>;
  const inner = schema.additionalProperties as Schema;
  const of = resolve(inner, root);
  const isSimple = !of.properties && of.type === 'string';
  const add = () => {
    if (!added || added in members) return;
    set([...path, added], isSimple ? '' : of.type === 'object' || of.properties || of.allOf ? {} : null);
    setAdded('');
  };
  return (
    <Fold name={name} about={schema.description} isSet={value !== undefined} count={Object.keys(members).length}>
      {() => (
        <>
          {Object.entries(members).map(([key, member]) => (of.properties
            ? <Group key={key} schema={of} root={root} name={key} value={member} path={[...path, key]} set={set} depth={depth + 1} />
            : <div key={key} class="entry"><Field schema={inner} root={root} name={key} value={member} path={[...path, key]} set={set} depth={depth + 1} /><Remove path={[...path, key]} set={set} name={key} /></div>))}
          <div class="adding"><label for={id}>New name in <code>{name}</code></label><input id={id} type="text" autocomplete="off" spellcheck={false} value={added} onInput={({ currentTarget }) => setAdded(currentTarget.value)} onKeyDown={(event) => { if (event.key === 'Enter') { event.preventDefault(); add(); } }} /> <button type="button" disabled={!added || added in members} onClick={add}>Add</button></div>
        </>
      )}
    </Fold>
  );
}

function Remove({ path, set, name }: { path: Path; set: (path: Path, value: unknown) => void; name: string }) {
  return <p><button type="button" class="small quiet" onClick={() => set(path, undefined)}>Remove {name}</button></p>;
}

function Fold({ name, about, isSet, isRequired, count, children }: { name: string; about?: string | undefined; isSet: boolean; isRequired?: boolean; count?: number; children: () => ComponentChildren }) {
  const [isOpen, setOpen] = useState(isRequired ?? false);
  return (
    <details class={`fold ${isSet ? 'set' : ''}`} open={isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary><code>{name}</code>{count ? <span class="faint"> {count}</span> : null} <span class="about"><Prose text={about} /></span></summary>
      {isOpen && children()}
    </details>
  );
}

/** A value as JSON, given on when it is valid. */
function Json({ id, described, value, change }: { id: string; described: object; value: unknown; change: (value: unknown) => void }) {
  const [written, setWritten] = useState<string>();
  const text = written ?? (value === undefined ? '' : JSON.stringify(value, null, 2));
  let isBad = false;
  if (written) {
    try {
      JSON.parse(written);
    } catch {
      isBad = true;
    }
  }
  return (
    <>
      <textarea id={id} {...described} class="mono" spellcheck={false} rows={Math.min(10, Math.max(1, text.split('\n').length))} placeholder="JSON" value={text} aria-invalid={isBad}
        onInput={({ currentTarget }) => setWritten(currentTarget.value)}
        onChange={({ currentTarget }) => {
          if (currentTarget.value.trim() === '') change(undefined);
          else {
            try {
              change(JSON.parse(currentTarget.value));
            } catch {
              return;
            }
          }
          setWritten(undefined);
        }} />
      {isBad && <span class="bad" role="status">This is not JSON.</span>}
    </>
  );
}
