// The calculations of the token calculator, apart from the page. The page is built with the result of its first values, and calculates again at each change.

/**
 * The costs of a session. `tokens` and `tools` are those of all definitions; `own`, `search` and `describe` the measured sizes of mcpzip's definitions,
 * of an answer of a search and of a description; percentages are 0 to 100.
 */
export function session({ tokens, tools, turns, searches, describes, context, price, cached, discount, own, search, describe }) {
  const rounds = Math.max(1, turns);
  const hops = searches + describes;
  // An answer stays in the conversation: on the average it is sent again in half of the turns.
  const extra = (searches * search + describes * describe) * Math.max(1, rounds / 2);
  const definitions = own * (rounds + hops);
  const without = tokens * rounds;
  const together = definitions + extra + hops * context;
  const factor = 1 - (cached / 100) * (1 - discount / 100);
  const dollars = (count) => `$${((count * price * factor) / 1e6).toFixed(3)}`;
  const most = Math.max(without, together, 1);
  const saved = without - together;
  return {
    out: {
      'turn-without': figure(tokens), 'turn-with': figure(own),
      'definitions-without': figure(without), 'definitions-with': figure(definitions),
      extra: figure(extra), hops: `${figure(hops)} × ${figure(context)} = ${figure(hops * context)}`,
      'session-without': figure(without), 'session-with': figure(together),
      'cost-without': dollars(without), 'cost-with': dollars(together),
      verdict: saved > 0
        ? `${figure(tools)} tools: mcpzip saves ${figure(saved)} tokens in this session (${Math.round((100 * saved) / without)} %), before any result is shortened.`
        : `${figure(tools)} tools: mcpzip costs ${figure(-saved)} tokens more in this session. With so few tools and so many searches, use it for other reasons, or not at all.`,
    },
    bars: { without: (100 * without) / most, with: (100 * together) / most },
  };
}

const figure = (number) => Math.round(number).toLocaleString('en');
