// The two pictures of the README: what tools cost, from docs/answers.md, and a terminal, from a run that was recorded.
import { answers } from './measured.mjs';

const escape = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
const figure = (value) => value.toLocaleString('en');
const SANS = "-apple-system, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif";
const THEMES = {
  light: { text: '#1f2328', faint: '#59636e', bad: '#be123c', good: '#0f766e', line: '#d1d9e0', paper: '#ffffff' },
  dark: { text: '#f0f6fc', faint: '#9198a1', bad: '#fb7185', good: '#2dd4bf', line: '#3d444d', paper: '#0d1117' },
};

/** The definitions that the model gets at each turn, a block for each tool; below it, what happened to the results of the measured calls. */
export function problem(theme) {
  const colour = THEMES[theme];
  const { all, own, servers, calls, stored, filtered, meanSearch } = answers();
  const blocks = (count, fill, y) => Array.from({ length: count }, (_, index) => `<rect x="${24 + (index % 33) * 15}" y="${y + Math.floor(index / 33) * 15}" width="12" height="12" rx="2.5" fill="${fill}"/>`).join('');
  const row = (y, title, tokens, fill) => `<text x="24" y="${y}" fill="${colour.text}" font-size="13.5">${escape(title)}</text>
<text x="560" y="${y + 32}" fill="${fill}" font-size="30" font-weight="700">${figure(tokens)}</text><text x="672" y="${y + 32}" fill="${colour.faint}" font-size="13.5">tokens</text>`;
  const results = [
    `${calls.length - stored.calls} of ${calls.length} came unchanged; ${stored.calls} were over the budget: stored, with ${figure(stored.shown)} of ${figure(stored.raw)} tokens shown.`,
    `Reading on costs again. With a jq filter, ${filtered.calls} of the calls gave only the part asked for: ${figure(filtered.select)} of ${figure(filtered.raw)} tokens.`,
  ];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 262" font-family="${SANS}" role="img" aria-labelledby="t d">
<title id="t">What the definitions of tools cost an agent, without and with mcpzip</title>
<desc id="d">${servers.length} servers with ${all.tools} tools are ${figure(all.tokens)} tokens of definitions at every turn; mcpzip shows ${own.tools} tools with ${own.tokens} tokens. ${escape(results.join(' '))}</desc>
<rect width="860" height="262" rx="10" fill="${colour.paper}" stroke="${colour.line}"/>
<text x="24" y="36" fill="${colour.text}" font-size="16" font-weight="700">Tool definitions sent to the model, at every turn</text>
${row(64, `${servers.length} servers, ${all.tools} tools`, all.tokens, colour.bad)}
${blocks(all.tools, colour.bad, 76)}
${row(132, `behind mcpzip: ${own.tools} tools, and ${meanSearch} tokens for a search when one is needed`, own.tokens, colour.good)}
${blocks(own.tools, colour.good, 148)}
<path d="M24 178h812" stroke="${colour.line}"/>
<text x="24" y="200" fill="${colour.text}" font-size="13"><tspan font-weight="700">Results.</tspan> ${escape(results[0])}</text>
<text x="24" y="220" fill="${colour.text}" font-size="13">${escape(results[1])}</text>
<text x="24" y="246" fill="${colour.faint}" font-size="11.5">Measured with real servers from npm and PyPI; tokens of o200k. All figures and the command: docs/answers.md</text>
</svg>
`;
}

const COLUMNS = 108;
const COLOURS = { 31: '#fb7185', 32: '#4ade80', 33: '#facc15', 34: '#60a5fa', 35: '#c084fc', 36: '#22d3ee' };

/** The lines of a terminal's picture as HTML for a page, where it stands still and its lines wrap; `from` is the first command shown. */
export function terminalHtml(svg, from = 0) {
  const lines = [...svg.matchAll(/<text [^>]*y="([\d.]+)"([^>]*)>(.*)<\/text>/g)].map(([, y, marks, text]) => ({ y: Number(y), goesOn: marks.includes('class="on"'), text }));
  const isCommand = ({ text }) => text.startsWith('<tspan fill="#4ade80" font-weight="700">$</tspan>');
  const shown = lines.slice(lines.indexOf(lines.filter(isCommand)[from]));
  const html = shown.map(({ y, goesOn, text }, index) => {
    const before = shown[index - 1];
    const end = !before || goesOn ? '' : y - before.y > 20 ? '\n\n' : '\n';
    return end + text.replace(/<tspan([^>]*)>/g, (_, marks) => `<span style="${[...marks.matchAll(/(fill|font-weight)="([^"]*)"/g)].map(([, name, value]) => `${name === 'fill' ? 'color' : name}:${value}`).join(';')}">`).replaceAll('</tspan>', '</span>');
  });
  return html.join('');
}

/** A line with ANSI colours as the parts of an SVG text. */
function spans(line) {
  let style = {};
  return line.split(/\u001b\[([\d;]*)m/).map((part, index) => {
    if (index % 2) {
      for (const code of (part || '0').split(';').map(Number)) {
        if (code === 0) style = {};
        else if (code === 1) style = { ...style, bold: true };
        else if (code === 2) style = { ...style, faint: true };
        else if (COLOURS[code]) style = { ...style, colour: COLOURS[code] };
      }
      return '';
    }
    if (!part) return '';
    const fill = style.colour ?? (style.faint ? '#8b949e' : undefined);
    const marks = [fill && `fill="${fill}"`, style.bold && 'font-weight="700"'].filter(Boolean).join(' ');
    return marks ? `<tspan ${marks}>${escape(part)}</tspan>` : escape(part);
  }).join('');
}

/** A colour, a space, or a word; a word that is longer than a line is broken. */
const PART = new RegExp(`\\u001b\\[[\\d;]*m|\\s|[^\\s\\u001b]{1,${COLUMNS}}`, 'gu');

/** A line in pieces of at most as many columns as the terminal has, broken after a space if there is one; the colours go on in the next piece. */
function wrapped(line) {
  const pieces = [''];
  let column = 0;
  let style = '';
  for (const [part] of line.matchAll(PART)) {
    if (part.startsWith('\u001b')) style = part === '\u001b[0m' ? '' : style + part;
    else {
      if (part !== ' ' && column + part.length > COLUMNS) {
        pieces.push(style);
        column = 0;
      }
      column += part.length;
    }
    pieces[pieces.length - 1] += part;
  }
  return pieces;
}

/**
 * A terminal that is typed into: `steps` are `{command, output}`, the output with its colours. The first step stands there from the first frame on; the
 * others play once, and stand still for readers who want no motion.
 */
export function terminal(steps, title) {
  const height = 17.5;
  const lines = [];
  let time = 0;
  for (const [index, { command, output }] of steps.entries()) {
    // The first step is a still: undefined times give no animation.
    const isStill = index === 0;
    const at = () => (isStill ? undefined : time);
    const typing = isStill ? 0 : Math.min(2.2, command.length * 0.035);
    const [first, ...others] = wrapped(`  ${command}`);
    lines.push({ text: `<tspan fill="#4ade80" font-weight="700">$</tspan>${escape(first.slice(1))}`, at: at(), typing });
    time += typing;
    for (const text of others) lines.push({ text: escape(text), at: at(), goesOn: true });
    time += isStill ? 0 : 0.35;
    for (const line of output) {
      for (const [piece, text] of wrapped(line).entries()) {
        lines.push({ text: spans(text), at: at(), goesOn: piece > 0 });
        time += isStill ? 0 : 0.04;
      }
    }
    lines.push({ text: '' });
    time += 1.1;
  }
  const top = 52;
  const size = Math.ceil(top + lines.length * height + 4);
  const body = lines.map(({ text, at, typing, goesOn }, index) => {
    if (!text) return '';
    const y = (top + index * height).toFixed(1);
    const motion = typing ? `type ${typing.toFixed(2)}s steps(40)` : 'show .01s';
    const style = at === undefined ? '' : ` style="animation:${motion} ${at.toFixed(2)}s both"`;
    // A page joins such a line to the one before it.
    const mark = goesOn ? ' class="on"' : '';
    return `<text x="18" y="${y}" xml:space="preserve"${mark}${style}>${text}</text>`;
  }).join('\n');
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 ${size}" role="img" aria-labelledby="t" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="12.6">
<title id="t">${escape(title)}</title>
<style>text{fill:#e6edf3;white-space:pre}@keyframes show{from{opacity:0}to{opacity:1}}@keyframes type{from{clip-path:inset(-2px 100% -2px 0)}to{clip-path:inset(-2px 0 -2px 0)}}@media (prefers-reduced-motion:reduce){text{animation:none!important}}</style>
<rect width="860" height="${size}" rx="10" fill="#0d1117" stroke="#30363d"/>
<circle cx="22" cy="19" r="5.5" fill="#f87171"/><circle cx="41" cy="19" r="5.5" fill="#fbbf24"/><circle cx="60" cy="19" r="5.5" fill="#34d399"/>
${body}
</svg>
`;
}
