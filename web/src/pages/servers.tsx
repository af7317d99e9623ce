// All servers, and one of them.
import { useMemo, useState } from 'preact/hooks';

import { controlAs, isGateway, may, quoted } from '../api';
import { activity, ended, flying, heard, isRead, loginsWanted, servers, toolsVersion, type Server } from '../live';
import { act, type Doing } from '../parts/action';
import { CallOutcome } from '../parts/calls';
import { List } from '../parts/list';
import { useRead, useSlow } from '../parts/read';
import { Failed, Fact, Facts, Prose, Signature, StateMark, Tabs } from '../parts/text';
import { condensed, Event } from './overview';
import { go, replace, route, to } from '../route';
import { isNarrow } from '../theme';
import { count, counted, milliseconds, moment } from '../words';

export interface ToolLine {
  name: string;
  server: string;
  text: string;
}

export function Servers() {
  const [name] = route.value.rest;
  return name === undefined ? <All /> : <One name={name} key={name} />;
}

function All() {
  const { query } = route.value;
  const [words, setWords] = useState(query.get('q') ?? '');
  const state = query.get('state') ?? '';
  const all = servers.value;
  const shown = useMemo(() => {
    const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
    return all.filter((server) => (!state || server.state === state) && wanted.every((word) => `${server.name} ${server.target ?? ''} ${server.reason ?? ''}`.toLowerCase().includes(word)));
  }, [all, words, state]);
  const kinds = [...new Set(all.map((server) => server.state))].sort();
  const search = (next: string, kind: string) => replace(to('servers', [], { q: next, state: kind }));
  return (
    <div class="page-list">
      <div class="title">
        <h1>Servers</h1>
        <span class="buttons">
          {may('update') && <button type="button" onClick={() => act({ title: 'Update servers from the registry', word: 'Update all', action: 'update', body: <p>Servers that came from the registry get their newest version.</p> })}>Update all</button>}
          {may('add') && <a class="button primary" href={to('add')}>Add a server</a>}
        </span>
      </div>
      <div class="filters">
        <label>Find <input type="search" autocomplete="off" value={words} onInput={({ currentTarget }) => { setWords(currentTarget.value); search(currentTarget.value, state); }} /></label>
        <label>State
          <select value={state} onChange={({ currentTarget }) => search(words, currentTarget.value)}>
            <option value="">all</option>
            {[...new Set([...kinds, ...(state ? [state] : [])])].map((kind) => <option key={kind}>{kind}</option>)}
          </select>
        </label>
        <span class="faint" role="status">{shown.length === all.length ? counted(all.length, 'server') : `${count(shown.length)} of ${count(all.length)}`}</span>
      </div>
      <List
        items={shown} label="Servers" columns="of-servers" height={isNarrow.value ? 60 : 34} keyOf={(server) => server.name} open={({ name }) => go(to('servers', [name]))}
        header={<><span>Name</span><span>State</span><span class="number">Tools</span><span class="number">Sessions</span><span>Command or URL, or the reason</span></>}
        row={(server) => <Row server={server} />}
        empty={isRead.value ? (all.length ? 'No server is like this.' : !may('add') ? 'There is no server for you.' : <>No server is configured. <a href={to('add')}>Add one</a>, or <a href={to('clients')}>take over those of your clients</a>.</>) : 'Reading…'}
      />
    </div>
  );
}

function Row({ server: { name, state, tools, sessions, target, reason } }: { server: Server }) {
  return (
    <>
      <strong class="cut">{name}</strong>
      <StateMark state={state} />
      <span class="number">{count(tools)}<span class="only-narrow"> {tools === 1 ? 'tool' : 'tools'}</span></span>
      <span class="number wide">{sessions.length || ''}</span>
      {reason ? <span class="cut bad">{reason}</span> : <code class="cut faint">{target}</code>}
    </>
  );
}

function One({ name }: { name: string }) {
  const server = servers.value.find((one) => one.name === name);
  const tab = route.value.query.get('tab') ?? 'state';
  const tabs = [['state', 'State'], ['tools', 'Tools'], ...(may('logs') ? [['log', 'Log']] : [])].map(([key = '', title = '']) => ({ name: key, title, address: to('servers', [name], key === 'state' ? {} : { tab: key }) }));
  if (!server) return <><p><a href={to('servers')}>Servers</a></p><h1>{name}</h1><p>{isRead.value ? 'There is no server of this name.' : 'Reading…'}</p></>;
  return (
    <div class={tab === 'state' ? '' : 'page-list'}>
      <p class="above"><a href={to('servers')}>Servers</a></p>
      <div class="title"><h1 class="break">{name} <StateMark state={server.state} /></h1><Buttons server={server} /></div>
      <Tabs label="Parts of the server" tabs={tabs} current={tab} />
      {tab === 'tools' ? <Tools server={name} /> : tab === 'log' && may('logs') ? <Log server={name} /> : <State server={server} />}
    </div>
  );
}

function Buttons({ server: { name, state, type, sessions } }: { server: Server }) {
  const isOff = state === 'disabled';
  const isRemote = type !== undefined && type !== 'stdio';
  const args = { server: name };
  const order = (method: 'servers.restart' | 'servers.stop', word: string, title: string, body: string): Doing => {
    const command = `mcpzip daemon ${method === 'servers.stop' ? 'stop' : 'restart'} ${quoted(name)}`;
    return { title, word, command, perform: () => controlAs(command, method, { server: name }), body: <p>{body}</p> };
  };
  const wantsLogin = loginsWanted.value.has(name);
  return (
    <span class="buttons">
      {!isOff && may('servers.restart') && sessions.length > 0 && <button type="button" onClick={() => act(order('servers.restart', 'Restart', `Restart ${name}`, 'Its connections end, with the calls in progress, and it starts again at once.'))}>Restart</button>}
      {!isOff && may('servers.stop') && sessions.length > 0 && <button type="button" onClick={() => act(order('servers.stop', 'Stop', `Stop ${name}`, 'Its connections end, with the calls in progress. The next call starts it again.'))}>Stop</button>}
      {isRemote && may('login') && <button type="button" class={wantsLogin ? 'primary' : ''} onClick={() => act({ title: `Log in to ${name}`, word: 'Log in', action: 'login', args, body: <p>The command prints an address. Open it here, and log in there.</p> })}>Log in</button>}
      {isRemote && may('logout') && <button type="button" onClick={() => act({ title: `Log out of ${name}`, word: 'Log out', action: 'logout', args })}>Log out</button>}
      {isOff
        ? may('enable') && <button type="button" class="primary" onClick={() => act({ title: `Enable ${name}`, word: 'Enable', action: 'enable', args })}>Enable</button>
        : may('disable') && <button type="button" onClick={() => act({ title: `Disable ${name}`, word: 'Disable', action: 'disable', args, body: <p>{isGateway.value ? 'No client sees its tools, until you enable it or the gateway is started again.' : 'It stays in the configuration, and no client sees its tools.'}</p> })}>Disable</button>}
      {may('update') && <button type="button" onClick={() => act({ title: `Update ${name}`, word: 'Update', action: 'update', args, body: <p>If it came from the registry, it gets the newest version.</p> })}>Update</button>}
      {may('remove') && <button type="button" class="danger" onClick={() => act({ title: `Remove ${name}`, word: 'Remove', action: 'remove', args, isDangerous: true, body: <p>Its entry is removed from the configuration.</p>, onDone: ({ exit }) => exit === 0 && go(to('servers')) })}>Remove</button>}
    </span>
  );
}

function State({ server }: { server: Server }) {
  const events = condensed(activity.value.filter((event) => 'server' in event && event.server === server.name), 30);
  const own = [...flying.value.values(), ...ended.value].filter((call) => call.server === server.name).slice(0, 10);
  return (
    <>
      {server.reason && <p class="box bad pre"><Prose text={server.reason} /></p>}
      <Facts>
        <Fact name={server.type === 'stdio' || !server.type ? 'Command' : 'URL'}>{server.target && <code class="break">{server.target}</code>}</Fact>
        <Fact name="Transport">{server.type}</Fact>
        <Fact name="Description">{server.description}</Fact>
        <Fact name="Software">{server.software}</Fact>
        <Fact name="Tools"><a href={to('servers', [server.name], { tab: 'tools' })}>{count(server.tools)}</a></Fact>
        <Fact name="Connections">{count(server.connections)}</Fact>
        <Fact name="Sessions">{count(server.sessions.length)}</Fact>
        <Fact name="Shared by">{server.sharing}</Fact>
      </Facts>
      <div class="halves">
        <section aria-labelledby="its-calls">
          <h2 id="its-calls">Calls</h2>
          {own.length === 0 && <p class="faint">No call since this window opened.</p>}
          <ul class="plain rows">
            {own.map((call) => <li key={call.call}><time class="faint">{moment(call.began)}</time> <code>{call.tool}</code> <CallOutcome outcome={call.outcome} /> {call.milliseconds !== undefined && milliseconds(call.milliseconds)}</li>)}
          </ul>
        </section>
        <section aria-labelledby="its-events">
          <h2 id="its-events">Events</h2>
          {events.length === 0 && <p class="faint">No event is kept.</p>}
          <ol class="plain rows events">{events.map(({ event, times }) => <Event key={event.number} event={event} times={times} />)}</ol>
        </section>
      </div>
    </>
  );
}

function Tools({ server }: { server: string }) {
  const { value, failure, again } = useRead<ToolLine[]>('tools', { server }, toolsVersion.value);
  const [words, setWords] = useState('');
  const shown = useMemo(() => (value ?? []).filter(({ text }) => text.toLowerCase().includes(words.toLowerCase())), [value, words]);
  return (
    <>
      <div class="filters"><label>Find <input type="search" value={words} onInput={({ currentTarget }) => setWords(currentTarget.value)} /></label><span class="faint" role="status">{value && counted(shown.length, 'tool')}</span></div>
      <Failed text={failure} again={again} />
      <ToolList tools={shown} label={`Tools of ${server}`} empty={value ? (words ? 'No tool is like this.' : 'It has no tools.') : failure === undefined ? 'Reading…' : ''} />
    </>
  );
}

export function ToolList({ tools, label, empty }: { tools: ToolLine[]; label: string; empty: string }) {
  return <List items={tools} label={label} columns="of-tools" height={isNarrow.value ? 64 : 50} keyOf={({ name }) => name} open={({ name }) => go(to('tool', [name]))} row={({ text }) => <Signature text={text} />} empty={empty} />;
}

interface LogLines { file: string; lines: string[] }
const LINES = 2000;

function Log({ server }: { server: string }) {
  // Each event of the server is a reason to look at its log again.
  const version = useSlow((activity.value.find((event) => 'server' in event && event.server === server)?.number ?? 0) + (heard.value.get(server) ?? 0), 500);
  const { value, failure, again, isBusy } = useRead<LogLines>('logs', { server, lines: LINES }, version);
  const [words, setWords] = useState('');
  const [isFollowed, setFollowed] = useState(true);
  const numbered = useMemo(() => (value?.lines ?? []).map((line, at) => ({ line, at })).filter(({ line }) => line.toLowerCase().includes(words.toLowerCase())), [value, words]);
  return (
    <>
      <div class="filters">
        <label>Find <input type="search" value={words} onInput={({ currentTarget }) => setWords(currentTarget.value)} /></label>
        <label class="check"><input type="checkbox" checked={isFollowed} onChange={({ currentTarget }) => setFollowed(currentTarget.checked)} /> Follow</label>
        <button type="button" onClick={again} disabled={isBusy}>Read again</button>
        {value && <code class="faint break">{value.file}</code>}
      </div>
      <Failed text={failure} again={again} />
      <List items={numbered} label={`Log of ${server}`} columns="of-log" height={20} keyOf={({ at }) => String(at)} row={({ line }) => <code class={/\bERROR\b/.test(line) ? 'bad' : /\bWARN\b/.test(line) ? 'warn' : ''}>{line}</code>} isFollowed={isFollowed} empty={value ? 'The log has no such line.' : failure === undefined ? 'Reading…' : ''} />
    </>
  );
}
