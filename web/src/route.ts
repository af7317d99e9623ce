// The address of the page: `#/servers/github?tab=tools`.
import { computed, signal } from '@preact/signals';

const hash = signal(location.hash);
addEventListener('hashchange', () => (hash.value = location.hash));

export interface Route {
  page: string;
  rest: string[];
  query: URLSearchParams;
}

export const route = computed<Route>(() => {
  const [path = '', query = ''] = hash.value.replace(/^#\/?/, '').split('?');
  const [page = '', ...rest] = path.split('/').map(decoded);
  return { page: page || 'overview', rest, query: new URLSearchParams(query) };
});

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The address of a page. */
export function to(page: string, rest: string[] = [], query: Record<string, string> = {}): string {
  const path = [page, ...rest].map(encodeURIComponent).join('/');
  const set = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== ''));
  return `#/${path}${set.size ? `?${set}` : ''}`;
}

export function go(address: string): void {
  location.hash = address;
}

/** Changes the address without a new step back. */
export function replace(address: string): void {
  history.replaceState(null, '', address);
  hash.value = location.hash;
}
