// What the configuration builder does, apart from the page, so that it can be tested without one.

const lines = (text) => (text ?? '').split('\n').map((line) => line.trim()).filter(Boolean);
const pairs = (text, separator) => Object.fromEntries(lines(text).map((line) => {
  const at = line.indexOf(separator);
  return at < 0 ? [line, ''] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
}));
const filled = (object) => Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined && value !== '' && value !== false && !(Array.isArray(value) && !value.length) && !(value?.constructor === Object && !Object.keys(value).length)));

/** The configuration that a filled-in form means; what is empty is left out. */
export function fromForm(servers, general) {
  const entries = servers.map(({ kind, name, ...fields }) => [name || 'unnamed', {
    ...(kind === 'url' ? { url: fields.url } : { command: fields.command }),
    ...filled({
      ...(kind === 'url' ? { headers: pairs(fields.headers, ':') } : { args: lines(fields.args), env: pairs(fields.env, '=') }),
      tools: filled({ deny: lines(fields.deny) }),
      trust: fields.trust,
      disabled: fields.disabled,
    }),
  }]);
  return {
    mcpServers: Object.fromEntries(entries),
    ...filled({
      call_timeout: general.call_timeout,
      results: filled({ budget: general.budget === '' ? undefined : Number(general.budget) }),
      management: general.management,
      tools: filled({ ask: lines(general.ask), deny: lines(general.deny) }),
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
    return { error: `No JSON${before ? ` (line ${before.length}, column ${before.at(-1).length + 1})` : ''}: ${error.message}` };
  }
}

/** What the schema says against a value, a sentence each, and what it cannot say. */
export function problems(validate, value) {
  const found = [];
  if (!validate(value)) {
    for (const { instancePath, message, params, keyword } of validate.errors) {
      if (['anyOf', 'oneOf', 'if', 'not'].includes(keyword) && validate.errors.length > 1) continue;
      const place = instancePath.split('/').slice(1).map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~')).join('.') || 'the whole';
      const detail = params.additionalProperty ?? params.unevaluatedProperty ?? params.allowedValues?.join(', ') ?? '';
      found.push(`${place} ${message}${detail ? `: ${detail}` : ''}`);
    }
  }
  for (const [name, entry] of Object.entries(value?.mcpServers ?? {})) {
    if (!/^(?!.*__)[A-Za-z0-9._-]{1,64}$/.test(name)) found.push(`mcpServers.${name}: a name has 1 to 64 letters, digits, -, _ and ., without __`);
    if (name === 'mcpzip') found.push('mcpServers.mcpzip: the name is reserved for the built-in server');
    const targets = [entry?.command, entry?.url].filter((target) => target !== undefined).length;
    if (targets !== 1) found.push(`mcpServers.${name} needs ${targets ? 'one of `command` and `url`, not both' : 'a `command` (a local server) or a `url` (a remote one)'}`);
    else if (entry.command === '' || entry.url === '') found.push(`mcpServers.${name}: ${entry.command === '' ? '`command`' : '`url`'} is empty`);
  }
  return [...new Set(found)];
}
