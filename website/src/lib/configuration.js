// The functions of the configuration builder, apart from the page, so that it can be tested without one.

const lines = (text) => (text ?? '').split('\n').map((line) => line.trim()).filter(Boolean);
const pairs = (text, separator) => Object.fromEntries(lines(text).map((line) => {
  const at = line.indexOf(separator);
  return at < 0 ? [line, ''] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
}));
const filled = (object) => Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined && value !== '' && value !== false && !(Array.isArray(value) && !value.length) && !(value?.constructor === Object && !Object.keys(value).length)));

/** The overrides of a server's tools; a text that is not JSON stays as it is, so that the check of the schema reports it. */
function overrides(text) {
  try {
    return text?.trim() ? JSON.parse(text) : undefined;
  } catch {
    return text;
  }
}

/** The keys of a command line. They stay without `cli`, too, so that the check reports them. */
const commandLine = (fields) => ({ cli: fields.cli, cli_only: lines(fields.cli_only), cli_read: lines(fields.cli_read) });

/** A sandbox; with the network it is an object. */
const sandbox = (word) => (word === 'network' ? { network: 'all' } : word);

/** The configuration that a filled-in form means; what is empty is left out. */
export function fromForm(servers, general) {
  const entries = servers.map(({ kind, name, ...fields }) => [name || 'unnamed', {
    ...(kind === 'url' ? { url: fields.url } : { command: fields.command }),
    ...filled({
      ...(kind === 'url' ? { headers: pairs(fields.headers, ':') } : { args: lines(fields.args), env: pairs(fields.env, '='), placement: fields.placement, ...commandLine(fields), sandbox: sandbox(fields.sandbox) }),
      tools: filled({ deny: lines(fields.deny), override: overrides(fields.override) }),
      trust: fields.trust,
      share: fields.share,
      disabled: fields.disabled,
    }),
    // `false` is a choice here, which `filled` would leave out.
    ...(fields.client_capabilities ? { client_capabilities: fields.client_capabilities === 'true' } : {}),
  }]);
  return {
    mcpServers: Object.fromEntries(entries),
    ...filled({
      call_timeout: general.call_timeout,
      results: filled({ budget: general.budget === '' ? undefined : Number(general.budget), form: general.form }),
      scripts: filled({ allow: general.scripts }),
      // `false` is a choice here, which `filled` would leave out.
      search: general.learn ? { learn: general.learn === 'true' } : undefined,
      management: general.management,
      surface: general.surface,
      show: lines(general.show),
      profiles: general.profile && { [general.profile]: { servers: lines(general.profileServers ?? '').length ? lines(general.profileServers) : ['*'] } },
      daemon: general.daemon,
      http: filled({ address: general.http, auth: general.auth ? { tokens: true } : undefined }),
      tools: filled({ ask: lines(general.ask), deny: lines(general.deny) }),
      approvals: filled({ wait: general.wait }),
      notify: general.notify,
      audit: filled({ arguments: general.audit }),
    }),
  };
}

/** JSON with comments and trailing commas: `{value}`, or `{error}` in words. */
export function parse(text) {
  const plain = text.replace(/"(?:[^"\\]|\\.)*"|\/\/[^\n]*|\/\*[\s\S]*?\*\/|,(?=\s*(?:\/\/[^\n]*\n\s*|\/\*[\s\S]*?\*\/\s*)*[}\]])/g, (part) => (part.startsWith('"') ? part : part.replace(/[^\n]/g, ' ')));
  try {
    return { value: JSON.parse(plain) };
  } catch (error) {
    const at = Number(/position (\d+)/.exec(error.message)?.[1]);
    const before = Number.isFinite(at) ? plain.slice(0, at).split('\n') : undefined;
    return { error: `This is not JSON${before ? ` (line ${before.length}, column ${before.at(-1).length + 1})` : ''}: ${error.message}` };
  }
}

/** The keys of which a server has one. */
const TARGETS = ['command', 'url', 'openapi', 'graphql', 'skills'];

/** The text for a configuration without a fault. */
export const VALID = 'Valid: every key and value matches the schema of this release.';

const KINDS = { string: 'a string', number: 'a number', integer: 'a whole number', boolean: '`true` or `false`', array: 'a list', object: 'an object', null: '`null`' };
const kindOf = (value) => KINDS[value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value] ?? 'nothing';
// Names that other programs use for a key of mcpzip.
const ELSEWHERE = { servers: 'mcpServers', mcp_servers: 'mcpServers', context_servers: 'mcpServers', environment: 'env', serverUrl: 'url', httpUrl: 'url', enabled: 'disabled' };

/** The place of a fault, as people would say it: `` `args` of the server `files` ``. */
function spot(path) {
  const [head, name, ...rest] = path.split('/').slice(1).map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
  if (head === undefined) return 'The configuration';
  if (head !== 'mcpServers' || name === undefined) return `\`${[head, name, ...rest].filter((step) => step !== undefined).join('.')}\``;
  return rest.length ? `\`${rest.join('.')}\` of the server \`${name}\`` : `The server \`${name}\``;
}

/** One error of the schema as a sentence; undefined where another error says it better. */
function sentence({ instancePath, keyword, params }, value) {
  const here = spot(instancePath);
  const found = instancePath.split('/').slice(1).reduce((inner, step) => inner?.[step.replaceAll('~1', '/').replaceAll('~0', '~')], value);
  const unknown = params.additionalProperty ?? params.unevaluatedProperty;
  switch (keyword) {
    case 'additionalProperties':
    case 'unevaluatedProperties': return `${here} has the key \`${unknown}\`, which mcpzip does not know${ELSEWHERE[unknown] ? `: it is called \`${ELSEWHERE[unknown]}\` here` : '; the reference lists every key'}`;
    case 'type': return `${here} must be ${[params.type].flat().filter((type) => type !== 'null').map((type) => KINDS[type]).join(' or ')}, but is ${kindOf(found)}`;
    case 'enum': return `${here} is \`${found}\`, and has to be one of: ${params.allowedValues.filter((choice) => choice !== null).join(', ')}`;
    // That a server lacks both is said of it as a whole.
    case 'required': return TARGETS.includes(params.missingProperty) ? undefined : `${here} lacks \`${params.missingProperty}\``;
    case 'minimum': case 'exclusiveMinimum': return `${here} has to be at least ${params.limit}, and is ${found}`;
    case 'maximum': case 'exclusiveMaximum': return `${here} may be ${params.limit} at most, and is ${found}`;
    case 'minLength': case 'minItems': return `${here} is empty`;
    case 'pattern': return `${here} is \`${found}\`, which does not have the required form`;
    case 'anyOf': case 'oneOf': case 'if': case 'not': case 'propertyNames': return undefined;
    default: return `${here} does not match the schema (${keyword})`;
  }
}

/** The faults of a configuration, a sentence each: those that the schema finds, and those that it cannot express. */
export function problems(validate, value) {
  const found = [];
  const servers = value?.mcpServers && typeof value.mcpServers === 'object' && !Array.isArray(value.mcpServers) ? value.mcpServers : {};
  for (const [name, entry] of Object.entries(servers)) {
    if (!/^(?!.*__)[A-Za-z0-9._-]{1,64}$/.test(name)) found.push(`The name \`${name}\` cannot be used: a name has 1 to 64 letters, digits, -, _ and ., without __`);
    if (name.toLowerCase() === 'mcpzip') found.push('The name `mcpzip` is reserved for the built-in server');
    const targets = TARGETS.filter((target) => entry?.[target] !== undefined).length;
    if (targets !== 1) found.push(`The server \`${name}\` needs ${targets ? `one of ${TARGETS.map((target) => `\`${target}\``).join(', ')}, not several` : 'a `command` (a local server) or a `url` (a remote one)'}`);
    else if (entry.command === '' || entry.url === '') found.push(`${entry.command === '' ? '`command`' : '`url`'} of the server \`${name}\` is empty`);
    else if (typeof entry.url === 'string' && !entry.url.startsWith('${')) {
      if (!/^https?:\/\//i.test(entry.url)) found.push(`\`url\` of the server \`${name}\` has to begin with https:// or http://`);
      else if (!URL.canParse(entry.url.replace(/\$\{[^}]*\}/g, 'x'))) found.push(`\`url\` of the server \`${name}\` is not an address`);
    }
  }
  if (!validate(value)) {
    const told = validate.errors.map((error) => sentence(error, value)).filter(Boolean);
    // Some faults have no sentence of their own: those of names and targets are reported above; for the rest, one sentence says that there is a fault.
    if (!told.length && !found.length) told.push(`${spot(validate.errors[0].instancePath)} does not match the schema (${validate.errors[0].keyword})`);
    found.unshift(...told);
  }
  return [...new Set(found)];
}
