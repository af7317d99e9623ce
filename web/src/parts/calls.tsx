// The calls of the last minutes: how many, and which.
import { useEffect, useMemo, useState } from 'preact/hooks';

import { ended, flying, SLOT, slots, SPAN, type Call, type Slot } from '../live';
import { to } from '../route';
import { counted, milliseconds, timeOfDay } from '../words';
import { Chart } from './chart';

const MINUTE = 60_000;
/** The calls in the table. */
const SHOWN = 8;

export function Calls() {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    // The chart moves on, also while nothing is called.
    const timer = setInterval(() => setNow(Date.now()), SLOT);
    return () => clearInterval(timer);
  }, []);
  const all = slots.value;
  const end = Math.ceil((Math.max(now, all.at(-1)?.at ?? 0) + 1) / SLOT) * SLOT;
  const { times, lines } = useMemo(() => series(all, end), [all, end]);
  const minute = all.filter(({ at }) => at >= end - MINUTE);
  const bad = minute.reduce((sum, slot) => sum + slot.bad, 0);
  const said = `${counted(minute.reduce((sum, slot) => sum + slot.good, bad), 'call')} in the last minute${bad ? `, ${bad} without success` : ''}`;
  const shown = [...[...flying.value.values()].reverse().slice(0, SHOWN), ...ended.value].slice(0, SHOWN);
  return (
    <>
      <p>{said}</p>
      <Chart times={times} lines={lines} label={`Calls per minute: ${said}`} height={150} />
      {shown.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="Newest calls">
          <table>
            <thead><tr><th scope="col">Began</th><th scope="col">Tool</th><th scope="col">Outcome</th><th scope="col" class="number">Time</th></tr></thead>
            <tbody>{shown.map((call) => <Row key={call.call} call={call} />)}</tbody>
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
      <td><CallOutcome outcome={outcome} /></td>
      <td class="number">{time === undefined ? '' : milliseconds(time)}</td>
    </tr>
  );
}

export function CallOutcome({ outcome }: { outcome: string | undefined }) {
  return outcome === undefined ? <span class="warn">in flight</span> : <span class={outcome === 'ok' ? 'good' : 'bad'}>{outcome.replace('_', ' ')}</span>;
}

/** At each point the calls of the minute before it. */
function series(all: readonly Slot[], end: number) {
  const points = SPAN / SLOT;
  const first = end - SPAN;
  const good = new Array<number>(points).fill(0);
  const bad = new Array<number>(points).fill(0);
  for (const slot of all) {
    const from = Math.round((slot.at - first) / SLOT);
    for (let at = Math.max(0, from); at < Math.min(points, from + MINUTE / SLOT); at += 1) {
      good[at] = (good[at] ?? 0) + slot.good;
      bad[at] = (bad[at] ?? 0) + slot.bad;
    }
  }
  return {
    times: good.map((_, at) => (first + (at + 1) * SLOT) / 1000),
    lines: [{ label: 'calls per minute', colour: '--accent', values: good }, { label: 'without success', colour: '--bad', values: bad }],
  };
}
