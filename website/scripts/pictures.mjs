// The two pictures of the README: what tools cost, from docs/answers.md, and a terminal, from a run that was recorded.
import { answers } from './measured.mjs';

const escape = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
const figure = (value) => value.toLocaleString('en');
const SANS = "-apple-system, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif";
const THEMES = {
  light: { text: '#1f2328', faint: '#59636e', bad: '#be123c', good: '#0f766e', line: '#d1d9e0', paper: '#ffffff' },
  dark: { text: '#f0f6fc', faint: '#9198a1', bad: '#fb7185', good: '#2dd4bf', line: '#3d444d', paper: '#0d1117' },
};

/** What is before the model at each turn, a block for each tool; and three results of calls. */
export function problem(theme) {
  const colour = THEMES[theme];
  const { all, own, servers, total, calls, filtered, meanSearch } = answers();
  const blocks = (count, fill, x, y, columns) => Array.from({ length: count }, (_, index) => `<rect x="${x + (index % columns) * 15}" y="${y + Math.floor(index / columns) * 15}" width="12" height="12" rx="2.5" fill="${fill}"/>`).join('');
  const bar = (y, title, before, after) => {
    const width = 290;
    return `<text x="490" y="${y}" fill="${colour.text}" font-size="13.5">${escape(title)}</text>
<rect x="490" y="${y + 9}" width="${width}" height="11" rx="3" fill="${colour.bad}"/><text x="${490 + width + 8}" y="${y + 19}" fill="${colour.text}" font-size="13">${figure(before)}</text>
<rect x="490" y="${y + 25}" width="${Math.max(3, (width * after) / before).toFixed(1)}" height="11" rx="3" fill="${colour.good}"/><text x="${490 + Math.max(3, (width * after) / before) + 8}" y="${y + 35}" fill="${colour.good}" font-size="13" font-weight="600">${figure(after)}</text>`;
  };
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 262" font-family="${SANS}" role="img" aria-labelledby="t d">
<title id="t">What tools cost an agent, without and with mcpzip</title>
<desc id="d">${servers.length} servers with ${all.tools} tools are ${figure(all.tokens)} tokens of definitions at every turn; mcpzip shows ${own.tools} tools with ${own.tokens} tokens. ${escape(total.call)} gave ${figure(total.raw)} tokens of results, ${figure(total.shown)} through mcpzip.</desc>
<rect width="860" height="262" rx="10" fill="${colour.paper}" stroke="${colour.line}"/>
<text x="24" y="36" fill="${colour.text}" font-size="16" font-weight="700">Before the model, at every turn</text>
<text x="24" y="66" fill="${colour.text}" font-size="13.5">${servers.length} servers, ${all.tools} tools</text>
${blocks(all.tools, colour.bad, 24, 78, 22)}
<text x="366" y="92" fill="${colour.bad}" font-size="20" font-weight="700">${figure(all.tokens)}</text><text x="366" y="110" fill="${colour.faint}" font-size="12.5">tokens</text>
<text x="24" y="160" fill="${colour.text}" font-size="13.5">the same behind mcpzip</text>
${blocks(own.tools, colour.good, 24, 172, 22)}
<text x="366" y="184" fill="${colour.good}" font-size="20" font-weight="700">${figure(own.tokens)}</text><text x="366" y="202" fill="${colour.faint}" font-size="12.5">tokens</text>
<text x="24" y="214" fill="${colour.faint}" font-size="12.5">and ${meanSearch} for a search, when one is needed</text>
<path d="M462 24v214" stroke="${colour.line}"/>
<text x="490" y="36" fill="${colour.text}" font-size="16" font-weight="700">What the tools answer</text>
${bar(66, `${calls.length} calls, whatever comes`, total.raw, total.shown)}
${bar(134, `the ${filtered.calls} of them where a jq filter makes sense`, filtered.raw, filtered.select)}
<text x="490" y="214" fill="${colour.faint}" font-size="12.5">what is not shown is stored, and can be read</text>
<text x="24" y="246" fill="${colour.faint}" font-size="11.5">Measured with real servers from npm and PyPI; tokens of o200k. All figures and the command: docs/answers.md</text>
</svg>
`;
}

const COLUMNS = 108;
const COLOURS = { 31: '#fb7185', 32: '#4ade80', 33: '#facc15', 34: '#60a5fa', 35: '#c084fc', 36: '#22d3ee' };

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

/** A line in pieces of as many columns as the terminal has; the colours go on in the next piece. */
function wrapped(line) {
  const pieces = [''];
  let column = 0;
  let style = '';
  for (const [part] of line.matchAll(/\u001b\[[\d;]*m|[\s\S]/gu)) {
    if (part.startsWith('\u001b')) style = part === '\u001b[0m' ? '' : style + part;
    else if (column === COLUMNS) {
      pieces.push(style);
      column = 0;
    }
    if (!part.startsWith('\u001b')) column += 1;
    pieces[pieces.length - 1] += part;
  }
  return pieces;
}

/** A terminal that is typed into: `steps` are `{command, output}`, the output with its colours. It plays once, and stands still for those who want no motion. */
export function terminal(steps, title) {
  const height = 17.5;
  const lines = [];
  let time = 0.4;
  for (const { command, output } of steps) {
    const typing = Math.min(2.2, command.length * 0.035);
    const [first, ...others] = wrapped(`  ${command}`);
    lines.push({ text: `<tspan fill="#4ade80" font-weight="700">$</tspan>${escape(first.slice(1))}`, at: time, typing });
    time += typing;
    for (const text of others) lines.push({ text: escape(text), at: time });
    time += 0.35;
    for (const line of output.flatMap(wrapped)) {
      lines.push({ text: spans(line), at: time });
      time += 0.04;
    }
    lines.push({ text: '', at: time });
    time += 1.1;
  }
  const top = 52;
  const size = Math.ceil(top + lines.length * height + 4);
  const body = lines.map(({ text, at, typing }, index) => {
    if (!text) return '';
    const y = (top + index * height).toFixed(1);
    const style = typing ? `animation:type ${typing.toFixed(2)}s steps(40) ${at.toFixed(2)}s both` : `animation:show .01s ${at.toFixed(2)}s both`;
    return `<text x="18" y="${y}" xml:space="preserve" style="${style}">${text}</text>`;
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
