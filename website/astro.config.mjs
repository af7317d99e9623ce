// A static site: no server, no analytics, no font or script from elsewhere. Search is an index that the build writes.
import starlight from '@astrojs/starlight';
import { defineConfig, passthroughImageService } from 'astro/config';

import { scrollingTables, withBase } from './scripts/base.mjs';
import { sourceAddress } from './scripts/lib.mjs';
import { markdownTwins } from './scripts/markdown.mjs';

// Where the site lies below its host, `/mcpzip` say; pages name each other from the root, and the plugin adds it.
const base = process.env.SITE_BASE || '/';
// The site's own address. Canonical links, the sitemap and the card of shared links need it, and are left out without it.
const site = process.env.SITE_URL || undefined;
// Links to the source, "edit this page" and dates of change need a repository, and are left out without one.
const source = sourceAddress();

const title = 'mcpzip';
const description = 'One MCP server in front of all your MCP servers';
const sidebar = [
  { label: 'Start', items: ['introduction', 'start/quick-start', 'start/install', 'start/how-it-works', 'start/upgrade'] },
  { label: 'Try it here', items: ['try/token-calculator', 'try/configuration-builder', 'try/recorded-searches'] },
  { label: 'Recipes', items: ['recipes/github-files-notes', 'recipes/team', 'recipes/team-logins', 'recipes/ci', 'recipes/two-accounts'] },
  { label: 'Guides', items: [
    'guides/migrate', 'guides/migrate-rules', 'guides/migrate-proxies', 'guides/servers', 'guides/commands', 'guides/openapi', 'guides/search', 'guides/small-answers', 'guides/scripts', 'guides/skills', 'guides/extensions', 'guides/transports', 'guides/oauth',
    'guides/daemon', 'guides/window', 'guides/rules', 'guides/profiles', 'guides/identities', 'guides/logins', 'guides/store', 'guides/scaling', 'guides/approvals', 'guides/scanner', 'guides/audit', 'guides/secrets', 'guides/sandbox', 'guides/security', 'guides/plugins', 'guides/docker', 'guides/library', 'guides/observability', 'guides/troubleshooting',
  ] },
  { label: 'Clients', collapsed: true, autogenerate: { directory: 'clients' } },
  { label: 'Reference', items: ['reference/meta-tools', 'reference/commands', 'reference/configuration', 'reference/environment', 'reference/glossary'] },
  {
    label: 'Project',
    items: ['project/performance', 'project/faults', 'project/comparison', 'project/native-search', 'project/architecture', 'project/contributing', 'project/faq', 'project/changelog'],
  },
];

export default defineConfig({
  base,
  site,
  trailingSlash: 'always',
  image: { service: passthroughImageService() },
  markdown: { rehypePlugins: [[withBase, base], scrollingTables] },
  integrations: [
    starlight({
      title,
      description,
      logo: { src: './src/assets/mark.svg', alt: '' },
      favicon: '/favicon.svg',
      customCss: ['./src/styles/site.css'],
      credits: false,
      lastUpdated: Boolean(source),
      pagination: true,
      // The page of errors is so long that it has every word; a page about the words is the better one.
      pagefind: { ranking: { pageLength: 0.8 } },
      tableOfContents: { minHeadingLevel: 2, maxHeadingLevel: 3 },
      // A picture beside each heading would be a third of the long reference pages.
      markdown: { headingLinks: false },
      expressiveCode: {
        themes: ['github-dark-high-contrast', 'github-light-high-contrast'],
        // Lines wrap, so that no block has to be scrolled sideways on a phone.
        defaultProps: { wrap: true, overridesByLang: { 'sh,text': { frame: 'none' } } },
        styleOverrides: { borderRadius: '0.4rem' },
      },
      sidebar,
      routeMiddleware: './src/lib/head.ts',
      ...(source && {
        social: [{ icon: 'github', label: 'Source', href: source }],
        editLink: { baseUrl: `${source}/edit/main/website/` },
      }),
    }),
    markdownTwins({ title, description, sidebar, base }),
  ],
});
