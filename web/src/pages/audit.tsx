// The audit log: filtered, followed and exported.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

import { isGateway, may } from '../api';
import { activity, heard } from '../live';
import { List } from '../parts/list';
import { CommandLine } from '../parts/command';
import { useRead, useSlow } from '../parts/read';
import { Fact, Facts, Failed } from '../parts/text';
import { replace, route, to } from '../route';
import { isNarrow } from '../theme';
import { count, counted, milliseconds, moment } from '../words';

interface Line {
  time: string;
  kind: string;
  outcome: string;
  session?: string;
  client?: string;
  version?: string;
  identity?: string;
  server?: string;
  tool?: string;
  ms?: number;
  rule?: string;
  detail?: string;
  n?: number;
  prev?: string;
  [key: string]: unknown;
}

/** The last lines that are read. */
const LIMIT = 20_000;

const SINCE: [string, string][] = [['', 'today'], ['7d', '7 days'], ['30d', '30 days'], ['365d', 'a year']];

export function Audit() {
  const { query } = route.value;
  const get = (name: string) => query.get(name) ?? '';
  const [words, setWords] = useState(get('q'));
  const [isFollowed, setFollowed] = useState(true);
  const [open, setOpen] = useState<Line>();
  const filter = { since: get('since'), kind: get('kind'), outcome: get('outcome'), server: get('server'), q: words };
  const set = (change: Partial<typeof filter>) => replace(to('audit', [], { ...filter, ...change }));
  // The log is read again after events, at most once a second.
  const version = useSlow(isFollowed ? (activity.value[0]?.number ?? 0) + [...heard.value.values()].reduce((sum, one) => sum + one, 0) : 0, 1000);
  const args: Record<string, unknown> = { limit: LIMIT };
  if (filter.since) args['since'] = filter.since;
  if (filter.server) args['server'] = filter.server;
  if (filter.outcome === 'denied' || filter.outcome === 'errors') args[filter.outcome] = true;
  const { value, failure, again, isBusy } = useRead<Line[]>('audit', args, version);
  const kinds = useMemo(() => [...new Set((value ?? []).map(({ kind }) => kind))].sort(), [value]);
  const servers = useMemo(() => [...new Set([...(value ?? []).flatMap(({ server }) => server ?? []), ...(filter.server ? [filter.server] : [])])].sort(), [value, filter.server]);
  const shown = useMemo(() => {
    const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
    const list = (value ?? []).filter((line) => (!filter.kind || line.kind === filter.kind) && wanted.every((word) => JSON.stringify(line).toLowerCase().includes(word)));
    // Lines of several sessions are chains of their own.
    return list.map((line, at) => ({ line, at })).sort((one, other) => (one.line.time < other.line.time ? 1 : one.line.time > other.line.time ? -1 : other.at - one.at)).map(({ line }) => line);
  }, [value, words, filter.kind]);
  const command = `mcpzip audit${filter.since ? ` --since ${filter.since}` : ''}${filter.server ? ` --server ${filter.server}` : ''}${filter.outcome ? ` --${filter.outcome}` : ''}`;
  const select = (label: string, name: 'since' | 'kind' | 'outcome' | 'server', choices: [string, string][]) => (
    <label>{label} <select value={filter[name]} onChange={({ currentTarget }) => set({ [name]: currentTarget.value })}>{choices.map(([key, title]) => <option key={key} value={key}>{title}</option>)}</select></label>
  );
  return (
    <div class="page-list">
      <div class="title"><h1>Audit</h1>
        <span class="buttons">
          <button type="button" disabled={!shown.length} onClick={() => save('audit.csv', 'text/csv', csv(shown))}>Export CSV</button>
          <button type="button" disabled={!shown.length} onClick={() => save('audit.jsonl', 'application/jsonl', shown.map((line) => `${JSON.stringify(line)}\n`).join(''))}>Export JSON</button>
        </span>
      </div>
      <div class="filters">
        <label>Find <input type="search" value={words} onInput={({ currentTarget }) => { setWords(currentTarget.value); set({ q: currentTarget.value }); }} /></label>
        {select('Since', 'since', SINCE)}
        {select('Kind', 'kind', [['', 'all'], ...[...new Set([...kinds, ...(filter.kind ? [filter.kind] : [])])].map((kind): [string, string] => [kind, kind])])}
        {select('Outcome', 'outcome', [['', 'all'], ['denied', 'refused'], ['errors', 'failures']])}
        {select('Server', 'server', [['', 'all'], ...servers.map((server): [string, string] => [server, server])])}
        <label class="check"><input type="checkbox" checked={isFollowed} onChange={({ currentTarget }) => setFollowed(currentTarget.checked)} /> Follow</label>
        <button type="button" onClick={again} disabled={isBusy}>Read again</button>
        <span class="faint" role="status">{value && (shown.length === value.length ? counted(value.length, 'line') : `${count(shown.length)} of ${counted(value.length, 'line')}`)}{value?.length === LIMIT && ', the last ones'}</span>
      </div>
      {!isGateway.value && <p class="line"><CommandLine command={`${command}${isFollowed ? ' --follow' : ''}`} /></p>}
      {/there is no audit log/.test(failure ?? '') ? <p>No audit log is written. {may('config_write') && <><code>"audit": {'{}'}</code> in the <a href={to('configuration', [], { key: 'audit' })}>configuration</a> turns it on.</>}</p> : <Failed text={failure} again={again} />}
      <List
        items={shown} label="Lines of the audit log, newest first" columns="of-audit" height={isNarrow.value ? 60 : 30} open={setOpen}
        keyOf={(line) => `${line.time} ${line.n} ${line.prev?.slice(0, 8)} ${line.session ?? ''} ${line.tool ?? ''} ${line.ms ?? ''}`}
        header={<><span>Time</span><span>Kind</span><span>Outcome</span><span>Server and tool</span><span>Client</span><span class="number">ms</span><span>Detail</span></>}
        row={(line) => (
          <>
            <span class="faint cut">{moment(Date.parse(line.time))}</span><span>{line.kind}</span><Outcome text={line.outcome} />
            <span class="cut">{line.server}{line.tool && <> <code>{line.tool}</code></>}</span><span class="cut wide">{line.identity ?? line.client}</span>
            <span class="number wide">{line.ms === undefined ? '' : Math.round(line.ms)}</span><span class="cut faint wide">{line.detail ?? line.rule}</span>
          </>
        )}
        empty={value ? 'No line is like this.' : failure === undefined ? 'Reading…' : ''}
      />
      <Detail line={open} close={() => setOpen(undefined)} />
    </div>
  );
}

function Outcome({ text }: { text: string }) {
  return <span class={text === 'ok' ? 'good' : text === 'refused' || text === 'failed' || text === 'error' ? 'bad' : 'warn'}>{text}</span>;
}

function Detail({ line, close }: { line: Line | undefined; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (line) dialog.current?.showModal();
  }, [line]);
  return (
    <dialog ref={dialog} aria-labelledby="audit-line" onClose={close}>
      {line && (
        <>
          <h2 id="audit-line">{line.kind} <Outcome text={line.outcome} /></h2>
          <Facts>{Object.entries(line).map(([key, value]) => <Fact key={key} name={key}>{key === 'ms' ? milliseconds(Number(value)) : <code class="break">{typeof value === 'object' ? JSON.stringify(value) : String(value)}</code>}</Fact>)}</Facts>
          <p class="buttons"><button type="button" onClick={() => dialog.current?.close()}>Close</button></p>
        </>
      )}
    </dialog>
  );
}

const COLUMNS = ['time', 'kind', 'outcome', 'session', 'client', 'version', 'identity', 'directory', 'profile', 'server', 'tool', 'ms', 'sent', 'received', 'rule', 'arguments', 'detail'];

/** A table for a spreadsheet. A cell that a spreadsheet would take for a formula begins with an apostrophe. */
export function csv(lines: Line[]): string {
  const cell = (value: unknown) => {
    const text = value === undefined ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value);
    const safe = /^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return [COLUMNS.join(','), ...lines.map((line) => COLUMNS.map((column) => cell(line[column])).join(','))].join('\r\n');
}

function save(name: string, type: string, text: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
