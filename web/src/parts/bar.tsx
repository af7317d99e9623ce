// A number as a bar in a table; the number itself stands next to it.
export function Bar({ value, most, tone = '' }: { value: number; most: number; tone?: string }) {
  const share = most > 0 ? Math.min(1, Math.abs(value) / most) : 0;
  return <span class="bar" aria-hidden="true"><span class={tone} style={{ width: `${(share * 100).toFixed(1)}%` }} /></span>;
}
