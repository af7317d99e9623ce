// Reads the output of a command when a part of a page appears.
import { useEffect, useRef, useState } from 'preact/hooks';

import { read, wordsOf, type Arguments } from '../api';
import { connection } from '../live';

export interface Reading<T> {
  value?: T;
  /** The failure in words. */
  failure?: string;
  isBusy: boolean;
  again: () => void;
}

/** Reads again when the arguments, `version` or the connection to the daemon change; without arguments it waits. */
export function useRead<T>(action: string, args: Arguments | undefined, version: unknown = 0): Reading<T> {
  const [state, setState] = useState<{ value?: T; failure?: string; isBusy: boolean }>({ isBusy: args !== undefined });
  const [turn, setTurn] = useState(0);
  const latest = useRef(0);
  const shown = useRef('');
  const key = args && JSON.stringify(args);
  const isLost = connection.value === 'lost';
  useEffect(() => {
    latest.current += 1;
    const own = latest.current;
    if (key === undefined || isLost) return;
    // An answer to other arguments is not shown for these.
    const isOther = shown.current !== `${action} ${key}`;
    shown.current = `${action} ${key}`;
    setState((before) => (isOther ? { isBusy: true } : { ...before, isBusy: true }));
    read<T>(action, JSON.parse(key) as Arguments).then(
      (value) => own === latest.current && setState({ value, isBusy: false }),
      (error: unknown) => own === latest.current && setState({ failure: wordsOf(error), isBusy: false }),
    );
  }, [action, key, version, turn, isLost]);
  return { ...state, again: () => setTurn((count) => count + 1) };
}

/** A value that changes at most once within the time. */
export function useSlow(value: number, wait: number): number {
  const [slow, setSlow] = useState(value);
  const latest = useRef(value);
  latest.current = value;
  useEffect(() => {
    if (slow === value) return undefined;
    const timer = setTimeout(() => setSlow(latest.current), wait);
    return () => clearTimeout(timer);
  }, [slow, slow === value]);
  return slow;
}
