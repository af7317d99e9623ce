// Numbers and times as people read them.
const number = new Intl.NumberFormat('en');
const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const date = new Intl.DateTimeFormat('en-CA', { year: 'numeric', month: '2-digit', day: '2-digit' });

export const count = (value: number): string => number.format(value);
export const counted = (value: number, one: string, many = `${one}s`): string => `${count(value)} ${value === 1 ? one : many}`;
export const timeOfDay = (milliseconds: number): string => clock.format(milliseconds);
export const dayOf = (milliseconds: number): string => date.format(milliseconds);

/** A time of day, with the day if it is another one. */
export function moment(milliseconds: number): string {
  const time = timeOfDay(milliseconds);
  const day = dayOf(milliseconds);
  return day === dayOf(Date.now()) ? time : `${day} ${time}`;
}

export function duration(seconds: number): string {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86_400)} d ${Math.floor((seconds % 86_400) / 3600)} h`;
}

export const milliseconds = (value: number): string => (value < 1 ? '< 1 ms' : value < 10 ? `${value.toFixed(1)} ms` : value < 10_000 ? `${Math.round(value)} ms` : `${(value / 1000).toFixed(1)} s`);

/** 12,345,678 as 12.3 M. */
export function short(value: number): string {
  const size = Math.abs(value);
  if (size < 10_000) return count(value);
  return size < 1_000_000 ? `${(value / 1000).toFixed(size < 100_000 ? 1 : 0)} k` : `${(value / 1_000_000).toFixed(1)} M`;
}
