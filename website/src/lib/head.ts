// The elements of each page's head in addition to Starlight's: a link to its Markdown and, if the site's address is known, its card.
import { defineRouteMiddleware } from '@astrojs/starlight/route-data';
import { twin } from '../../scripts/base.mjs';

export const onRequest = defineRouteMiddleware(({ locals, site, url }) => {
  const { head, entry } = locals.starlightRoute;
  if (entry.id === '404') return;
  const base = import.meta.env.BASE_URL.replace(/\/$/, '');
  head.push({ tag: 'link', attrs: { rel: 'alternate', type: 'text/markdown', href: base + twin(url.pathname.slice(base.length)) } });
  if (site) head.push({ tag: 'meta', attrs: { property: 'og:image', content: new URL(`${base}/card.png`, site).href } });
});
