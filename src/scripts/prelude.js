// Runs before each script and gives it its functions. All of it can be changed by the script, which harms only itself: the
// parent process checks each call.
(function (send) {
  'use strict';
  const waiting = new Map();
  let next = 0;
  const ask = (message) => new Promise((resolve, reject) => {
    const id = ++next;
    // Made here, so that its stack has the line of the call.
    const error = new Error();
    send(JSON.stringify({ id, ...message }));
    waiting.set(id, { resolve, reject, error });
  });
  const call = (name, args) => ask({ call: String(name), arguments: args === undefined || args === null ? {} : args });
  const named = (name) => new Proxy(function () {}, {
    get: (_, tool) => typeof tool !== 'string' || tool === 'then' || tool === 'toJSON' ? undefined : (args) => call(`${name}__${tool}`, args),
    apply: (_, self, args) => call(name, args[0]),
  });
  const tools = new Proxy({}, {
    get: (_, server) => typeof server !== 'string' || server === 'then' || server === 'toJSON' ? undefined : named(server),
  });
  const shown = (value) => typeof value === 'string' ? value : String(JSON.stringify(value));
  const log = (...values) => { send(JSON.stringify({ log: values.map(shown).join(' ') })); };
  const console = { log, info: log, warn: log, error: log, debug: log };
  const search = (need) => ask({ search: String(need) });
  const all = (values) => Promise.all(values);
  Object.assign(globalThis, { tools, call, all, search, log, console });
  const failed = (error) => {
    const isError = error instanceof Error;
    send(JSON.stringify({
      failed: isError ? `${error.name}: ${error.message}` : `the script threw ${shown(error)}`,
      stack: isError ? String(error.stack) : '',
    }));
  };
  return {
    deliver: (text) => {
      const { id, value, error } = JSON.parse(text);
      const asked = waiting.get(id);
      waiting.delete(id);
      if (error === undefined) {
        asked.resolve(value);
      } else {
        asked.error.message = error;
        asked.reject(asked.error);
      }
    },
    pending: () => waiting.size,
    settle: (script) => {
      script.then((ended) => ended.value).then((value) => {
        try {
          const json = JSON.stringify(value);
          send(`{"done":true${json === undefined ? '' : `,"value":${json}`}}`);
        } catch (error) {
          failed(error);
        }
      }, failed);
    },
  };
})
