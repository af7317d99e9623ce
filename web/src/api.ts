// The doors of the daemon, or of a gateway: methods of the control interface, and commands of the program.
import { computed, signal } from '@preact/signals';

import type { Control, Offered } from './generated/control';

/** The methods that can be asked; events come as a stream. */
export type Method = Exclude<keyof Control, 'event' | 'lagged' | 'events.subscribe'>;

/** A command that ran: its line, its exit code and what it printed. */
export interface Ran<T = unknown> {
  command: string;
  /** Its exit code, or `null` if it was ended. */
  exit: number | null;
  /** The JSON that it printed, or `null`. */
  output: T | null;
  /** The text that it printed, if it was not JSON. */
  text?: string;
  /** The text on its standard error. */
  error: string;
}

/** A command of this window, for the list of commands. */
export interface Entry {
  number: number;
  command: string;
  time: number;
  milliseconds: number;
  exit: number | null;
}

export type Arguments = Record<string, unknown>;

/** A failure in words, which the page shows. */
export class Failure extends Error {}

/** The rights in this window; `undefined` until they are known. */
export const offered = signal<Offered | undefined>(undefined);

/** Whether this is the window of a gateway. */
export const isGateway = computed(() => offered.value?.person != null);

/** The process behind the window, in words. */
const behind = () => (isGateway.value ? 'The gateway' : 'The daemon');

/** Whether the person at this window may use a method or an action. Other methods and actions are not shown. */
export function may(name: string): boolean {
  return offered.value !== undefined && (offered.value.methods.includes(name) || offered.value.actions.includes(name));
}

/** Whether the session of this window has ended. */
export const hasEnded = signal(false);

/** The commands that ran, newest first. */
export const history = signal<Entry[]>([]);

const MOST = 200;
let number = 0;

/** Sends a request. Addresses are relative: the window has a path of its own. */
async function send(door: string, body: unknown, abort?: AbortSignal): Promise<Response> {
  const response = await fetch(door, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Mcpzip': '1' },
    body: JSON.stringify(body),
    signal: abort ?? null,
  }).catch(() => {
    throw new Failure(abort?.aborted ? 'It was cancelled.' : `${behind()} does not answer.`);
  });
  if (response.status === 401) hasEnded.value = true;
  if (response.ok) return response;
  throw new Failure(errorOf(await response.json().catch(() => undefined)) ?? `${behind()} answered with ${response.status}.`);
}

async function post(door: string, body: unknown): Promise<unknown> {
  const response = await send(door, body);
  return response.json().catch(() => {
    throw new Failure(`${behind()} did not answer to the end.`);
  });
}

function errorOf(answer: unknown): string | undefined {
  const error = (answer as { error?: unknown } | undefined)?.error;
  if (typeof error === 'string') return error;
  const message = (error as { message?: unknown } | undefined)?.message;
  return typeof message === 'string' ? message : undefined;
}

/** Calls a method of the control interface. */
export async function control<M extends Method>(method: M, params: Control[M]['params']): Promise<Control[M]['result']> {
  const answer = await post('api/control', { method, params });
  const error = errorOf(answer);
  if (error !== undefined) throw new Failure(error);
  return (answer as { result: Control[M]['result'] }).result;
}

/** Calls a method that has a command, and notes that command. */
export async function controlAs<M extends Method>(command: string, method: M, params: Control[M]['params']): Promise<Ran<Control[M]['result']>> {
  const begun = Date.now();
  try {
    const output = await control(method, params);
    note(command, begun, 0);
    return { command, exit: 0, output, text: '', error: '' };
  } catch (error) {
    note(command, begun, 1);
    return { command, exit: 1, output: null, text: '', error: wordsOf(error) };
  }
}

/** Runs a command. */
export async function run<T>(action: string, args: Arguments = {}): Promise<Ran<T>> {
  const begun = Date.now();
  const ran = (await post('api/command', { action, arguments: args })) as Ran<T>;
  note(ran.command, begun, ran.exit);
  return ran;
}

/** Runs a command, and gives each line of its messages to `hear` at once. The command ends when `abort` says so. */
export async function follow(action: string, args: Arguments, hear: (line: string) => void, abort: AbortSignal): Promise<Ran> {
  const begun = Date.now();
  const response = await send('api/command', { action, arguments: args, follow: true }, abort);
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  // The answer comes last, and may have lines of its own.
  let answer = '';
  const take = (line: string) => {
    if (!answer && line.startsWith('{"note":')) hear((JSON.parse(line) as { note: string }).note);
    else answer += `${line}\n`;
  };
  for (;;) {
    const part = await reader?.read().catch(() => undefined);
    if (!part || part.done) break;
    const lines = (rest + part.value).split('\n');
    rest = lines.pop() ?? '';
    lines.forEach(take);
  }
  take(rest);
  const ran = parsed(answer) as Ran | undefined;
  if (!ran) throw new Failure(abort.aborted ? 'It was cancelled.' : `${behind()} ended before the command did.`);
  note(ran.command, begun, ran.exit);
  return ran;
}

/** The JSON that a command prints. */
export async function read<T>(action: string, args: Arguments = {}): Promise<T> {
  const ran = await run<T>(action, args);
  const failure = failureOf(ran);
  if (failure !== undefined && (ran.output === null || 'error' in (ran.output as object))) throw new Failure(failure);
  if (ran.output === null) throw new Failure(ran.error.trim() || 'The command printed no JSON.');
  return ran.output;
}

/** The line of a command that is not run. */
export async function preview(action: string, args: Arguments = {}): Promise<string> {
  return ((await post('api/command', { action, arguments: args, preview: true })) as { command: string }).command;
}

/** Why a command failed, or `undefined` if it did not. */
export function failureOf(ran: Ran): string | undefined {
  if (ran.exit === 0) return undefined;
  // With `--json` a command tells its error as JSON, in the last line of its messages.
  const lines = ran.error.trim().split('\n');
  const told = [ran.output, parsed(lines.at(-1) ?? '')].find((one) => errorOf(one ?? undefined) !== undefined);
  const own = errorOf(told ?? undefined);
  const hints = (told as { error?: { hints?: string[] } } | undefined)?.error?.hints ?? [];
  const words = own === undefined ? (ran.error.trim() || ran.text?.trim() || '') : [own, ...hints].join('\n');
  return words.replace(/^error: /, '') || (ran.exit === null ? 'It was ended.' : `It ended with ${ran.exit}.`);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function note(command: string, time: number, exit: number | null): void {
  // At a gateway, an action is not a command on the person's machine.
  if (isGateway.value) return;
  number += 1;
  history.value = [{ number, command, time, milliseconds: Date.now() - time, exit }, ...history.value].slice(0, MOST);
}

/** A word as a shell reads it. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
