// The frame of all pages: where to go, whether the daemon is there, and the commands that ran.
import type { ComponentType } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

import { control, hasEnded, history, isGateway, may, offered } from './api';
import { approvals, connection, fault, servers, status } from './live';
import { Overview } from './pages/overview';
import { CommandLine, Copied } from './parts/command';
import { ActionDialog } from './parts/action';
import { PauseBanner } from './parts/pause';
import { route, to } from './route';
import { setTheme, theme, type Theme } from './theme';
import { counted, milliseconds, timeOfDay } from './words';

type Page = ComponentType;
interface Entry {
  page: string;
  title: string;
  load: () => Promise<Page>;
  /** The method or action that it is made of. */
  needs: string;
  /** Pages below it, by their addresses. */
  below?: string[];
}

const PAGES: Entry[] = [
  { page: 'overview', title: 'Overview', needs: 'daemon.status', load: async () => Overview },
  { page: 'servers', title: 'Servers', needs: 'list', load: async () => (await import('./pages/servers')).Servers, below: ['add'] },
  { page: 'search', title: 'Search', needs: 'search', load: async () => (await import('./pages/search')).Search, below: ['tool'] },
  { page: 'approvals', title: 'Approvals', needs: 'approvals.list', load: async () => (await import('./pages/approvals')).Approvals },
  { page: 'audit', title: 'Audit', needs: 'audit', load: async () => (await import('./pages/audit')).Audit },
  { page: 'savings', title: 'Savings', needs: 'stats', load: async () => (await import('./pages/savings')).Savings },
  { page: 'clients', title: 'Clients', needs: 'clients', load: async () => (await import('./pages/clients')).Clients },
  { page: 'configuration', title: 'Configuration', needs: 'config_write', load: async () => (await import('./pages/configuration')).Configuration },
];
const BELOW: Record<string, () => Promise<Page>> = {
  add: async () => (await import('./pages/add')).Add,
  tool: async () => (await import('./pages/tool')).Tool,
};

/** The method or action that a page below another page needs. */
const NEEDS: Record<string, string> = { add: 'add', tool: 'describe' };

const loaded = new Map<string, Page>([['overview', Overview]]);

export function App() {
  if (hasEnded.value) return <Ended />;
  const { page } = route.value;
  const current = PAGES.find((entry) => entry.page === page || entry.below?.includes(page));
  const waiting = approvals.value.length;
  useEffect(() => {
    // On a phone the row of pages is wider than the window.
    document.querySelector('nav [aria-current=page]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [current]);
  useEffect(() => {
    document.title = `${waiting ? `(${waiting}) ` : ''}${current?.title ?? 'Not found'} · mcpzip`;
  }, [current, waiting]);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById('main')?.focus(); }}>Skip to the page</a>
      <div class="shell">
        <header class="side">
          <p class="brand"><img src="mark.svg" alt="" width="22" height="22" /> mcpzip</p>
          <nav aria-label="Pages">
            {PAGES.filter(({ needs }) => may(needs)).map(({ page: name, title }) => (
              <a key={name} href={to(name)} aria-current={current?.page === name ? 'page' : undefined}>
                {title}
                {name === 'approvals' && waiting > 0 && <span class="bubble" title={counted(waiting, 'call waits', 'calls wait')}>{waiting}</span>}
              </a>
            ))}
          </nav>
          <div class="side-end">
            <State />
            {isGateway.value && <Visitor />}
            <label class="theme"><span class="hidden">Theme</span>
              <select value={theme.value} onChange={(event) => setTheme(event.currentTarget.value as Theme)}>
                <option value="system">System theme</option>
                <option value="light">Light</option>
                <option value="dark">Dark</option>
              </select>
            </label>
          </div>
        </header>
        <main class="main" id="main" tabIndex={-1}>
          {connection.value === 'lost' && (
            <div class="banner bad" role="status">{isGateway.value
              ? <><strong>The gateway does not answer.</strong> This window connects again when it is back.</>
              : <><strong>The daemon does not answer.</strong> It may have ended or restarted. This window connects again when it is back; <code>mcpzip ui</code> opens a new one.</>}</div>
          )}
          {fault.value !== undefined && page !== 'configuration' && (
            <div class="banner bad" role="status"><strong>The configuration cannot be read.</strong> {fault.value} {may('config_write') && <a href={to('configuration')}>Open the configuration</a>}</div>
          )}
          <PauseBanner />
          <Loaded name={page} />
        </main>
        {!isGateway.value && <Commands />}
      </div>
      <ActionDialog />
    </>
  );
}

/** A page, whose script is loaded when it is first shown. */
function Loaded({ name }: { name: string }) {
  const [, setCount] = useState(0);
  const [failure, setFailure] = useState(false);
  const first = useRef(true);
  const load = BELOW[name] ?? PAGES.find(({ page }) => page === name)?.load;
  useEffect(() => {
    if (!load || loaded.has(name)) return;
    load().then((page) => {
      loaded.set(name, page);
      setCount((count) => count + 1);
    }, () => setFailure(true));
  }, [name]);
  useEffect(() => {
    // Another page begins at its top, and is read from there.
    if (first.current) first.current = false;
    else document.getElementById('main')?.focus();
  }, [name]);
  if (!load) return <><h1>Not found</h1><p>There is no page at this address. <a href={to('overview')}>Go to the overview</a></p></>;
  const needs = NEEDS[name] ?? PAGES.find(({ page }) => page === name)?.needs ?? '';
  if (isGateway.value && !may(needs)) return <Absent needs={needs} />;
  const Page = loaded.get(name);
  if (Page) return <Page key={name} />;
  return failure ? <><h1>Not loaded</h1><p>This page could not be loaded: the daemon does not answer, or was updated. Reload the window.</p></> : <h1 class="hidden">Loading</h1>;
}

/** A page that this person does not have. */
function Absent({ needs }: { needs: string }) {
  const isOfManagers = needs === 'approvals.list';
  return (
    <>
      <h1>Not at this gateway</h1>
      <p>{isOfManagers
        ? <>This page is for people with a role that has <code>manage</code>.</>
        : <>Clients and configuration files belong to a machine. On the machine of the gateway, <code>mcpzip ui</code> has this page.</>} <a href={to('overview')}>Go to the overview</a></p>
    </>
  );
}

/** The person at the window of a gateway. */
function Visitor() {
  const person = offered.value?.person;
  const leave = () => control('ui.close', {}).then(() => (hasEnded.value = true), () => undefined);
  return (
    <p class="visitor"><strong class="break">{person?.name}</strong> <span class="faint break">{[...(person?.roles ?? []), ...(person?.manages ? ['manages'] : [])].join(', ')}</span> <button type="button" class="small" onClick={leave}>Leave</button></p>
  );
}

function State() {
  const now = connection.value;
  const words = { connecting: 'Connecting', live: 'Live', lost: 'No answer' }[now];
  const failed = servers.value.filter(({ state }) => state === 'failed' || state === 'faulty').length;
  return (
    <p class="state" role="status">
      <span class={`dot ${now === 'live' ? 'ready' : now === 'lost' ? 'failed' : 'connecting'}`} aria-hidden="true" /> {words}
      {now === 'live' && failed > 0 && <span class="bad"> · {failed} failed</span>}
      {status.value && <span class="faint version"> · {status.value.version}</span>}
    </p>
  );
}

/** The commands that this window ran: the last one in sight, the others by a click. */
function Commands() {
  const list = history.value;
  const [newest] = list;
  return (
    <footer class="commands">
      <details>
        <summary>
          <span class="hidden">Commands of this window. The last one: </span>
          <span aria-hidden="true">$</span> <code>{newest?.command ?? 'mcpzip ui'}</code>
          {newest && <span class={newest.exit === 0 ? 'faint' : 'bad'}>{newest.exit === 0 ? milliseconds(newest.milliseconds) : `exit ${newest.exit ?? 'none'}`}</span>}
        </summary>
        <ol tabIndex={0} aria-label="Commands, newest first">
          {list.map((entry) => (
            <li key={entry.number}><span class="faint">{timeOfDay(entry.time)}</span> <CommandLine command={entry.command} /> <span class={entry.exit === 0 ? 'faint' : 'bad'}>{entry.exit === 0 ? milliseconds(entry.milliseconds) : `exit ${entry.exit ?? 'none'}`}</span></li>
          ))}
        </ol>
      </details>
    </footer>
  );
}

function Ended() {
  useEffect(() => {
    document.title = 'Session ended · mcpzip';
  }, []);
  if (isGateway.value || location.pathname.endsWith('/ui/')) {
    return (
      <main class="ended">
        <h1>Your visit has ended</h1>
        <p>You left, were away for long, or your access was taken back. <a href="./">Open the window again</a></p>
      </main>
    );
  }
  return (
    <main class="ended">
      <h1>This window’s session ended</h1>
      <p>A session lasts a day, until <code>mcpzip ui --close</code>, or until the daemon forgets it. To open a new window, run:</p>
      <p class="line"><code>mcpzip ui</code> <Copied text="mcpzip ui" /></p>
    </main>
  );
}
