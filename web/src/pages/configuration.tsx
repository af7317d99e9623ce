// The configuration: a form made of its schema, next to the text. The form edits the text in place, so comments stay.
import { applyEdits, findNodeAtLocation, modify, parseTree, getNodeValue, type JSONPath, type ParseError } from 'jsonc-parser';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

import { run, wordsOf } from '../api';
import { act } from '../parts/action';
import { Difference } from '../parts/difference';
import { Editor, type Fault } from '../parts/editor';
import { Field, type Path, type Schema } from '../parts/form';
import { useRead } from '../parts/read';
import { Failed } from '../parts/text';
import { route } from '../route';
import { counted } from '../words';

interface Checked {
  faults: Fault[];
  warnings: Fault[];
}
interface Shown extends Checked {
  path: string;
  /** `null` if it is not JSON: the secrets in it could not be hidden. */
  text: string | null;
  /** The digest of the file, which `config_write` compares. */
  digest: string;
}

/** Faults and warnings in one list. */
function remarks(checked: Checked | null): Fault[] {
  return [...(checked?.faults ?? []), ...(checked?.warnings ?? []).map((one) => ({ ...one, severity: 'warning' }))];
}

const FORMAT = { insertSpaces: true, tabSize: 2, eol: '\n' };

export function Configuration() {
  const shown = useRead<Shown>('config', {});
  const schema = useRead<Schema>('config_schema', {});
  return (
    <>
      {shown.value?.text == null && <h1>Configuration</h1>}
      <Failed text={shown.failure} again={shown.again} />
      <Failed text={schema.failure} again={schema.again} />
      {!shown.value && shown.failure === undefined && <p class="faint">Reading…</p>}
      {shown.value?.text === null && <><p>{shown.value.path} is not JSON at the moment, so that the secrets in it cannot be hidden, and it is not shown here. Correct it with <code>mcpzip config edit</code>.</p><ul>{shown.value.faults.map(({ line, column, message }) => <li key={message} class="bad">Line {line}, column {column}: {message}</li>)}</ul></>}
      {shown.value && shown.value.text !== null && schema.value && <Both shown={shown.value} schema={schema.value} again={shown.again} />}
    </>
  );
}

function Both({ shown, schema, again }: { shown: Shown; schema: Schema; again: () => void }) {
  const before = shown.text ?? '';
  const [text, setText] = useState(before || '{\n}\n');
  const [faults, setFaults] = useState<Fault[]>(remarks(shown));
  const [trouble, setTrouble] = useState<string>();
  const [isChecking, setChecking] = useState(false);
  const [part, setPart] = useState<'form' | 'text'>('form');
  const go = useRef<(offset: number) => void>(() => undefined);
  const base = useRef(before);
  const isChanged = text !== base.current;
  useEffect(() => {
    // This page or another program wrote the file. Unsaved text stays.
    if (shown.text === null || shown.text === base.current) return;
    if (text === base.current || text === shown.text) setText(shown.text);
    base.current = shown.text;
    setFaults(remarks(shown));
  }, [shown]);
  const wanted = useRef(text);
  wanted.current = text;
  useEffect(() => {
    if (!isChanged) return undefined;
    const timer = setTimeout(() => void check(), 600);
    return () => clearTimeout(timer);
  }, [text, isChanged]);
  const check = async () => {
    const checked = wanted.current;
    setChecking(true);
    try {
      const { output, error } = await run<Checked>('config_check', { text: checked });
      if (checked === wanted.current) {
        setFaults(remarks(output));
        setTrouble(output?.faults ? undefined : error.trim() || 'The check gave no answer.');
      }
    } catch (error) {
      setTrouble(wordsOf(error));
    }
    setChecking(false);
  };
  const errors = faults.filter(({ severity }) => severity !== 'warning').length;
  const save = () => act({
    title: 'Write the configuration', word: 'Write', action: 'config_write', args: { text, before: shown.digest },
    body: <>{errors > 0 && <p class="bad">It has {counted(errors, 'fault')}, and may be refused.</p>}<p>Sessions read it again. The change:</p><Difference before={before} after={text} label="Change of the configuration" /></>,
    onDone: ({ exit }) => { if (exit === 0) again(); },
    show: ({ exit }) => (exit === 0 ? <p>It is written to <code class="break">{shown.path}</code>.</p> : null),
  });
  return (
    <div class="page-list configuration">
      <div class="title"><h1>Configuration</h1>
        <span class="buttons">
          <button type="button" onClick={check} disabled={isChecking}>Check</button>
          <button type="button" onClick={() => { setText(base.current || '{\n}\n'); setFaults(remarks(shown)); setTrouble(undefined); }} disabled={!isChanged}>Discard</button>
          <button type="button" class="primary" onClick={save} disabled={!isChanged}>Save…</button>
        </span>
      </div>
      <p class="faint"><code class="break">{shown.path}</code> {text.includes('"<hidden ') && 'Literal secrets are shown as numbers, and kept.'} {isChanged && <strong class="warn">changed, not saved</strong>}</p>
      <div role="status">
        <Failed text={trouble} />
        {faults.length > 0 && (
          <ul class="plain faults">
            {faults.map((fault, at) => (
              <li key={at}><button type="button" class={`quiet ${fault.severity === 'warning' ? 'warn' : 'bad'}`} onClick={() => { setPart('text'); go.current(offsetOf(text, fault)); }}>Line {fault.line}, column {fault.column}</button> {fault.message}</li>
            ))}
          </ul>
        )}
        {faults.length === 0 && trouble === undefined && <p class="good slim">No faults.</p>}
      </div>
      <p class="tabs only-narrow" role="group" aria-label="Form or text">
        <button type="button" aria-pressed={part === 'form'} onClick={() => setPart('form')}>Form</button>
        <button type="button" aria-pressed={part === 'text'} onClick={() => setPart('text')}>Text</button>
      </p>
      <div class={`sides shows-${part}`}>
        <Form schema={schema} text={text} change={setText} />
        <section class="side-text" aria-label="Text"><Editor text={text} change={setText} faults={faults} ready={(to) => (go.current = to)} /></section>
      </div>
    </div>
  );
}

function offsetOf(text: string, { line, column }: Fault): number {
  const lines = text.split('\n');
  return lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0) + column - 1;
}

function Form({ schema, text, change }: { schema: Schema; text: string; change: (text: string) => void }) {
  const [words, setWords] = useState(route.value.query.get('key') ?? '');
  const [only, setOnly] = useState<'all' | 'set'>('all');
  const { value, isBroken } = useMemo(() => {
    const errors: ParseError[] = [];
    const tree = parseTree(text, errors, { allowTrailingComma: true });
    return { value: tree ? (getNodeValue(tree) as unknown) : undefined, isBroken: errors.length > 0 || tree?.type !== 'object' };
  }, [text]);
  const set = (path: Path, next: unknown) => {
    let at = path as JSONPath;
    let inner = next;
    const tree = parseTree(text, [], { allowTrailingComma: true });
    // A member of an object that is not there yet is written with it.
    while (inner === undefined && at.length > 1 && tree) {
      const above = findNodeAtLocation(tree, at.slice(0, -1));
      if (above && (above.children?.length ?? 0) > 1) break;
      // An empty object of the user's names means something; other empty ones do not.
      if (at.length <= 2 || at[0] === 'mcpServers' || at[0] === 'profiles') break;
      at = at.slice(0, -1);
      inner = undefined;
    }
    change(applyEdits(text, modify(text, at, inner, { formattingOptions: FORMAT })));
  };
  const root = schema;
  const members = (value ?? {}) as Record<string, unknown>;
  const find = words.toLowerCase();
  const keys = Object.entries(schema.properties ?? {}).filter(([key, one]) => (only === 'all' || members[key] !== undefined) && (!find || `${key} ${one.description ?? ''}`.toLowerCase().includes(find)) && key !== '$schema');
  const first = ['mcpServers', 'tools', 'profiles'];
  keys.sort(([one], [other]) => Number(first.includes(other)) - Number(first.includes(one)) || (first.includes(one) ? first.indexOf(one) - first.indexOf(other) : 0));
  return (
    <section class="side-form" aria-label="Form" tabIndex={-1}>
      <div class="filters">
        <label>Find a key <input type="search" value={words} onInput={({ currentTarget }) => setWords(currentTarget.value)} /></label>
        <label class="check"><input type="checkbox" checked={only === 'set'} onChange={({ currentTarget }) => setOnly(currentTarget.checked ? 'set' : 'all')} /> Only keys that are set</label>
      </div>
      {isBroken
        ? <p class="warn">The text is not valid JSON at the moment. The form is here again when it is.</p>
        : keys.map(([key, one]) => <Field key={key} schema={one} root={root} name={key} value={members[key]} path={[key]} set={set} depth={1} />)}
      {!isBroken && keys.length === 0 && <p class="faint">No key is like this.</p>}
    </section>
  );
}

