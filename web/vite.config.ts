// The build: a page, its style and its scripts, one script per page. Nothing is inlined, because the window permits no inline script or style.
import { defineConfig } from 'vite';

/** The modules of the frame and of the overview. */
const FIRST = /node_modules\/(preact|@preact|uplot)\/|\/src\/(api|app|live|route|theme|words|pages\/overview|parts\/(action|bar|calls|chart|command|read|text))\./;

export default defineConfig({
  // The window has a path of its own, which is another one in each daemon.
  base: './',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    target: ['chrome123', 'firefox128', 'safari17.5'],
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    license: { fileName: 'licenses.txt' },
    modulePreload: { polyfill: false },
    // The first page is one script: each request more is later by the time of a connection.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: 'first', test: FIRST }] } } },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 800,
  },
});
