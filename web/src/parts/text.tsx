// Texts of servers and commands: always text, even if they contain markup.
import type { ComponentChildren } from 'preact';

import { printableLines } from '../printable';

/** A text whose web addresses are links, as that of a login. */
export function Links({ text }: { text: string }) {
  const parts = text.split(/(https?:\/\/[^\s"'<>`]+)/g);
  return <>{parts.map((part, at) => (at % 2 ? <a key={at} href={part} target="_blank" rel="noreferrer noopener">{part}</a> : part))}</>;
}

/** A text in which words between backticks are code. */
export function Prose({ text }: { text: string | undefined }) {
  const parts = (text ?? '').split(/`([^`\n]+)`/g);
  return <>{parts.map((part, at) => (at % 2 ? <code key={at}>{part}</code> : part))}</>;
}

/** A state as a dot and a word. */
export function StateMark({ state }: { state: string }) {
  return <span class="mark"><span class={`dot ${state}`} aria-hidden="true" /> {state}</span>;
}

/** The parts in a tool's signature: its name, its parameters and its `[read]`. */
export function Signature({ text, short }: { text: string; short?: boolean }) {
  const [line = '', ...rest] = text.split('\n');
  const [, name = line, parameters = '', effect = ''] = line.match(/^([^(\s]+)(\(.*\))?\s*(\[[^\]]*\])?/s) ?? [];
  return (
    <span class="signature">
      <code><strong>{name}</strong>{!short && <span class="faint">{parameters}</span>}</code> {effect && <Effect text={effect} />}
      <span class="sentence">{rest.join(' ').trim()}</span>
    </span>
  );
}

export function Effect({ text }: { text: string }) {
  const word = text.replace(/[[\]]/g, '');
  return <span class={`tag ${word.includes('destructive') ? 'bad' : word.includes('write') ? 'warn' : ''}`}>{word}</span>;
}

export function Facts({ children }: { children: ComponentChildren }) {
  return <dl class="facts">{children}</dl>;
}

export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return children === undefined || children === null || children === '' ? null : <><dt>{name}</dt><dd>{children}</dd></>;
}

export function Failed({ text, again }: { text: string | undefined; again?: () => void }) {
  return text === undefined ? null : <p class="bad pre" role="alert"><Prose text={printableLines(text)} /> {again && <button type="button" class="small" onClick={again}>Try again</button>}</p>;
}

/** Tabs that are addresses. */
export function Tabs({ label, tabs, current }: { label: string; tabs: { name: string; title: string; address: string }[]; current: string }) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(({ name, title, address }) => <a key={name} href={address} aria-current={name === current ? 'true' : undefined}>{title}</a>)}
    </nav>
  );
}
