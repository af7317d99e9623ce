// A command as text, to be copied.
import { useEffect, useState } from 'preact/hooks';

import { isGateway, preview, type Arguments } from '../api';
import { printableLines } from '../printable';

/** The command, where it is one of the person's machine. */
export function CommandLine({ command }: { command: string }) {
  if (isGateway.value) return null;
  return <span class="command"><code>{printableLines(command)}</code> <Copied text={command} /></span>;
}

/** A button that copies a text, and says so. */
export function Copied({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [said, setSaid] = useState('');
  useEffect(() => {
    if (!said) return undefined;
    const timer = setTimeout(() => setSaid(''), 1500);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = () => navigator.clipboard.writeText(text).then(() => setSaid('Copied'), () => setSaid('Not copied'));
  const short = text.length > 60 ? `${text.slice(0, 60)}…` : text;
  return <button type="button" class="small quiet" onClick={copy} aria-label={`${said || label}: ${short}`}>{said || label}</button>;
}

/** The command of an action with these arguments, asked for when they have not changed for a moment. */
export function usePreview(action: string, args: Arguments | undefined): string | undefined {
  const [line, setLine] = useState<string>();
  const key = args && JSON.stringify(args);
  useEffect(() => {
    setLine(undefined);
    if (!key || isGateway.value) return undefined;
    let isCurrent = true;
    const timer = setTimeout(() => {
      preview(action, JSON.parse(key) as Arguments).then((command) => isCurrent && setLine(command), () => undefined);
    }, 250);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [action, key]);
  return line;
}
