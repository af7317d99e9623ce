// The build: a page, its style and its scripts, one script per page. Nothing is inlined, because the window permits no inline script or style.
import { defineConfig } from 'vite';

export default defineConfig({
  // The window has a path of its own, which is another one in each daemon.
  base: './',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    target: ['chrome123', 'firefox128', 'safari17.5'],
    assetsInlineLimit: 0,
    license: { fileName: 'licenses.txt' },
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 800,
  },
});
