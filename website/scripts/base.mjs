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
