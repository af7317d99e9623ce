// The theme: the system's, until the switch says otherwise.
import { signal } from '@preact/signals';

export type Theme = 'system' | 'light' | 'dark';
const KEY = 'theme';

const isTheme = (value: string | null): value is Theme => value === 'system' || value === 'light' || value === 'dark';
const kept = localStorage.getItem(KEY);
export const theme = signal<Theme>(isTheme(kept) ? kept : 'system');

const system = matchMedia('(prefers-color-scheme: dark)');
/** Rises when colours change, for what draws with them. */
export const colours = signal(0);
system.addEventListener('change', () => (colours.value += 1));

export function applyTheme(): void {
  if (theme.value === 'system') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = theme.value;
  colours.value += 1;
}

export function setTheme(value: Theme): void {
  theme.value = value;
  localStorage.setItem(KEY, value);
  applyTheme();
}

const narrow = matchMedia('(max-width: 45rem)');
/** Whether the window is as narrow as a phone. */
export const isNarrow = signal(narrow.matches);
narrow.addEventListener('change', () => (isNarrow.value = narrow.matches));
