// Adds a server: by a form, or from the registry.
import { useRef, useState } from 'preact/hooks';

import { act } from '../parts/action';
import { usePreview } from '../parts/command';
import { useRead } from '../parts/read';
import { Failed } from '../parts/text';
import { go, to } from '../route';

export function Add() {
  return (
    <>
      <p class="above"><a href={to('servers')}>Servers</a></p>
      <h1>Add a server</h1>
      <div class="halves"><ByForm /><FromRegistry /></div>
    </>
  );
}

/** The words of a command line: blanks separate them, quotes keep them. */
export function split(line: string): string[] {
  return [...line.matchAll(/"((?:\\.|[^"\\])*)"|'([^']*)'|((?:\\.|[^\s"'\\])+)/g)].map(([, double, single, bare]) => double?.replace(/\\(.)/g, '$1') ?? single ?? bare?.replace(/\\(.)/g, '$1') ?? '');
}

/** Lines of the form `NAME=VALUE` or `NAME: VALUE`. */
function pairs(text: string, sign: string): Record<string, string> {
  const lines = text.split('\n').map((line) => line.trim()).filter((line) => line.includes(sign));
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf(sign)).trim(), line.slice(line.indexOf(sign) + 1).trim()]));
}

function ByForm() {
  const [way, setWay] = useState<'command' | 'url'>('command');
  const [name, setName] = useState('');
  const [target, setTarget] = useState('');
  const [extra, setExtra] = useState('');
  const isWhole = name.trim() !== '' && target.trim() !== '';
  const more = pairs(extra, way === 'command' ? '=' : ':');
  const args = {
    name: name.trim(),
    ...(way === 'command' ? { command: split(target) } : { url: target.trim() }),
    ...(Object.keys(more).length ? { [way === 'command' ? 'env' : 'headers']: more } : {}),
  };
  const line = usePreview('add', isWhole ? args : undefined);
  return (
    <section aria-labelledby="by-form">
      <h2 id="by-form">By its command or URL</h2>
      <form onSubmit={(event) => {
        event.preventDefault();
        if (isWhole) act({ title: `Add ${args.name}`, word: 'Add', action: 'add', args, body: <p>Its entry is written to the configuration, and the server is tried.</p>, onDone: ({ exit }) => (exit === 0 || exit === 4) && go(to('servers', [args.name])) });
      }}>
        <fieldset class="choice"><legend>Kind</legend>
          <label class="check"><input type="radio" name="way" checked={way === 'command'} onChange={() => setWay('command')} /> A program on this machine</label>
          <label class="check"><input type="radio" name="way" checked={way === 'url'} onChange={() => setWay('url')} /> A remote server</label>
        </fieldset>
        <label class="field">Name <input type="text" required autocomplete="off" spellcheck={false} value={name} onInput={({ currentTarget }) => setName(currentTarget.value)} /></label>
        <label class="field">{way === 'command' ? 'Command and arguments' : 'URL'} <input type="text" inputmode={way === 'command' ? 'text' : 'url'} class="mono" required autocomplete="off" spellcheck={false} placeholder={way === 'command' ? 'npx -y @modelcontextprotocol/server-filesystem .' : 'https://example.com/mcp'} value={target} onInput={({ currentTarget }) => setTarget(currentTarget.value)} /></label>
        <label class="field">{way === 'command' ? 'Variables, as NAME=VALUE' : 'Headers, as Name: value'} <textarea rows={2} class="mono" spellcheck={false} value={extra} onInput={({ currentTarget }) => setExtra(currentTarget.value)} /></label>
        <p class="faint">Write secrets as <code>{'${NAME}'}</code>; <code>mcpzip secret set NAME</code> stores their values.</p>
        {line && <p class="line"><code>{line}</code></p>}
        <p class="buttons"><button type="submit" class="primary">Add…</button></p>
      </form>
    </section>
  );
}

interface Found { servers: { name: string; version: string; title?: string; description: string; ways: string[]; is_deprecated: boolean }[]; stale_seconds?: number | null }

function FromRegistry() {
  const [words, setWords] = useState('');
  // Enter may come before what was just typed is drawn: the field knows it already.
  const box = useRef<HTMLInputElement>(null);
  const [query, setQuery] = useState<string>();
  const { value, failure, isBusy, again } = useRead<Found>('registry', query === undefined ? undefined : { query });
  return (
    <section aria-labelledby="from-registry">
      <h2 id="from-registry">From the registry</h2>
      <form class="filters" onSubmit={(event) => { event.preventDefault(); const need = box.current?.value.trim(); if (need) setQuery(need); }}>
        <label>Part of the name <input ref={box} type="search" required value={words} onInput={({ currentTarget }) => setWords(currentTarget.value)} /></label>
        <button type="submit">Search</button>
      </form>
      <div role="status">{isBusy && query !== undefined && <p class="faint">Asking the registry…</p>}{value && value.servers.length === 0 && <p>No server has this in its name.</p>}</div>
      <Failed text={failure} again={again} />
      <ul class="plain cards">
        {value?.servers.map(({ name, version, title, description, ways, is_deprecated: isDeprecated }) => (
          <li key={name}>
            <strong class="break">{title ?? name}</strong> <span class="faint">{title && `${name}, `}{version}</span> {isDeprecated && <span class="tag bad">deprecated</span>}
            <p>{description}</p>
            <p class="buttons"><span class="faint">{ways.join(', ') || 'mcpzip cannot run it'}</span><button type="button" disabled={!ways.length} aria-label={`Add ${name}`} onClick={() => act({ title: `Add ${name}`, word: 'Add', action: 'add_from_registry', args: { name: name.split('/').at(-1) ?? name, id: name }, body: <p>The registry says where its program comes from. It is written to the configuration, and tried.</p>, onDone: ({ exit }) => (exit === 0 || exit === 4) && go(to('servers', [name.split('/').at(-1) ?? name])) })}>Add…</button></p>
          </li>
        ))}
      </ul>
    </section>
  );
}
