// The state that changes by itself: what the daemon says of its servers, sessions, calls and approvals. Events change it, and where an
// event says too little the state is asked for again, once for many events. Nothing is asked for at intervals.
import { batch, computed, signal } from '@preact/signals';

import { control, hasEnded, read } from './api';
import type { Numbered, Question, ServerState, Status } from './generated/control';

/** `connecting` at first, `lost` if the daemon does not answer. */
export const connection = signal<'connecting' | 'live' | 'lost'>('connecting');
export const status = signal<Status | undefined>(undefined);
export const approvals = signal<Question[]>([]);

/** The events that are not about calls, newest first. */
export const activity = signal<Numbered[]>([]);

/** A server as `mcpzip status` and `mcpzip list` know it. */
interface Configured {
  state: string;
  reason?: string;
  tools: number;
  software?: string;
  type?: string;
  target?: string;
  description?: string;
}

/** A server of the configuration, with its state in the daemon. */
export interface Server extends Configured {
  name: string;
  connections: number;
  sessions: string[];
  sharing?: string;
}

/** A call that this window heard of. */
export interface Call {
  call: string;
  server: string;
  tool: string;
  began: number;
  outcome?: string;
  milliseconds?: number;
}

const configured = signal<Map<string, Configured>>(new Map());
const running = signal<Map<string, ServerState>>(new Map());

/** The reason why the configuration cannot be read, if it cannot. */
export const fault = signal<string | undefined>(undefined);
/** Whether the configuration has been read once. */
export const isRead = signal(false);

/** Calls in flight and of the last 15 minutes, oldest first. */
export const calls = signal<Call[]>([]);
export const SPAN = 15 * 60_000;

/** Rises with each change of some server's tools. */
export const toolsVersion = signal(0);

/** Servers that need a login. */
export const loginsWanted = signal<ReadonlySet<string>>(new Set());

export const servers = computed<Server[]>(() => {
  const all = new Map<string, Server>();
  for (const [name, one] of configured.value) all.set(name, { name, connections: 0, sessions: [], ...one });
  for (const [name, one] of running.value) {
    const known = all.get(name);
    const reason = one.reason ?? (one.state === 'failed' ? known?.reason : undefined);
    // A server that is off in the file is not offered by any session that reads it.
    const state = known?.state === 'disabled' ? 'disabled' : one.state;
    const { reason: _, ...rest } = known ?? { name, tools: 0 };
    all.set(name, {
      ...rest,
      name,
      state,
      ...(reason ? { reason } : {}),
      tools: one.tools || rest.tools,
      connections: one.connections,
      sessions: one.sessions,
      ...(one.sharing ? { sharing: one.sharing } : {}),
    });
  }
  return [...all.values()].sort((one, other) => one.name.localeCompare(other.name));
});

let stream: EventSource | undefined;
let delay = 0;
let last = -1;

/** Begins to listen. */
export function start(): void {
  listen();
  document.addEventListener('visibilitychange', () => {
    // A decision of another window sends no event.
    if (document.visibilityState === 'visible' && connection.value === 'live') refreshApprovals();
  });
  // What leaves the span of the chart.
  setInterval(() => {
    const first = calls.value[0];
    if (first?.outcome !== undefined && first.began < Date.now() - SPAN) calls.value = recent(calls.value);
  }, 10_000);
}

function listen(): void {
  // The numbers of another daemon say nothing, so what was missed is asked for, and not resumed.
  stream = new EventSource('api/events');
  stream.onopen = () => {
    delay = 0;
    void reload();
  };
  stream.onmessage = (message: MessageEvent<string>) => hear(JSON.parse(message.data) as Numbered);
  stream.addEventListener('lagged', () => void reload());
  stream.addEventListener('incomplete', () => void reload());
  stream.onerror = () => {
    stream?.close();
    void lose();
  };
}

async function lose(): Promise<void> {
  if (connection.value === 'live') connection.value = 'lost';
  // A stream does not say why it was refused; a request does.
  await control('daemon.status', {}).catch(() => (connection.value = 'lost'));
  if (hasEnded.value) return;
  delay = Math.min(delay * 2 || 500, 8_000);
  setTimeout(listen, delay);
}

/** Asks for everything. */
async function reload(): Promise<void> {
  try {
    const [now, kept, shown, pending] = await Promise.all([
      control('daemon.status', {}),
      control('events.list', {}),
      control('servers.list', {}),
      control('approvals.list', {}),
    ]);
    batch(() => {
      connection.value = 'live';
      status.value = now;
      running.value = byName(shown.servers);
      approvals.value = waiting(pending.approvals);
      activity.value = kept.events.filter((event) => !isOfCall(event)).reverse().slice(0, KEPT);
      last = kept.next - 1;
      calls.value = calls.value.filter(({ outcome }) => outcome !== undefined);
    });
  } catch {
    // The stream ends as well, and says so.
  }
  readConfiguration();
}

const KEPT = 1000;
const isOfCall = ({ kind }: Numbered) => kind === 'call_began' || kind === 'call_ended';
const byName = (list: ServerState[]) => new Map(list.map((one) => [one.server, one]));
const waiting = (list: Question[]) => list.filter(({ decision }) => !decision);

function recent(list: Call[]): Call[] {
  const since = Date.now() - SPAN;
  return list.filter(({ began, outcome }) => outcome === undefined || began > since);
}

function hear(event: Numbered): void {
  if (event.number <= last && !isOfCall(event)) return;
  last = Math.max(last, event.number);
  if (isOfCall(event)) {
    hearCall(event);
    if (approvals.value.length) refreshApprovals();
    return;
  }
  batch(() => {
    activity.value = [event, ...activity.value].slice(0, KEPT);
    hearOther(event);
  });
}

function hearCall(event: Numbered): void {
  if (event.kind === 'call_began') {
    const { call, server, tool, time } = event;
    calls.value = [...calls.value, { call: String(call), server, tool, began: time }];
  } else if (event.kind === 'call_ended') {
    const { call, server, tool, outcome, milliseconds, time } = event;
    const ended: Call = { call: String(call), server, tool, began: time - milliseconds, outcome, milliseconds };
    const rest = calls.value.filter((one) => one.call !== ended.call || one.outcome !== undefined);
    calls.value = recent([...rest, ended]);
  }
}

function hearOther(event: Numbered): void {
  switch (event.kind) {
    case 'server_starting':
      return setState(event.server, 'connecting');
    case 'server_ready':
      loginsWanted.value = new Set([...loginsWanted.value].filter((name) => name !== event.server));
      return setState(event.server, 'ready');
    case 'server_failed':
      return setState(event.server, 'failed', event.reason);
    case 'server_stopped':
      return setState(event.server, 'idle');
    case 'tools_changed':
      toolsVersion.value += 1;
      return refreshServers();
    case 'login_wanted':
      loginsWanted.value = new Set([...loginsWanted.value, event.server]);
      return;
    case 'approval_wanted':
      return refreshApprovals();
    case 'session_opened':
    case 'session_closed':
      refreshStatus();
      return refreshServers();
    case 'ordered':
      if (event.order === 'daemon.reload') readConfiguration();
      // An action of some window, which begins now.
      if (event.order.startsWith('ui.')) refreshAfterAction();
      return refreshServers();
    default:
      return refreshStatus();
  }
}

function setState(server: string, state: string, reason?: string): void {
  const known = running.value.get(server) ?? { server, state, tools: 0, connections: 0, sessions: [] };
  running.value = new Map(running.value).set(server, { ...known, state, reason: reason ?? null });
  refreshServers();
}

/** Runs once for many requests within the time: at its end. */
function once(wait: number, what: () => Promise<void>): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  return () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      // The stream tells of a daemon that is gone.
      what().catch(() => undefined);
    }, wait);
  };
}

const refreshServers = once(400, async () => {
  const { servers: shown } = await control('servers.list', {});
  running.value = byName(shown);
  // Another program has added one.
  if (shown.some(({ server }) => !configured.value.has(server))) readConfiguration();
});
const refreshStatus = once(200, async () => {
  status.value = await control('daemon.status', {});
});
export const refreshApprovals = once(100, async () => {
  approvals.value = waiting((await control('approvals.list', {})).approvals);
});

const refreshAfterAction = once(1500, async () => {
  refreshApprovals();
  readConfiguration();
  toolsVersion.value += 1;
});

interface Listed { servers: { name: string; state: string; type?: string; target?: string; description?: string | null }[] }
interface Told { servers: { name: string; state: string; reason?: string; last_failure?: { reason: string }; tools: number; software?: string }[] }

/** Reads the servers of the configuration again. */
export const readConfiguration = once(50, async () => {
  try {
    const [listed, told] = await Promise.all([read<Listed>('list'), read<Told>('status')]);
    const found = new Map<string, Configured>();
    for (const { name, state, type, target, description } of listed.servers) {
      found.set(name, { state, tools: 0, ...(type ? { type } : {}), ...(target ? { target } : {}), ...(description ? { description } : {}) });
    }
    for (const { name, state, reason, last_failure: failure, tools, software } of told.servers) {
      const why = reason ?? failure?.reason;
      found.set(name, { ...found.get(name), state: failure && state === 'idle' ? 'failed' : state, tools, ...(software ? { software } : {}), ...(why ? { reason: why } : {}) });
    }
    batch(() => {
      configured.value = found;
      fault.value = undefined;
      isRead.value = true;
    });
  } catch (error) {
    fault.value = error instanceof Error ? error.message : String(error);
    isRead.value = true;
  }
});
