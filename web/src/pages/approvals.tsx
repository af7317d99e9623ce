// Decisions that wait for a person: calls that a rule asks about, and tools that differ from the approved ones.
import { may } from '../api';
import { approvals, refreshApprovals, toolsVersion } from '../live';
import type { Question } from '../generated/control';
import { act } from '../parts/action';
import { Shown } from '../parts/difference';
import { useRead } from '../parts/read';
import { Failed } from '../parts/text';
import { printable, printableLines } from '../printable';
import { to } from '../route';
import { counted, moment } from '../words';

export function Approvals() {
  return (
    <>
      <h1>Approvals</h1>
      <Calls />
      <Differences />
    </>
  );
}

function Calls() {
  const all = approvals.value;
  return (
    <section aria-labelledby="waiting">
      <h2 id="waiting">Calls that wait <span class="faint" role="status">{all.length || 'none'}</span></h2>
      {all.length === 0 && <p class="faint">A rule in <code>tools.ask</code> makes calls wait here, if their client cannot ask you itself.</p>}
      <ul class="plain cards">{all.map((one) => <Waiting key={one.id} question={one} />)}</ul>
    </section>
  );
}

function Waiting({ question: one }: { question: Question }) {
  const { id, server, question, client, directory, person, rule, asked, profiles = [] } = one;
  const tool = printable(one.tool);
  const whole = <pre class="box" tabIndex={0} aria-label="The question">{printableLines(question)}</pre>;
  const decide = (action: 'allow' | 'deny', word: string) => act({
    title: `${word} this call?`, word, isDangerous: action === 'deny', body: <>{whole}<p class="faint">{action === 'allow' ? 'It is made once, with exactly these arguments.' : 'The agent learns that you refused.'}</p></>,
    action, args: { id }, onDone: refreshApprovals,
  });
  return (
    <li>
      <div class="title"><h3><a href={to('servers', [server])}>{server}</a> <code>{tool}</code></h3>
        <span class="buttons">
          <button type="button" class="primary" onClick={() => decide('allow', 'Allow')} aria-label={`Allow ${tool}, ${id}`}>Allow…</button>
          <button type="button" onClick={() => decide('deny', 'Deny')} aria-label={`Deny ${tool}, ${id}`}>Deny…</button>
        </span>
      </div>
      {whole}
      <p class="faint">
        {printable([client && `asked by ${client}`, person && `for ${person}`, directory && `in ${directory}`, rule && `by the rule ${rule}`, profiles.length && `under ${profiles.join(', ')}`, `at ${moment(asked * 1000)}`, `id ${id}`].filter(Boolean).join(', '))}
      </p>
    </li>
  );
}

interface Differing {
  server: string;
  tool?: string;
  entry?: string;
  change: string;
  from?: string | null;
  /** All lines of the difference, as `mcpzip approve` shows them. */
  lines?: string[];
  /** The text of a script, or the place of the files of a skill. */
  files?: string[];
  /** Findings of the scanner. */
  findings?: { kind: string; text: string }[];
  /** Why it cannot be decided on. */
  reason?: string;
  digest?: string;
  rejected?: boolean;
  approve_digest?: string;
}

function Differences() {
  const { value, failure, again, isBusy } = useRead<Differing[]>('differences', {}, toolsVersion.value);
  const servers = new Map<string, Differing[]>();
  for (const one of value ?? []) servers.set(one.server, [...(servers.get(one.server) ?? []), one]);
  return (
    <section aria-labelledby="changed">
      <div class="title"><h2 id="changed">Changed tools <span class="faint" role="status">{value ? value.length || 'none' : ''}</span></h2><button type="button" onClick={again} disabled={isBusy}>Look again</button></div>
      <Failed text={failure} again={again} />
      {isBusy && !value && <p class="faint">Reading…</p>}
      {value?.length === 0 && <p class="faint">Nothing differs from what was approved or first seen. <code>"trust": "pin"</code> in a server’s entry holds changes back until you approve them.</p>}
      {[...servers].map(([server, all]) => <OfServer key={server} server={server} all={all} again={again} isBusy={isBusy} />)}
    </section>
  );
}

/** Everything that a decision is about. */
function Whole({ one, label }: { one: Differing; label: string }) {
  const { lines = [], files = [], findings = [], reason } = one;
  return (
    <>
      {reason && <p class="bad pre">{printable(reason)}</p>}
      {lines.length > 0 && <Shown lines={lines} label={`${label} ${nameOf(one)}`} />}
      {files.length > 0 && <pre class="box" tabIndex={0} role="region" aria-label={`What ${nameOf(one)} runs or reads`}>{files.join('\n')}</pre>}
      {findings.map(({ kind, text }, at) => <p key={at} class="warn pre">The scanner found {kind}: “{printable(text)}”</p>)}
    </>
  );
}

/** The name of the thing that differs. */
const nameOf = ({ tool, entry, change }: Differing): string => printable(tool ?? entry ?? change.replaceAll('_', ' '));

function OfServer({ server, all, again, isBusy }: { server: string; all: Differing[]; again: () => void; isBusy: boolean }) {
  // An agent has added it, and nothing of it is known before it is started.
  const isAdded = all.some(({ change, tool, entry }) => change === 'added' && !tool && !entry);
  const digest = all.find((one) => one.approve_digest)?.approve_digest;
  const decide = (action: 'approve' | 'reject', tools?: string[]) => {
    const word = action === 'approve' ? 'Approve' : 'Reject';
    const shown = tools ? all.filter(({ tool, entry }) => tools.includes(tool ?? entry ?? '')) : isAdded ? all : [];
    const what = isAdded ? `the start of ${server}` : tools ? `${printable(tools.join(', '))} of ${server}` : counted(all.length, `difference of ${server}`, `differences of ${server}`);
    act({
      title: `${word} ${what}?`, word, isDangerous: action === 'reject',
      body: (
        <>
          <p>{isAdded ? 'It is started, and its tools are listed.' : action === 'approve' ? 'Agents see this from now on. Read the texts before: they are written by the server, for agents.' : 'Agents do not see this.'}</p>
          {shown.map((one) => <Whole key={`${one.tool}/${one.entry}/${one.change}`} one={one} label="What is decided on of" />)}
        </>
      ),
      action, args: { server, ...(tools ? { tools } : {}), ...(digest ? { digest } : {}) },
      onDone: again,
    });
  };
  return (
    <div class="card">
      <div class="title"><h3><a href={to('servers', [server])}>{server}</a> <span class="faint">{counted(all.length, 'difference')}</span></h3>
        {digest && <span class="buttons">
          <button type="button" class="primary" disabled={isBusy} onClick={() => decide('approve')} aria-label={`Approve all of ${server}`}>{isAdded ? 'Approve…' : 'Approve all…'}</button>
          {isAdded
            ? may('remove') && <button type="button" class="danger" aria-label={`Remove ${server}`} onClick={() => act({ title: `Remove ${server}`, word: 'Remove', action: 'remove', args: { server }, isDangerous: true, onDone: again })}>Remove…</button>
            : <button type="button" disabled={isBusy} onClick={() => decide('reject')} aria-label={`Reject all of ${server}`}>Reject all…</button>}
        </span>}
      </div>
      {isAdded && <p class="warn">An agent has added this server. It is not started before you approve it.</p>}
      {all.map((one) => {
        const name = one.tool ?? one.entry;
        const title = nameOf(one);
        return (
          <article key={`${one.tool}/${one.entry}/${one.change}`} aria-label={title}>
            <div class="title"><h4><code>{title}</code> <span class={`tag ${one.change === 'removed' ? '' : 'warn'}`}>{one.change.replaceAll('_', ' ')}</span>{one.from && <span class="faint"> it was probably called {printable(one.from)}</span>}{one.rejected && <span class="tag bad">rejected before</span>}</h4>
              {name && digest && <span class="buttons"><button type="button" class="small" disabled={isBusy} onClick={() => decide('approve', [name])} aria-label={`Approve ${title} of ${server}`}>Approve…</button><button type="button" class="small" disabled={isBusy} onClick={() => decide('reject', [name])} aria-label={`Reject ${title} of ${server}`}>Reject…</button></span>}
            </div>
            <Whole one={one} label="Difference of" />
          </article>
        );
      })}
    </div>
  );
}
