// The live state: the daemon's servers, sessions, calls and approvals. Events change it, and where an
// event says too little the state is asked for again, once for many events. Nothing is asked for at intervals.
import { batch, computed, signal } from '@preact/signals';

import { control, hasEnded, may, offered, read } from './api';
import type { Kept, Numbered, Question, ServerState, Status } from './generated/control';

/** `connecting` at first, `lost` if the daemon does not answer. */
export const connection = signal<'connecting' | 'live' | 'lost'>('connecting');
export const status = signal<Status | undefined>(undefined);
/** When the daemon began, in seconds since 1970. */
export const begun = computed(() => Date.now() / 1000 - (status.value?.uptime ?? 0));
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

/** A call that this window has received an event of. */
export interface Call {
  /** The number of its last event. */
  number: number;
  call: string;
  server: string;
  tool: string;
  began: number;
  outcome?: string;
  milliseconds?: number;
}

const configured = signal<Map<string, Configured>>(new Map());
const running = signal<Map<string, ServerState>>(new Map());

/** Why the configuration cannot be read, if it cannot. */
export const fault = signal<string | undefined>(undefined);
/** Whether the configuration has been read once. */
export const isRead = signal(false);

/** The calls that have not ended, by their ids. */
export const flying = signal<ReadonlyMap<string, Call>>(new Map());
/** The calls that ended last, newest first. */
export const ended = signal<readonly Call[]>([]);
/** Calls counted by when they began, oldest first: so many calls cost no more than few. */
export const slots = signal<readonly Slot[]>([]);

/** The calls that began in a stretch of time. */
export interface Slot {
  /** The time at which it begins. */
  at: number;
  good: number;
  /** Those without success. */
  bad: number;
}
/** Milliseconds of a slot, and of the time that is kept. */
export const SLOT = 5_000;
export const SPAN = 15 * 60_000;
const MOST_ENDED = 200;

/** The number of calls that began or ended, by server. */
export const heard = signal<ReadonlyMap<string, number>>(new Map());

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

let last = -1;

/** A message of the window that listens to the others: an event, or that the stream began or ended. */
type Told = Numbered | 'began' | 'lost';

/** Begins to listen. A browser has six connections to a host, so one of several windows listens, and tells the others. */
export function start(): void {
  const name = `events of ${location.pathname}`;
  const others = new BroadcastChannel(name);
  others.onmessage = ({ data }: MessageEvent<Told>) => {
    if (data === 'began') void reload();
    else if (data === 'lost') void lose();
    else hear(data);
  };
  // The lock is free when the window that listened is closed.
  void navigator.locks.request(name, () => listen((told) => others.postMessage(told)));
  void reload();
  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible' && connection.value === 'live') refreshApprovals();
  });
}

/** Listens until the session ends. */
async function listen(tell: (told: Told) => void): Promise<void> {
  for (let delay = 500; !hasEnded.value; delay = Math.min(delay * 2, 8_000)) {
    // The numbers of another daemon say nothing, so the state is read again, and the old stream is not resumed.
    const hasBegun = await new Promise<boolean>((resolve) => {
      let isOpen = false;
      let isRenewed = false;
      const stream = new EventSource('api/events');
      const begin = () => {
        isOpen = true;
        tell('began');
        void reload();
      };
      stream.onopen = () => {
        if (!isRenewed) return begin();
        isRenewed = false;
        // Another stream of the same visit, unless the person may use other things now.
        void control('ui.offered', {}).then((now) => JSON.stringify(now) !== JSON.stringify(offered.value) && begin(), () => undefined);
      };
      // A gateway asks now and then again who looks at the page. The browser opens the next stream at once.
      stream.addEventListener('renewed', () => (isRenewed = true));
      stream.onmessage = (message: MessageEvent<string>) => {
        const event = JSON.parse(message.data) as Numbered;
        tell(event);
        hear(event);
      };
      stream.addEventListener('lagged', begin);
      stream.addEventListener('incomplete', begin);
      stream.onerror = () => {
        if (isRenewed && stream.readyState === EventSource.CONNECTING) return;
        stream.close();
        resolve(isOpen);
      };
    });
    tell('lost');
    await lose();
    if (hasBegun) delay = 250;
    await new Promise((resolve) => setTimeout(resolve, delay));
  }
}

async function lose(): Promise<void> {
  if (connection.value === 'live') connection.value = 'lost';
  // A stream does not say why it was refused; a request does.
  await control('daemon.status', {}).catch(() => (connection.value = 'lost'));
}

/** Asks for everything. */
async function reload(): Promise<void> {
  try {
    offered.value = await control('ui.offered', {});
    const [now, kept, shown, pending] = await Promise.all([
      control('daemon.status', {}),
      control('events.list', {}),
      control('servers.list', {}),
      pendingCalls(),
    ]);
    batch(() => {
      connection.value = 'live';
      status.value = now;
      running.value = byName(shown.servers);
      approvals.value = waiting(pending);
      activity.value = kept.events.filter((event) => !isOfCall(event)).reverse().slice(0, KEPT);
      last = kept.next - 1;
      flying.value = inFlight(kept);
    });
  } catch {
    // The stream ends as well, and says so.
  }
  readConfiguration();
}

/** The calls in flight by this answer. Events that came before it may be newer than it. */
function inFlight({ calls, next }: Kept): Map<string, Call> {
  const gone = new Set(ended.value.filter(({ number }) => number >= next).map(({ call }) => call));
  const all = new Map<string, Call>();
  for (const event of calls) {
    if (event.kind !== 'call_began' || gone.has(String(event.call))) continue;
    const { number, server, tool, time: began } = event;
    const call = String(event.call);
    all.set(call, { number, call, server, tool, began });
  }
  for (const [id, call] of flying.value) if (call.number >= next) all.set(id, call);
  return all;
}

/** The calls that wait for this person, if they decide on any. */
const pendingCalls = async () => (may('approvals.list') ? (await control('approvals.list', {})).approvals : []);

const KEPT = 1000;
const isOfCall = ({ kind }: Numbered) => kind === 'call_began' || kind === 'call_ended';
const byName = (list: ServerState[]) => new Map(list.map((one) => [one.server, one]));
const waiting = (list: Question[]) => list.filter(({ decision }) => !decision);

function hear(event: Numbered): void {
  if (event.number <= last && !isOfCall(event)) return;
  last = Math.max(last, event.number);
  if (isOfCall(event)) {
    unread.push(event);
    readCalls();
    return;
  }
  batch(() => {
    activity.value = [event, ...activity.value].slice(0, KEPT);
    hearOther(event);
  });
}

/** Events of calls that are not shown yet: there may be thousands in a second. */
let unread: Numbered[] = [];

function takeCalls(): void {
  const now = new Map(flying.value);
  const done: Call[] = [];
  const counts = new Map(slots.value.map((slot) => [slot.at, { ...slot }]));
  const servers = new Map(heard.value);
  for (const event of unread) {
    if (event.kind !== 'call_began' && event.kind !== 'call_ended') continue;
    const { number, server, tool, time } = event;
    const call = String(event.call);
    servers.set(server, (servers.get(server) ?? 0) + 1);
    if (event.kind === 'call_began') {
      now.set(call, { number, call, server, tool, began: time });
      continue;
    }
    const { outcome, milliseconds } = event;
    const began = now.get(call)?.began ?? time - milliseconds;
    now.delete(call);
    done.push({ number, call, server, tool, began, outcome, milliseconds });
    const at = Math.floor(began / SLOT) * SLOT;
    const slot = counts.get(at) ?? { at, good: 0, bad: 0 };
    slot[outcome === 'ok' ? 'good' : 'bad'] += 1;
    counts.set(at, slot);
  }
  unread = [];
  const since = Date.now() - SPAN - 60_000;
  batch(() => {
    flying.value = now;
    ended.value = [...done.reverse(), ...ended.value].slice(0, MOST_ENDED);
    slots.value = [...counts.values()].filter(({ at }) => at > since).sort((one, other) => one.at - other.at);
    heard.value = servers;
  });
  // A call that was waiting may be among them.
  if (approvals.value.length) refreshApprovals();
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

/** Runs once for many requests within the time: at its end, and never twice at a time, since an older answer would come over a newer one. */
function once(wait: number, work: () => Promise<void>): () => void {
  let isPlanned = false;
  let last = Promise.resolve();
  return () => {
    if (isPlanned) return;
    isPlanned = true;
    setTimeout(() => {
      last = last.then(() => {
        isPlanned = false;
        return work();
      // The stream tells of a daemon that is gone.
      }).catch(() => undefined);
    }, wait);
  };
}

const readCalls = once(150, async () => takeCalls());
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
  approvals.value = waiting(await pendingCalls());
});

const refreshAfterAction = once(1500, async () => {
  refreshApprovals();
  readConfiguration();
  toolsVersion.value += 1;
});

interface Listed { servers: { name: string; state: string; type?: string; target?: string; description?: string | null }[] }
interface Shown { servers: { name: string; state: string; reason?: string; last_failure?: { reason: string }; tools: number; software?: string }[] }

/** Reads the servers of the configuration again. */
export const readConfiguration = once(50, async () => {
  try {
    const [listed, told] = await Promise.all([read<Listed>('list'), read<Shown>('status')]);
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
