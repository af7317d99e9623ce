// The window of mcpzip. Everything that it shows and does goes through `api.ts`; what changes by itself comes from `live.ts`.
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
