// The window of mcpzip. All requests go through `api.ts`; `live.ts` has the live state.
import { render } from 'preact';

import { App } from './app';
import { start } from './live';
import './style.css';
import { applyTheme } from './theme';

applyTheme();
const root = document.getElementById('app');
if (!root) throw new Error('the page has no #app');
root.replaceChildren();
render(<App />, root);
start();
