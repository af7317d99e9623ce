// One tool: its definition, a form to call it, and the result as an agent gets it.
import { useMemo, useState } from 'preact/hooks';

import { failureOf, run, wordsOf, type Ran } from '../api';
import { toolsVersion } from '../live';
import { CommandLine, usePreview } from '../parts/command';
import { Field, resolve, type Path, type Schema } from '../parts/form';
import { useRead } from '../parts/read';
import { Effect, Failed } from '../parts/text';
import { route, to } from '../route';
import { counted, milliseconds } from '../words';

interface Definition {
  name: string;
  title?: string;
  description?: string;
  inputSchema?: Schema;
  annotations?: { readOnlyHint?: boolean; destructiveHint?: boolean; idempotentHint?: boolean; openWorldHint?: boolean };
}

type Content = { type: string; text?: string; data?: string; mimeType?: string; resource?: { uri?: string; text?: string }; uri?: string };
interface Result { content?: Content[]; structuredContent?: unknown; isError?: boolean; error?: unknown }

/** A copy of `value` in which the member at `path` is another one, or absent. */
export function changed(value: unknown, path: Path, next: unknown): unknown {
  const [first, ...rest] = path;
  if (first === undefined) return next;
  const now = (value ?? {}) as Record<string | number, unknown>;
  const inner = changed(now[first], rest, next);
  const copy: Record<string | number, unknown> = { ...now };
  if (inner === undefined) delete copy[first];
  else copy[first] = inner;
  return rest.length === 0 || Object.keys(copy).length || path.length === 1 ? copy : undefined;
}

export function Tool() {
  const name = route.value.rest[0] ?? '';
  const server = name.split('__')[0] ?? '';
  const { value, failure, again } = useRead<Definition>('describe', { name }, toolsVersion.value);
  return (
    <>
      <p class="above"><a href={to('search')}>Search</a> / <a href={to('servers', [server], { tab: 'tools' })}>{server}</a></p>
      <h1 class="break">{name}</h1>
      <Failed text={failure} again={again} />
      {!value && failure === undefined && <p class="faint">Reading…</p>}
      {value && <Whole key={name} name={name} definition={value} />}
    </>
  );
}

function Whole({ name, definition }: { name: string; definition: Definition }) {
  const { annotations = {}, description, inputSchema = { type: 'object' } } = definition;
  return (
    <>
      <p>{annotations.readOnlyHint ? <Effect text="read" /> : annotations.destructiveHint === false ? <Effect text="write" /> : <Effect text="destructive" />} {annotations.idempotentHint && <span class="tag">idempotent</span>} {annotations.openWorldHint === false && <span class="tag">closed world</span>}</p>
      <p class="pre about-tool">{description}</p>
      <div class="halves">
        <Call name={name} schema={inputSchema} />
        <section aria-labelledby="definition">
          <h2 id="definition">Definition</h2>
          <pre class="box" tabIndex={0} aria-label="Definition as JSON">{JSON.stringify(definition, null, 2)}</pre>
        </section>
      </div>
    </>
  );
}

function Call({ name, schema }: { name: string; schema: Schema }) {
  const [args, setArgs] = useState<Record<string, unknown>>({});
  const [written, setWritten] = useState<string>();
  const [ran, setRan] = useState<{ ran: Ran<Result>; time: number }>();
  const [failure, setFailure] = useState<string>();
  const [isRunning, setRunning] = useState(false);
  const root = useMemo(() => resolve(schema, schema), [schema]);
  const isEmpty = !Object.keys(root.properties ?? {}).length;
  let wrong = false;
  let given: unknown = args;
  if (written !== undefined) {
    try {
      given = JSON.parse(written);
    } catch {
      wrong = true;
    }
  }
  const line = usePreview('call', wrong ? undefined : { name, arguments: given });
  const start = async () => {
    setRunning(true);
    setFailure(undefined);
    const begun = performance.now();
    try {
      setRan({ ran: await run<Result>('call', { name, arguments: given }), time: performance.now() - begun });
    } catch (error) {
      setFailure(wordsOf(error));
    }
    setRunning(false);
  };
  return (
    <section aria-labelledby="call">
      <div class="title"><h2 id="call">Call it</h2>
        {!isEmpty && <label class="check"><input type="checkbox" checked={written !== undefined} onChange={({ currentTarget }) => {
          if (currentTarget.checked) setWritten(JSON.stringify(args, null, 2));
          else {
            if (!wrong && typeof given === 'object' && given !== null) setArgs(given as Record<string, unknown>);
            setWritten(undefined);
          }
        }} /> As JSON</label>}
      </div>
      <form onSubmit={(event) => { event.preventDefault(); if (!wrong && !isRunning) void start(); }}>
        {written !== undefined
          ? <label class="field">Arguments <textarea class="mono" rows={8} spellcheck={false} value={written} aria-invalid={wrong} onInput={({ currentTarget }) => setWritten(currentTarget.value)} />{wrong && <span class="bad" role="status">This is not JSON.</span>}</label>
          : isEmpty ? <p class="faint">It has no parameters.</p> : <Field schema={root} root={schema} name="" value={args} path={[]} set={(path, value) => setArgs((before) => changed(before, path, value) as Record<string, unknown>)} />}
        {line && <p class="line"><CommandLine command={line} /></p>}
        <p class="buttons"><button type="submit" class="primary" disabled={wrong || isRunning}>{isRunning ? 'Calling…' : 'Call'}</button></p>
      </form>
      <div role="status"><Failed text={failure} />{ran && <Shown result={ran.ran} time={ran.time} />}</div>
    </section>
  );
}

function Shown({ result, time }: { result: Ran<Result>; time: number }) {
  const { output } = result;
  const content = output?.content;
  const isError = output?.isError === true || result.exit !== 0;
  const failure = content ? undefined : failureOf(result);
  return (
    <section aria-labelledby="result">
      <h3 id="result">Result <span class={isError ? 'bad' : 'good'}>{isError ? 'error' : 'ok'}</span> <span class="faint">{milliseconds(time)}</span></h3>
      {failure !== undefined && <p class="bad pre">{failure}</p>}
      {content?.map((part, at) => <Part key={at} part={part} />)}
      {content && content.length === 0 && <p class="faint">No content.</p>}
      {!content && failure === undefined && <pre class="box" tabIndex={0} aria-label="Result">{output === null ? result.text : JSON.stringify(output, null, 2)}</pre>}
      {output?.structuredContent !== undefined && <details><summary>Structured content</summary><pre class="box" tabIndex={0} aria-label="Structured content">{JSON.stringify(output.structuredContent, null, 2)}</pre></details>}
      {output !== null && content && <details><summary>As the agent gets it: {counted(JSON.stringify(output).length, 'character')}</summary><pre class="box" tabIndex={0} aria-label="The whole result">{JSON.stringify(output)}</pre></details>}
    </section>
  );
}

/** The kinds of images that a browser shows without running anything in them. */
const IMAGES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];

function Part({ part }: { part: Content }) {
  if (part.type === 'text') return <pre class="box" tabIndex={0} aria-label="Text">{part.text}</pre>;
  if (part.type === 'image' && part.data && IMAGES.includes(part.mimeType ?? '') && /^[A-Za-z0-9+/=\s]+$/.test(part.data)) return <img class="result" alt="An image of the result" src={`data:${part.mimeType};base64,${part.data}`} />;
  return <pre class="box" tabIndex={0} aria-label={part.type}>{part.resource?.text ?? JSON.stringify(part, null, 2)}</pre>;
}
