// Actions that change something: a dialog shows the command first, then runs it, then shows what it said.
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

import { failureOf, follow, isGateway, preview, wordsOf, type Arguments, type Ran } from '../api';
import { readConfiguration } from '../live';
import { printableLines } from '../printable';
import { CommandLine } from './command';
import { Links } from './text';

export interface Doing {
  title: string;
  /** The word on the button that does it. */
  word: string;
  /** The command's line, if it is known; else that of the action. */
  command?: string;
  action?: string;
  args?: Arguments;
  /** Runs it in another way than by `action`. */
  perform?: () => Promise<Ran>;
  /** Text above the command. */
  body?: ComponentChildren;
  isDangerous?: boolean;
  /** Shows the output in another way than as text. */
  show?: (ran: Ran) => ComponentChildren;
  onDone?: (ran: Ran) => void;
}

const current = signal<Doing | undefined>(undefined);

/** Opens the dialog for an action. */
export function act(doing: Doing): void {
  current.value = doing;
}

export function Act({ doing, children, class: kind, disabled }: { doing: Doing; children: ComponentChildren; class?: string; disabled?: boolean }) {
  return <button type="button" class={kind ?? ''} disabled={disabled ?? false} onClick={() => act(doing)}>{children}</button>;
}

/** The one dialog of the window. */
export function ActionDialog() {
  const doing = current.value;
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (doing && !dialog.current?.open) dialog.current?.showModal();
  }, [doing]);
  return (
    <dialog ref={dialog} aria-labelledby="action-title" onClose={() => (current.value = undefined)}>
      {doing && <Content key={doing.title} doing={doing} close={() => dialog.current?.close()} />}
    </dialog>
  );
}

function Content({ doing, close }: { doing: Doing; close: () => void }) {
  const { title, word, action, args = {}, body, isDangerous, show, perform, onDone } = doing;
  const [line, setLine] = useState(doing.command);
  const [isRunning, setRunning] = useState(false);
  const [ran, setRan] = useState<Ran>();
  const [failure, setFailure] = useState<string>();
  const [notes, setNotes] = useState<string[]>([]);
  const abort = useRef(new AbortController());
  const end = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!line && action && !isGateway.value) preview(action, args).then(setLine, (error: unknown) => setFailure(wordsOf(error)));
    // A command that still runs when the dialog closes is ended.
    return () => abort.current.abort();
  }, []);
  useEffect(() => {
    if (ran) end.current?.focus();
  }, [ran]);
  const start = async () => {
    setRunning(true);
    setFailure(undefined);
    try {
      const done = await (perform ? perform() : follow(action ?? '', args, (text) => setNotes((before) => [...before, text]), abort.current.signal));
      setLine(done.command);
      setRan(done);
      readConfiguration();
      onDone?.(done);
    } catch (error) {
      setFailure(wordsOf(error));
    }
    setRunning(false);
  };
  const why = ran && failureOf(ran);
  return (
    <>
      <h2 id="action-title">{title}</h2>
      {!ran && body}
      {!isGateway.value && <p class="line">{line ? <CommandLine command={line} /> : <span class="faint">…</span>}</p>}
      <div role="status">
        {isRunning && <p class="faint">Running…</p>}
        {!ran && notes.length > 0 && <pre class="box" tabIndex={0} aria-label="Messages"><Links text={printableLines(notes.join('\n'))} /></pre>}
        {failure !== undefined && <p class="bad">{printableLines(failure)}</p>}
        {ran && <p class={why === undefined ? 'good' : 'bad'}><strong>{why === undefined ? 'Done.' : `${ran.exit === null ? 'It was ended.' : `It failed with exit code ${ran.exit}.`}`}</strong></p>}
        {why !== undefined && <p class="bad pre">{printableLines(why)}</p>}
        {ran && (show?.(ran) ?? <Said ran={ran} />)}
      </div>
      <p class="buttons">
        {/* A dangerous action is not one key away. */}
        {!ran && <button type="button" autoFocus={!isDangerous} class={isDangerous ? 'danger' : 'primary'} disabled={isRunning || failure !== undefined} onClick={start}>{word}</button>}
        <button type="button" autoFocus={isDangerous ?? false} ref={end} onClick={close}>{ran ? 'Close' : 'Cancel'}</button>
      </p>
    </>
  );
}

/** The output of a command, as text. */
export function Said({ ran }: { ran: Ran }) {
  const isFailure = ran.output !== null && typeof ran.output === 'object' && 'error' in ran.output;
  const json = ran.output === null || isFailure ? '' : JSON.stringify(ran.output, null, 2);
  const notes = ran.exit === 0 ? ran.error : '';
  const text = [ran.exit === 0 ? (ran.text ?? '') : '', notes, json === '{}' ? '' : json].map((part) => part.trim()).filter(Boolean).join('\n');
  return text ? <pre class="box" tabIndex={0} aria-label="Output"><Links text={printableLines(text)} /></pre> : null;
}
