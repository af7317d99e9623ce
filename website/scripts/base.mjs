// Small changes of the pages' HTML, made when they are built.

/** A rehype plugin: puts `base` before links from the root, so that pages need not know where the site lies. */
export function withBase(base) {
  const prefix = base.replace(/\/$/, '');
  const visit = (node) => {
    for (const key of ['href', 'src']) {
      const value = node.properties?.[key];
      if (typeof value === 'string' && value.startsWith('/') && !value.startsWith('//')) {
        node.properties[key] = prefix + value;
      }
    }
    node.children?.forEach(visit);
  };
  return prefix ? visit : () => {};
}

/**
 * A rehype plugin: tables that are wider than the page scroll by the keyboard too, and an empty corner is not a heading.
 */
export function scrollingTables() {
  return (tree) => {
    let count = 0;
    const visit = (node) => {
      node.children?.forEach((child, index) => {
        visit(child);
        if (child.tagName === 'th' && !child.children.length) child.tagName = 'td';
        if (child.tagName !== 'table') return;
        count += 1;
        const properties = { className: ['table'], tabIndex: 0, role: 'region', ariaLabel: `Table ${count}` };
        node.children[index] = { type: 'element', tagName: 'div', properties, children: [child] };
      });
    };
    visit(tree);
  };
}

/** The address of a page's twin, from the page's path: `/guides/search/` has `/guides/search.md`. */
export const twin = (path) => (path === '/' ? '/index.md' : `${path.replace(/\/$/, '')}.md`);
