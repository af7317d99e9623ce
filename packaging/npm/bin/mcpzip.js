#!/usr/bin/env node
// Starts the program of this system. It is in a package of its own, which npm chose when it installed this one, so nothing
// is downloaded here.
'use strict';
const { spawn } = require('node:child_process');
const { join } = require('node:path');

const name = `mcpzip-${process.platform}-${process.arch}`;
let program;
try {
  const directory = join(require.resolve(`${name}/package.json`), '..');
  program = join(directory, process.platform === 'win32' ? 'mcpzip.exe' : 'mcpzip');
} catch {
  console.error(`mcpzip: the package ${name} is not there. Either there is none for this system, or npm was told to leave out optional packages (--omit=optional).`);
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' });
child.on('error', (error) => {
  console.error(`mcpzip: ${program} cannot be started: ${error.message}`);
  process.exit(1);
});
// A client ends us by a signal; the program ends its servers, and then itself.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.on('exit', (code, signal) => {
  if (!signal) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
