// Pages that are files of the repository too.
import { need, page, write } from './lib.mjs';

const PAGES = {
  'docs/search.md': '/guides/search/', 'docs/answers.md': '/guides/small-answers/', 'docs/doctor.md': '/guides/troubleshooting/',
  'docs/performance.md': '/project/performance/', 'docs/faults.md': '/project/faults/', 'docs/secrets.md': '/guides/secrets/', 'docs/sandbox.md': '/guides/sandbox/', 'docs/observability.md': '/guides/observability/', 'docs/releasing.md': '/project/contributing/#releases',
  'ARCHITECTURE.md': '/project/architecture/', 'CHANGELOG.md': '/project/changelog/', 'CONTRIBUTING.md': '/project/contributing/',
  'README.md': '/introduction/', 'SECURITY.md': '/guides/security/', 'config.example.json': '/reference/configuration/#an-example',
};

/** A link to a file becomes one to its page; one to a file without a page stays as words. */
export function withPages(markdown) {
  return markdown.replace(/\[([^\]]+)\]\((?!https?:|#|mailto:|\/)([^)\s]+)\)/g, (whole, text, target) => {
    const [file, anchor] = target.replace(/^\.\//, '').replace(/^\.\.\//, '').split('#');
    const found = PAGES[file] ?? PAGES[`docs/${file}`];
    return found ? `[${text}](${anchor && !found.includes('#') ? `${found}#${anchor}` : found})` : text;
  });
}

/** A block without a language is a drawing in letters: it keeps its form, and scrolls by the keyboard too. */
export function withDrawings(markdown) {
  let count = 0;
  // Blocks with a language are matched too, so that the end of one is not taken for a beginning.
  return markdown.replace(/^```([^\n]*)\n([\s\S]*?)^```$/gm, (whole, language, text) => {
    if (language) return whole;
    count += 1;
    const safe = text.trimEnd().replaceAll('&', '&amp;').replaceAll('<', '&lt;');
    return `<pre class="plain drawing" tabindex="0" role="region" aria-label="Drawing ${count}"><code>${safe}</code></pre>`;
  });
}

const withoutTitle = (markdown) => markdown.replace(/^#\s.*\n/, '');

export function fromRepository() {
  const copy = (file, to, title, description, edit = (text) => text) =>
    write(`src/content/docs/${to}.md`, page(title, description, withDrawings(withPages(edit(withoutTitle(need(file, 'It is part of the repository.')))))));
  copy('ARCHITECTURE.md', 'project/architecture', 'Architecture and internals', 'The map of the code');
  copy('docs/observability.md', 'guides/observability', 'Observability', 'Logs, metrics for Prometheus, and traces for OpenTelemetry');
  copy('docs/secrets.md', 'guides/secrets', 'Secrets', 'Keep secrets in the keychain or an encrypted file, and out of the configuration');
  copy('docs/sandbox.md', 'guides/sandbox', 'Servers in a sandbox', 'Limit what a local server may read, write and reach');
  copy('docs/faults.md', 'project/faults', 'When things break', 'What clients get, and after how long, when servers, files and networks fail: measured by the tests');
  copy('CHANGELOG.md', 'project/changelog', 'Changelog', 'What changed, the newest first');
  copy('CONTRIBUTING.md', 'project/contributing', 'Contributing', 'From a clone to the first passing test, and what a change needs');
}
