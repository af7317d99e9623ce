// Programs read the site too: after a build each page gets a Markdown twin (`/guides/search.md` next to `/guides/search/`), made from its HTML,
// and `llms.txt` lists them all (https://llmstxt.org).
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import rehypeParse from 'rehype-parse';
import rehypeRemark from 'rehype-remark';
import remarkGfm from 'remark-gfm';
import remarkStringify from 'remark-stringify';
import { unified } from 'unified';
import { twin } from './base.mjs';

const REMOVED = new Set(['script', 'style', 'template', 'button', 'noscript', 'form', 'datalist']);
/** The elements in which white space between children means nothing; written into a Markdown table, it would be `&#xA;`. */
const ROWS = new Set(['table', 'thead', 'tbody', 'tr']);
const classes = (node) => [node.properties?.className ?? []].flat();
const text = (node) => (node.type === 'text' ? node.value : (node.children ?? []).map(text).join(''));
const find = (node, test) => (test(node) ? node : (node.children ?? []).reduce((found, child) => found ?? find(child, test), undefined));

/** Puts what has no Markdown into words: drawings become their descriptions, samples plain code, controls go. */
function plain(node) {
  node.children = (node.children ?? []).flatMap((child) => {
    if (child.type === 'text' && ROWS.has(node.tagName)) return [];
    if (REMOVED.has(child.tagName) || child.properties?.role === 'tablist' || classes(child).includes('sr-only')) return [];
    if (child.tagName === 'svg') {
      const desc = find(child, ({ tagName }) => tagName === 'desc');
      const isRepeated = classes(child).includes('narrow');
      return desc && !isRepeated ? [{ type: 'element', tagName: 'p', properties: {}, children: [{ type: 'text', value: text(desc) }] }] : [];
    }
    if (child.tagName === 'pre') {
      const lines = [];
      const collect = (part) => (classes(part).includes('ec-line') ? lines.push(text(part).replace(/\n$/, '')) : part.children?.forEach(collect));
      collect(child);
      const language = child.properties.dataLanguage;
      const code = { type: 'element', tagName: 'code', properties: language ? { className: [`language-${language}`] } : {}, children: [{ type: 'text', value: lines.length ? lines.join('\n') : text(child) }] };
      return [{ type: 'element', tagName: 'pre', properties: {}, children: [code] }];
    }
    plain(child);
    return [child];
  });
  return node;
}

const writer = unified().use(rehypeRemark).use(remarkGfm).use(remarkStringify, { bullet: '-', emphasis: '*' });

/** A page's HTML as Markdown, with its title and description; undefined where it has no content of its own. */
export function toMarkdown(html) {
  const tree = unified().use(rehypeParse).parse(html);
  const meta = (name) => find(tree, ({ tagName, properties }) => tagName === 'meta' && properties.name === name)?.properties.content ?? '';
  const content = find(tree, (node) => classes(node).includes('sl-markdown-content'));
  const heading = find(tree, ({ tagName }) => tagName === 'h1');
  if (!content || !heading) return undefined;
  const title = text(heading).trim();
  const tagline = find(tree, (node) => classes(node).includes('tagline'));
  const intro = tagline ? text(tagline).trim() : meta('description');
  // A line break at the edge of a paragraph is written as an entity, and means nothing.
  const body = writer.stringify(writer.runSync({ type: 'root', children: plain(content).children })).replace(/^(?:&#xA;)+|(?:&#xA;)+$/gm, '');
  return { title, description: meta('description'), markdown: `# ${title}\n\n${intro ? `> ${intro}\n\n` : ''}${body.trim()}\n` };
}

/** The integration: `sidebar` gives `llms.txt` its order and its headings. */
export function markdownTwins({ title, description, sidebar, base }) {
  const prefix = base.replace(/\/$/, '');
  return {
    name: 'mcpzip-markdown',
    hooks: {
      'astro:build:done': ({ dir }) => {
        const dist = fileURLToPath(dir);
        const made = {};
        for (const name of readdirSync(dist, { recursive: true })) {
          if (!name.endsWith('index.html')) continue;
          const path = `/${relative(dist, dirname(join(dist, name))).replaceAll('\\', '/')}/`.replace('//', '/');
          const page = toMarkdown(readFileSync(join(dist, name), 'utf8'));
          if (!page) continue;
          writeFileSync(join(dist, twin(path)), page.markdown);
          made[path] = page;
        }
        const line = (path) => (made[path] ? `- [${made[path].title}](${prefix}${twin(path)}): ${made[path].description}` : undefined);
        const paths = ({ items, autogenerate }) => (autogenerate ? Object.keys(made).filter((path) => path.startsWith(`/${autogenerate.directory}/`)).sort() : items.map((item) => `/${item}/`));
        const groups = sidebar.map((group) => `## ${group.label}\n\n${paths(group).map(line).filter(Boolean).join('\n')}\n`);
        writeFileSync(join(dist, 'llms.txt'), `# ${title}\n\n> ${description}\n\n${groups.join('\n')}`);
      },
    },
  };
}
