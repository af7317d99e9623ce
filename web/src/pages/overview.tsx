// The current state: servers, sessions, calls, approvals, and the newest events.
import { act } from '../parts/action';
import { controlAs, isGateway, may } from '../api';
import type { Numbered } from '../generated/control';
import { activity, approvals, begun, flying, isRead, servers, SPAN, status, type Server } from '../live';
import { Calls } from '../parts/calls';
import { PauseButton } from '../parts/pause';
import { Prose, StateMark } from '../parts/text';
import { to } from '../route';
import { counted, duration, moment } from '../words';

const ORDER = ['failed', 'faulty', 'connecting', 'ready', 'idle', 'elsewhere', 'disabled'];

export function Overview() {
  const all = servers.value;
  const failed = all.filter(({ state }) => state === 'failed' || state === 'faulty');
  const now = status.value;
  const tools = all.reduce((sum, server) => sum + (server.state === 'disabled' ? 0 : server.tools), 0);
  return (
    <>
      <div class="title"><h1>Overview</h1>{now && <Daemon at={Date.now() / 1000} />}</div>
      <ul class="tiles">
        <Tile address={to('servers')} value={all.length} word={all.length === 1 ? 'server' : 'servers'} note={states(all)} isKnown={isRead.value} />
        <Tile address={to('search')} value={tools} word={tools === 1 ? 'tool' : 'tools'} note="behind three meta-tools" isKnown={isRead.value} />
        <Tile address={to('overview')} value={now?.sessions.length} word={now?.sessions.length === 1 ? 'session' : 'sessions'} note={counted(flying.value.size, 'call in flight', 'calls in flight')} isKnown={now !== undefined} />
        {may('approvals.list') && <Tile address={to('approvals')} value={approvals.value.length} word={approvals.value.length === 1 ? 'call waits' : 'calls wait'} note="for your approval" isKnown={now !== undefined} tone={approvals.value.length ? 'warn' : ''} />}
      </ul>
      {failed.length > 0 && (
        <section aria-labelledby="failed">
          <h2 id="failed">Servers that failed</h2>
          <ul class="plain rows">
            {failed.slice(0, 20).map(({ name, state, reason }) => <li key={name}><a href={to('servers', [name])}>{name}</a> <StateMark state={state} /> <span class="reason"><Prose text={reason ?? 'no reason is known'} /></span></li>)}
          </ul>
          {failed.length > 20 && <p><a href={to('servers', [], { state: 'failed' })}>All {failed.length} of them</a></p>}
        </section>
      )}
      <section aria-labelledby="calls">
        <h2 id="calls">Calls <span class="faint">of the last {SPAN / 60_000} minutes, since this window opened</span></h2>
        <Calls />
      </section>
      <div class="halves">
        <section aria-labelledby="sessions">
          <h2 id="sessions">Sessions</h2>
          {now && now.sessions.length === 0 && <p class="faint">No client is attached. {may('clients') && <a href={to('clients')}>Connect one</a>}</p>}
          <ul class="plain rows">
            {now?.sessions.map(({ id, process, directory, since, generation, client, identity }) => isGateway.value
              ? <li key={id}><span class="break">{client ?? 'a client'}</span> <span class="faint">of {identity ?? 'someone'}, for {duration(Date.now() / 1000 - since)}</span></li>
              : (
              <li key={id}><code class="break">{directory}</code> <span class="faint">process {process}, for {duration(Date.now() / 1000 - since)}{generation > 0 && `, after ${counted(generation, 'earlier daemon')}`}</span></li>
            ))}
          </ul>
          {now?.http && <p>{now.http.url ? <>HTTP clients: <code class="break">{now.http.url}</code></> : <span class="bad">HTTP clients are not served: {now.http.reason}</span>}</p>}
        </section>
        <section aria-labelledby="events">
          <h2 id="events">Events</h2>
          {activity.value.length === 0 && <p class="faint">Nothing has happened yet.</p>}
          <ol class="plain rows events">
            {condensed(activity.value, 30).map(({ event, times }) => <Event key={event.number} event={event} times={times} />)}
          </ol>
        </section>
      </div>
    </>
  );
}

function states(all: Server[]): string {
  const counts = new Map<string, number>();
  for (const { state } of all) counts.set(state, (counts.get(state) ?? 0) + 1);
  return ORDER.filter((state) => counts.has(state)).map((state) => `${counts.get(state)} ${state}`).join(', ') || 'none is configured';
}

function Tile({ address, value, word, note, isKnown, tone = '' }: { address: string; value: number | undefined; word: string; note: string; isKnown: boolean; tone?: string }) {
  return (
    <li class={`tile ${tone}`}>
      <a href={address}><strong>{isKnown && value !== undefined ? value.toLocaleString('en') : '–'}</strong> {word}</a>
      <span class="faint">{isKnown ? note : ' '}</span>
    </li>
  );
}

/** The state of the daemon `at` a time in seconds since 1970, and its buttons. */
function Daemon({ at }: { at: number }) {
  const now = status.value;
  if (!now) return null;
  const order = (title: string, word: string, method: 'daemon.reload' | 'daemon.restart', body: string) => {
    const command = `mcpzip ${method.replace('.', ' ')}`;
    act({ title, word, command, perform: () => controlAs(command, method, {}), body: <p>{body}</p> });
  };
  return (
    <span class="buttons">
      <span class="faint">up {duration(at - begun.value)}</span>
      {may('daemon.pause') && <PauseButton />}
      {may('daemon.reload') && <button type="button" onClick={() => order('Read the configuration again', 'Reload', 'daemon.reload', 'All sessions read their configuration again.')}>Reload</button>}
      {may('daemon.restart') && <button type="button" onClick={() => order('Restart the daemon', 'Restart', 'daemon.restart', 'Calls in progress have three seconds to end. Sessions go on in the new daemon. This window may need a new link.')}>Restart</button>}
    </span>
  );
}

function Server({ name }: { name: string }) {
  return <a href={to('servers', [name])}>{name}</a>;
}

/** The newest events. A failure that repeats stands once, and a start whose outcome is known is left out. */
export function condensed(events: Numbered[], most: number): { event: Numbered; times: number }[] {
  const shown: { event: Numbered; times: number }[] = [];
  const failures = new Map<string, { times: number }>();
  const known = new Set<string>();
  for (const event of events) {
    if (shown.length >= most) break;
    if (event.kind === 'server_starting' && known.has(event.server)) continue;
    if (event.kind === 'server_failed' || event.kind === 'server_ready') known.add(event.server);
    const key = event.kind === 'server_failed' ? `${event.server} ${event.reason}` : event.kind === 'login_wanted' ? event.server : undefined;
    const before = key === undefined ? undefined : failures.get(key);
    if (before) before.times += 1;
    else {
      const one = { event, times: 1 };
      if (key !== undefined) failures.set(key, one);
      shown.push(one);
    }
  }
  return shown;
}

export function Event({ event, times }: { event: Numbered; times: number }) {
  return <li><time class="faint" dateTime={new Date(event.time).toISOString()}>{moment(event.time)}</time> <Words event={event} /> {times > 1 && <span class="faint">({times} times)</span>}</li>;
}

function Words({ event }: { event: Numbered }) {
  switch (event.kind) {
    case 'server_starting':
      return <span><Server name={event.server} /> starts</span>;
    case 'server_ready':
      return <span><Server name={event.server} /> <span class="good">is ready</span></span>;
    case 'server_failed':
      return <span><Server name={event.server} /> <span class="bad">failed</span>: <Prose text={event.reason} /></span>;
    case 'server_stopped':
      return <span><Server name={event.server} /> stopped</span>;
    case 'tools_changed':
      return <span>the tools of <Server name={event.server} /> changed</span>;
    case 'login_wanted':
      return <span><Server name={event.server} /> <span class="warn">needs a login</span></span>;
    case 'approval_wanted':
      return <span>{may('approvals.list') ? <a href={to('approvals')}>a call of {event.tool}</a> : <>a call of {event.tool}</>} of {event.server} <span class="warn">waits</span></span>;
    case 'session_opened':
      return <span>a session began in <code class="break">{event.directory}</code>, process {event.process}</span>;
    case 'session_closed':
      return <span>a session ended</span>;
    case 'ordered':
      return <span><code>{event.order}</code>{event.server && <> of {event.server}</>}{event.process ? `, by process ${event.process}` : ''}</span>;
    case 'paused':
      return <span class="warn">mcpzip was paused</span>;
    case 'resumed':
      return <span class="good">mcpzip was resumed</span>;
    case 'http_listening':
      return <span>HTTP clients are served at <code class="break">{event.url}</code></span>;
    case 'http_failed':
      return <span class="bad">HTTP clients are not served: {event.reason}</span>;
    case 'http_stopped':
      return <span>HTTP clients are no longer served</span>;
    default:
      // A kind of a newer daemon.
      return <span>{(event as { kind: string }).kind}</span>;
  }
}
