// A thousand servers and fifty thousand tools, made up, for the bridge: `--large`.
const SERVERS = 1000;
const TOOLS = 50;
const STATES = ['ready', 'ready', 'ready', 'idle', 'idle', 'connecting', 'failed', 'disabled'];
const VERBS = ['list', 'get', 'create', 'update', 'delete', 'search', 'export', 'import', 'archive', 'move'];
const NOUNS = ['issue', 'page', 'invoice', 'branch', 'event', 'customer', 'ticket', 'file', 'table', 'message'];

const servers = Array.from({ length: SERVERS }, (_, at) => ({ name: `server-${String(at).padStart(4, '0')}`, state: STATES[at % STATES.length] }));
const reason = (state) => (state === 'failed' ? 'the connection was refused: nothing listens on 127.0.0.1:9' : null);

function toolsOf(server) {
  return Array.from({ length: TOOLS }, (_, at) => {
    const name = `${server}__${VERBS[at % 10]}_${NOUNS[Math.floor(at / 5) % 10]}_${at}`;
    return { name, server, text: `${name}(id: string, limit?: integer) [read]\n  ${VERBS[at % 10]} one ${NOUNS[Math.floor(at / 5) % 10]} of ${server} by its id.` };
  });
}

/** The made-up answer to an action or a method, or `undefined` where the program is to answer. */
export function large(name, given = {}) {
  switch (name) {
    case 'servers.list':
      return { servers: servers.map(({ name: server, state }) => ({ server, state, reason: reason(state), tools: TOOLS, sharing: 'all sessions', connections: state === 'ready' ? 1 : 0, sessions: [] })) };
    case 'list':
      return { file: '/made/up.json', servers: servers.map(({ name: server, state }) => ({ name: server, state: state === 'disabled' ? 'disabled' : 'enabled', target: `npx ${server}`, type: 'stdio', description: null, written: null })) };
    case 'status':
      return { version: '0', configuration: '/made/up.json', warnings: [], servers: servers.map(({ name: server, state }) => ({ name: server, state, tools: TOOLS, prompts: 0, resources: 0, stale: false, software: `${server} 1.0` })), tools: SERVERS * TOOLS, waiting_calls: 0 };
    case 'tools':
      return given.server ? toolsOf(given.server) : servers.flatMap(({ name: server }) => toolsOf(server));
    default:
      return undefined;
  }
}
