// Saved and spent tokens: by day, by server and by tool.
import { useMemo, useState } from 'preact/hooks';

import { Bar } from '../parts/bar';
import { Chart } from '../parts/chart';
import { may, offered } from '../api';
import { useRead } from '../parts/read';
import { Failed } from '../parts/text';
import { replace, route, to } from '../route';
import { count, counted, milliseconds, short } from '../words';

interface Sum {
  definitions: number;
  projected: number;
  stored: number;
  own: number;
  searches: number;
  descriptions: number;
  parts: number;
  wrapping: number;
  net: number;
}
interface Gain {
  tokenizer: string;
  estimated: string;
  from: string | null;
  to: string | null;
  clients: number;
  calls_by_hand: number;
  sum: Sum;
  servers: { server: string; clients: number; definition_tokens: number | null; saved: number; tools: { tool: string; calls: number; whole: number; projected: number; stored: number; received_bytes: number; saved: number }[] }[];
  days: (Sum & { day: string; calls: number })[];
}
interface Stats { tools: { server: string; tool: string; calls: number; errors: number; p50_ms: number; p95_ms: number; sent_bytes: number; received_bytes: number }[] }

const SAVED: [keyof Sum, string][] = [['definitions', 'definitions that clients did not send'], ['projected', 'results cut down to what was asked for'], ['stored', 'results over the budget, kept aside']];
const COST: [keyof Sum, string][] = [['own', 'mcpzip’s own definitions'], ['searches', 'answers of searches'], ['descriptions', 'descriptions of tools'], ['parts', 'parts of results, read later'], ['wrapping', 'text around calls']];
const SINCE: [string, string][] = [['7d', '7 days'], ['30d', '30 days'], ['90d', '90 days'], ['', 'all days']];

const saved = (sum: Sum) => SAVED.reduce((total, [key]) => total + sum[key], 0);
/** The cost, a negative number. */
const cost = (sum: Sum) => COST.reduce((total, [key]) => total - Math.abs(sum[key]), 0);

export function Savings() {
  const since = route.value.query.get('since') ?? '30d';
  const args = since ? { since } : {};
  // At a gateway, savings are counted for all people together.
  const isWhole = may('gain');
  const gain = useRead<Gain>('gain', isWhole ? args : undefined);
  const stats = useRead<Stats>('stats', args);
  return (
    <>
      <div class="title"><h1>Savings</h1>
        <span class="buttons">
          <label>Since <select value={since} onChange={({ currentTarget }) => replace(`${to('savings')}?since=${currentTarget.value}`)}>{SINCE.map(([key, title]) => <option key={key} value={key}>{title}</option>)}</select></label>
          <button type="button" onClick={() => { gain.again(); stats.again(); }} disabled={gain.isBusy || stats.isBusy}>Read again</button>
        </span>
      </div>
      <Failed text={gain.failure} again={gain.again} />
      {!isWhole && offered.value && <p>These are your calls, from the audit log of the gateway. It counts savings for all people together, for those who manage it.</p>}
      {gain.value ? <Account gain={gain.value} /> : isWhole && gain.failure === undefined && <p class="faint">Reading…</p>}
      <Failed text={stats.failure} again={stats.again} />
      {stats.value && <Tools stats={stats.value} gain={gain.value} />}
    </>
  );
}

function Account({ gain }: { gain: Gain }) {
  const { sum, days, servers, from, to: until, clients, tokenizer, estimated } = gain;
  const most = Math.max(...[...SAVED, ...COST].map(([key]) => Math.abs(sum[key])), 1);
  const chart = useMemo(() => {
    const whole = filled(days);
    return {
      times: whole.map(({ day }) => Date.parse(`${day}T00:00:00Z`) / 1000),
      lines: [
        { label: 'saved', colour: '--accent', values: whole.map(saved) },
        { label: 'cost', colour: '--cost', values: whole.map(cost) },
      ],
    };
  }, [days]);
  if (!days.length || (!clients && !servers.length)) return <p>Nothing is counted yet: <code>mcpzip serve</code> counts what its clients do.</p>;
  const largest = Math.max(...servers.map((server) => Math.abs(server.saved)), 1);
  return (
    <>
      <ul class="tiles">
        <li class={`tile ${sum.net < 0 ? 'warn' : ''}`}><span><strong>{short(sum.net)}</strong> tokens net</span><span class="faint">{from} to {until}</span></li>
        <li class="tile"><span><strong>{short(saved(sum))}</strong> saved</span><span class="faint">{counted(clients, 'client')}</span></li>
        <li class="tile"><span><strong>{short(cost(sum))}</strong> cost</span><span class="faint">searches, descriptions, own texts</span></li>
        <li class="tile"><span><strong>{count(days.reduce((total, { calls }) => total + calls, 0))}</strong> calls</span><span class="faint">by agents</span></li>
      </ul>
      <p class="faint">Tokens of {tokenizer}; {estimated}.</p>
      <section aria-labelledby="by-day">
        <h2 id="by-day">By day</h2>
        <Chart times={chart.times} lines={chart.lines} label={`Tokens saved and cost by day, ${from} to ${until}; the table below has the numbers`} height={220} isBars isDays />
        <details>
          <summary>The numbers</summary>
          <div class="scroll" tabIndex={0} role="region" aria-label="Tokens by day">
            <table>
              <thead><tr><th scope="col">Day</th><th scope="col" class="number">Calls</th><th scope="col" class="number">Saved</th><th scope="col" class="number">Cost</th><th scope="col" class="number">Net</th></tr></thead>
              <tbody>{[...days].reverse().map((day) => <tr key={day.day}><th scope="row">{day.day}</th><td class="number">{count(day.calls)}</td><td class="number">{count(saved(day))}</td><td class="number">{count(cost(day))}</td><td class="number">{count(day.net)}</td></tr>)}</tbody>
            </table>
          </div>
        </details>
      </section>
      <div class="halves">
        <section aria-labelledby="by-part">
          <h2 id="by-part">What it is made of</h2>
          <table>
            <tbody>
              {SAVED.map(([key, words]) => <tr key={key}><th scope="row">{words}</th><td class="number">{count(sum[key])}</td><td class="bars"><Bar value={sum[key]} most={most} tone={sum[key] < 0 ? 'cost' : 'accent'} /></td></tr>)}
              {COST.map(([key, words]) => <tr key={key}><th scope="row">{words}</th><td class="number">{count(-Math.abs(sum[key]))}</td><td class="bars"><Bar value={sum[key]} most={most} tone="cost" /></td></tr>)}
              <tr class="sum"><th scope="row">net</th><td class="number">{count(sum.net)}</td><td /></tr>
            </tbody>
          </table>
        </section>
        <section aria-labelledby="by-server">
          <h2 id="by-server">By server</h2>
          <div class="scroll" tabIndex={0} role="region" aria-label="Tokens by server">
            <table>
              <thead><tr><th scope="col">Server</th><th scope="col" class="number">Definitions</th><th scope="col" class="number">Saved</th><th scope="col"><span class="hidden">Bar</span></th></tr></thead>
              <tbody>{[...servers].sort((one, other) => other.saved - one.saved).slice(0, 100).map(({ server, definition_tokens: tokens, saved: total }) => <tr key={server}><th scope="row"><a href={to('servers', [server])}>{server}</a></th><td class="number">{tokens === null ? '–' : count(tokens)}</td><td class="number">{count(total)}</td><td class="bars"><Bar value={total} most={largest} tone={total < 0 ? 'cost' : 'accent'} /></td></tr>)}</tbody>
            </table>
          </div>
        </section>
      </div>
    </>
  );
}

/** All days from the first to the last, since a day without a record is a day with nothing. */
function filled(days: Gain['days']): Gain['days'] {
  const [first] = days;
  const last = days.at(-1);
  if (!first || !last) return days;
  const known = new Map(days.map((day) => [day.day, day]));
  const nothing = { calls: 0, definitions: 0, projected: 0, stored: 0, own: 0, searches: 0, descriptions: 0, parts: 0, wrapping: 0, net: 0 };
  const all: Gain['days'] = [];
  for (let at = Date.parse(`${first.day}T00:00:00Z`); at <= Date.parse(`${last.day}T00:00:00Z`) && all.length < 4000; at += 86_400_000) {
    const day = new Date(at).toISOString().slice(0, 10);
    all.push(known.get(day) ?? { day, ...nothing });
  }
  return all;
}

const ROWS = 50;

function Tools({ stats, gain }: { stats: Stats; gain: Gain | undefined }) {
  const [order, setOrder] = useState<'calls' | 'saved' | 'errors' | 'p95_ms' | 'received_bytes'>('calls');
  const [isWhole, setWhole] = useState(false);
  const rows = useMemo(() => {
    const tokens = new Map((gain?.servers ?? []).flatMap(({ server, tools }) => tools.map(({ tool, saved: total }): [string, number] => [`${server}/${tool}`, total])));
    return stats.tools.map((tool) => ({ ...tool, saved: tokens.get(`${tool.server}/${tool.tool}`) ?? 0 })).sort((one, other) => other[order] - one[order]);
  }, [stats, gain, order]);
  if (!rows.length) return null;
  const most = Math.max(...rows.map((row) => Math.abs(row.saved)), 1);
  const head = (key: typeof order, words: string) => <th scope="col" class="number" aria-sort={order === key ? 'descending' : 'none'}><button type="button" class="quiet" onClick={() => setOrder(key)}>{words}{order === key && <span aria-hidden="true"> ↓</span>}</button></th>;
  return (
    <section aria-labelledby="by-tool">
      <h2 id="by-tool">By tool</h2>
      <div class="scroll" tabIndex={0} role="region" aria-label="Calls by tool">
        <table>
          <thead><tr><th scope="col">Tool</th>{head('calls', 'Calls')}{head('errors', 'Errors')}{head('p95_ms', 'Time (p95)')}{head('received_bytes', 'Bytes')}{head('saved', 'Tokens saved')}<th scope="col"><span class="hidden">Bar</span></th></tr></thead>
          <tbody>
            {rows.slice(0, isWhole ? 1000 : ROWS).map(({ server, tool, calls, errors, p95_ms: time, received_bytes: bytes, saved: total }) => (
              <tr key={`${server}/${tool}`}><th scope="row"><a href={to('servers', [server])}>{server}</a> <code>{tool}</code></th><td class="number">{count(calls)}</td><td class={`number ${errors ? 'bad' : ''}`}>{count(errors)}</td><td class="number">{milliseconds(time)}</td><td class="number">{short(bytes)}</td><td class="number">{count(total)}</td><td class="bars narrow"><Bar value={total} most={most} tone={total < 0 ? 'cost' : 'accent'} /></td></tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > ROWS && !isWhole && <p><button type="button" onClick={() => setWhole(true)}>Show {count(Math.min(rows.length, 1000))} tools</button></p>}
    </section>
  );
}
