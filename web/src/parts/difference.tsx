// The difference of two texts, line by line.
import { diffLines } from 'diff';

/** JSON in lines; another text as it is. */
function lines(text: string | null | undefined): string {
  if (!text) return '';
  try {
    return `${JSON.stringify(JSON.parse(text), null, 2)}\n`;
  } catch {
    return text.endsWith('\n') ? text : `${text}\n`;
  }
}

export function Difference({ before, after, label }: { before?: string | null; after?: string | null; label: string }) {
  const parts = diffLines(lines(before), lines(after), { timeout: 1000 }) ?? [{ value: lines(before), removed: true, added: false }, { value: lines(after), added: true, removed: false }];
  return (
    <pre class="box diff" tabIndex={0} role="region" aria-label={label}>
      {parts.map(({ value, added, removed }, at) => {
        const sign = added ? '+ ' : removed ? '- ' : '  ';
        const text = value.replace(/\n$/, '').split('\n').map((line) => sign + line).join('\n');
        return added ? <ins key={at}>{text}{'\n'}</ins> : removed ? <del key={at}>{text}{'\n'}</del> : <span key={at}>{folded(text)}{'\n'}</span>;
      })}
    </pre>
  );
}

/** A long stretch without changes, without its middle. */
function folded(text: string): string {
  const all = text.split('\n');
  return all.length <= 12 ? text : [...all.slice(0, 5), `  … ${all.length - 10} equal lines`, ...all.slice(-5)].join('\n');
}

/** All lines of a difference as the program makes them: nothing in them is hidden. Long equal stretches are folded. */
export function Shown({ lines: all, label }: { lines: string[]; label: string }) {
  const parts: { sign: string; lines: string[] }[] = [];
  for (const line of all) {
    const sign = line.slice(0, 1);
    const last = parts.at(-1);
    if (last?.sign === sign) last.lines.push(line);
    else parts.push({ sign, lines: [line] });
  }
  return (
    <pre class="box diff" tabIndex={0} role="region" aria-label={label}>
      {parts.map(({ sign, lines: own }, at) => {
        const text = own.join('\n');
        return sign === '+' ? <ins key={at}>{text}{'\n'}</ins> : sign === '-' ? <del key={at}>{text}{'\n'}</del> : <span key={at}>{folded(text)}{'\n'}</span>;
      })}
    </pre>
  );
}

/** A difference in the form of `diff`, as commands print it. */
export function Patch({ lines: all, label }: { lines: string[]; label: string }) {
  return (
    <pre class="box diff" tabIndex={0} role="region" aria-label={label}>
      {all.map((line, at) => (line.startsWith('+') ? <ins key={at}>{line}{'\n'}</ins> : line.startsWith('-') ? <del key={at}>{line}{'\n'}</del> : <span key={at}>{line}{'\n'}</span>))}
    </pre>
  );
}
