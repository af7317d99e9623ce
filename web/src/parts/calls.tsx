// The calls of the last minutes: how many, and which.
import { useEffect, useMemo, useState } from 'preact/hooks';

import { calls, SPAN, type Call } from '../live';
import { to } from '../route';
import { counted, milliseconds, timeOfDay } from '../words';
import { Chart } from './chart';

/** Milliseconds of a point of the chart. */
const STEP = 15_000;

export function Calls() {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    // The chart moves on, also while nothing is called.
    const timer = setInterval(() => setNow(Date.now()), STEP / 3);
    return () => clearInterval(timer);
  }, []);
  const all = calls.value;
  const end = Math.max(now, all.at(-1)?.began ?? 0);
  const { times, lines, latest } = useMemo(() => series(all, Math.ceil(end / STEP) * STEP), [all, Math.ceil(end / STEP)]);
  const minute = all.filter(({ began }) => began > end - 60_000);
  const errors = minute.filter(({ outcome }) => outcome !== undefined && outcome !== 'ok').length;
  const said = `${counted(minute.length, 'call')} in the last minute${errors ? `, ${errors} without success` : ''}`;
  return (
    <>
      <p>{said}</p>
      <Chart times={times} lines={lines} label={`Calls per minute: ${said}`} height={150} />
      {latest.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="Newest calls">
          <table>
            <thead><tr><th scope="col">Began</th><th scope="col">Tool</th><th scope="col">Outcome</th><th scope="col" class="number">Time</th></tr></thead>
            <tbody>{latest.map((call) => <Row key={call.call} call={call} />)}</tbody>
          </table>
        </div>
      )}
    </>
  );
}

function Row({ call: { began, server, tool, outcome, milliseconds: time } }: { call: Call }) {
  return (
    <tr>
      <td class="faint">{timeOfDay(began)}</td>
      <td><a href={to('servers', [server])}>{server}</a> <code>{tool}</code></td>
      <td>{outcome === undefined ? <span class="warn">in flight</span> : <span class={outcome === 'ok' ? 'good' : 'bad'}>{outcome.replace('_', ' ')}</span>}</td>
      <td class="number">{time === undefined ? '' : milliseconds(time)}</td>
    </tr>
  );
}

function series(all: Call[], end: number) {
  const points = SPAN / STEP;
  const first = end - SPAN;
  const good = new Array<number>(points).fill(0);
  const bad = new Array<number>(points).fill(0);
  // A point has the calls of the minute that ends with it.
  for (const { began, outcome } of all) {
    const from = Math.max(0, Math.floor((began - first) / STEP));
    const list = outcome === undefined || outcome === 'ok' ? good : bad;
    for (let at = from; at < Math.min(points, from + 60_000 / STEP); at += 1) list[at] = (list[at] ?? 0) + 1;
  }
  return {
    times: good.map((_, at) => (first + (at + 1) * STEP) / 1000),
    lines: [{ label: 'calls per minute', colour: '--accent', values: good }, { label: 'without success', colour: '--bad', values: bad }],
    latest: all.slice(-8).reverse(),
  };
}
