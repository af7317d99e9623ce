// The clients of this machine: which there are, which use mcpzip, and a preview of each change.
import { useState } from 'preact/hooks';

import { failureOf, run, wordsOf, type Arguments, type Ran } from '../api';
import { act } from '../parts/action';
import { Patch } from '../parts/difference';
import { useRead } from '../parts/read';
import { Failed } from '../parts/text';

interface Client {
  client: string;
  title: string;
  installed: boolean;
  file: string;
  /** Its entries for mcpzip. */
  entries: { scope: string; file: string; entry: string; program: string; disabled: boolean }[];
  /** The servers that it starts itself. */
  servers: string[];
  /** Why its file cannot be read. */
  problem?: string;
}
interface Change { file: string; diff: string[] | string }
interface Connected { changed: boolean; diff: string[]; file: string; undo: string | null }
interface Moved { files: Change[]; servers: { name: string | null; server: string; client: string; verdict: string; reason: string | null; scope?: string }[]; warnings: string[]; undo: string | null }
interface Run { id: string; command: string; state: string; files: string[] }

export function Clients() {
  const { value, failure, again, isBusy } = useRead<{ clients: Client[] }>('clients', {});
  const runs = useRead<Run[]>('undo_list', {});
  const [busy, setBusy] = useState('');
  const [trouble, setTrouble] = useState<string>();
  const all = value?.clients;
  const sorted = [...(all ?? [])].sort((one, other) => Number(other.installed) - Number(one.installed) || one.title.localeCompare(other.title));
  const done = () => { again(); runs.again(); };
  /** Runs it without a change first, and shows what it would do. */
  const plan = async (title: string, word: string, action: string, args: Arguments) => {
    setBusy(`${action} ${args['client'] ?? ''}`);
    setTrouble(undefined);
    try {
      const ran = await run<Connected & Moved & Run>(action, { ...args, dry_run: true });
      const why = failureOf(ran);
      if (why !== undefined) throw new Error(why);
      act({ title, word, action, args, body: <Plan ran={ran} />, onDone: done, show: (after) => (after.exit === 0 ? <p>Restart the client to use it. <strong>Undo the last change</strong> reverts it.</p> : null) });
    } catch (error) {
      setTrouble(wordsOf(error));
    }
    setBusy('');
  };
  const last = runs.value?.filter(({ state }) => state !== 'undone').sort((one, other) => (one.id < other.id ? 1 : -1))[0];
  return (
    <>
      <div class="title"><h1>Clients</h1>
        <span class="buttons">
          <button type="button" onClick={() => plan('Take over the servers of all clients', 'Take over', 'migrate', {})} disabled={busy !== ''}>Take over servers…</button>
          <button type="button" onClick={() => plan('Undo the last change', 'Undo', 'undo', {})} disabled={busy !== '' || !last}>Undo the last change…</button>
        </span>
      </div>
      {last && <p class="faint">The last change: <code>mcpzip {last.command}</code></p>}
      <Failed text={trouble} />
      <Failed text={failure} again={again} />
      {!all && isBusy && <p class="faint">Looking for clients…</p>}
      {all && (
        <div class="scroll" tabIndex={0} role="region" aria-label="Clients">
          <table class="clients">
            <thead><tr><th scope="col">Client</th><th scope="col">State</th><th scope="col" class="wide">File</th><th scope="col"><span class="hidden">Actions</span></th></tr></thead>
            <tbody>
              {sorted.map(({ client, title, installed, file, entries, servers, problem }) => (
                <tr key={client}>
                  <th scope="row">{title}</th>
                  <td>
                    {problem !== undefined ? <span class="bad">{problem}</span>
                      : entries.length ? entries.map(({ scope, entry, disabled }) => <div key={`${scope}/${entry}`}><span class={disabled ? 'warn' : 'good'}>{disabled ? 'switched off' : 'connected'}</span> <span class="faint">as {entry}, {scope}</span></div>)
                        : installed ? <span class="warn">not connected</span> : <span class="faint">not found</span>}
                    {servers.length > 0 && <div class="faint">starts itself: {servers.join(', ')}</div>}
                  </td>
                  <td class="wide">{installed && <code class="break faint">{file}</code>}</td>
                  <td>
                    <span class="buttons">
                      {entries.length === 0 && <button type="button" class={installed ? 'primary' : ''} disabled={busy !== ''} onClick={() => plan(`Connect ${title}`, 'Connect', 'connect', { client })} aria-label={`Connect ${title}`}>{busy === `connect ${client}` ? 'Looking…' : 'Connect…'}</button>}
                      {entries.length > 0 && <button type="button" disabled={busy !== ''} onClick={() => plan(`Disconnect ${title}`, 'Disconnect', 'disconnect', { client })} aria-label={`Disconnect ${title}`}>{busy === `disconnect ${client}` ? 'Looking…' : 'Disconnect…'}</button>}
                      {servers.length > 0 && <button type="button" disabled={busy !== ''} onClick={() => plan(`Take over the servers of ${title}`, 'Take over', 'migrate', { client })} aria-label={`Take over the servers of ${title}`}>{busy === `migrate ${client}` ? 'Looking…' : 'Take over…'}</button>}
                    </span>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

/** The changes that an action would make. */
function Plan({ ran }: { ran: Ran<Connected & Moved & Run> }) {
  const plan = ran.output;
  if (!plan) return null;
  const changes: Change[] = plan.diff ? [{ file: plan.file, diff: plan.diff }] : (plan.files ?? []).map((file) => (typeof file === 'string' ? { file, diff: [] } : file));
  const isNothing = plan.changed === false && plan.diff?.length === 0;
  return (
    <>
      {plan.command && <p>This reverts <code>mcpzip {plan.command}</code>:</p>}
      {isNothing && <p>Nothing would change.</p>}
      {plan.servers && (
        <ul>{plan.servers.map(({ name, server, client, verdict, reason }) => <li key={`${client}/${server}`}><strong>{server}</strong> of {client} {verdict}{name && name !== server && <> as {name}</>}{reason && <span class="faint">: {reason}</span>}</li>)}</ul>
      )}
      {plan.servers?.length === 0 && <p>There are no servers to take over.</p>}
      {changes.map(({ file, diff }) => <div key={file}><p><code class="break">{file}</code></p>{diff.length > 0 && <Patch lines={Array.isArray(diff) ? diff : diff.split('\n')} label={`Changes of ${file}`} />}</div>)}
      {plan.warnings?.length ? <ul class="warn">{plan.warnings.map((text) => <li key={text}>{text}</li>)}</ul> : null}
      {ran.error.trim() && <p class="faint pre">{ran.error.trim()}</p>}
    </>
  );
}
