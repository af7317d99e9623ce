// A chart, with the numbers as a table for those who cannot see it.
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';

import { colours } from '../theme';
import { short, timeOfDay } from '../words';

export interface Line {
  label: string;
  /** A colour of the style sheet, `--accent` say. */
  colour: string;
  values: (number | null)[];
}

interface Props {
  /** Seconds since 1970, ascending. */
  times: number[];
  lines: Line[];
  label: string;
  height: number;
  isBars?: boolean;
  /** Whether the axis shows days, not times. */
  isDays?: boolean;
  /** Whether there are neither axes nor a legend. */
  isBare?: boolean;
}

const DAY = 86_400;

/** As many of the days as have room for their names. */
function spread(chart: uPlot): number[] {
  const days = chart.data[0];
  const step = Math.max(1, Math.ceil(days.length / Math.max(1, Math.floor(chart.width / 70))));
  return Array.from(days).filter((_, at) => at % step === 0);
}

function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim() || '#888';
}

/** The resolved value of a colour that depends on the theme. */
function resolved(name: string, host: HTMLElement): string {
  host.style.color = `var(${name})`;
  const value = getComputedStyle(host).color;
  host.style.color = '';
  return value || colour(name);
}

export function Chart({ times, lines, label, height, isBars = false, isDays = false, isBare = false }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | undefined>(undefined);
  const turn = colours.value;
  const shape = lines.map((line) => line.label + line.colour).join();
  useEffect(() => {
    const box = host.current;
    if (!box) return undefined;
    const ink = resolved('--muted', box);
    const grid = { stroke: resolved('--border', box), width: 1 };
    const axis = { stroke: ink, grid, ticks: grid, font: '11px system-ui, sans-serif' };
    const bars = isBars ? uPlot.paths.bars?.({ size: [0.7, 48] }) : undefined;
    const made = new uPlot(
      {
        width: Math.max(box.clientWidth, 100), height,
        legend: { show: !isBare, live: true },
        cursor: { show: !isBare, drag: { x: false, y: false } },
        scales: { x: { time: true, ...(isDays ? { range: (_, low, high) => [low - DAY * 0.6, high + DAY * 0.6] } : {}) }, y: { range: (_, low, high) => [Math.min(0, low), Math.max(1, high * 1.1)] } },
        axes: [
          { ...axis, show: !isBare, ...(isDays ? { splits: (self) => spread(self), values: (_, splits) => splits.map((at) => new Date(at * 1000).toISOString().slice(5, 10)) } : { space: 70, values: (_, splits) => splits.map((at) => timeOfDay(at * 1000).slice(0, 5)) }) },
          { ...axis, show: !isBare, size: 56, values: (_, splits) => splits.map((at) => (Number.isInteger(at) ? short(at) : '')) },
        ],
        tzDate: (at) => (isDays ? uPlot.tzDate(new Date(at * 1000), 'Etc/UTC') : new Date(at * 1000)),
        series: [
          { label: isDays ? 'Day' : 'Time', value: (_, at) => (at === null || at === undefined ? '–' : isDays ? new Date(at * 1000).toISOString().slice(0, 10) : new Date(at * 1000).toLocaleTimeString('en-GB')) },
          ...lines.map((line) => {
            const stroke = resolved(line.colour, box);
            return {
              label: line.label, stroke, width: isBars ? 0 : 1.5, fill: isBars ? stroke : stroke.replace('rgb(', 'rgba(').replace(')', ', 0.12)'),
              ...(bars ? { paths: bars } : {}), points: { show: false },
              value: (_: uPlot, at: number | null) => (at === null || at === undefined ? '–' : short(at)),
            };
          }),
        ],
      },
      [times, ...lines.map(({ values }) => values)], box,
    );
    chart.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: Math.max(box.clientWidth, 100), height }));
    watch.observe(box);
    return () => {
      watch.disconnect();
      made.destroy();
      chart.current = undefined;
    };
  }, [turn, shape, height, isBars, isDays, isBare]);
  useEffect(() => {
    chart.current?.setData([times, ...lines.map(({ values }) => values)]);
  }, [times, lines]);
  return <div class="chart" role="img" aria-label={label}><div ref={host} aria-hidden="true" style={{ minHeight: `${height}px` }} /></div>;
}
