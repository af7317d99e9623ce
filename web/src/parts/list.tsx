// A list of any length: only the rows in sight are in the page. One stop of the Tab key; arrows, Page Up and Down, Home and End move, Enter opens.
import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from '@tanstack/virtual-core';
import type { ComponentChildren, TargetedKeyboardEvent } from 'preact';
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';

interface Props<T> {
  items: readonly T[];
  label: string;
  keyOf: (item: T) => string;
  row: (item: T) => ComponentChildren;
  open?: (item: T) => void;
  /** Pixels of a row. */
  height: number;
  header?: ComponentChildren;
  /** The class that lays out header and rows. */
  columns: string;
  empty: ComponentChildren;
  /** Whether the last row is kept in sight while it is. */
  isFollowed?: boolean;
}

export function List<T>({ items, label, keyOf, row, open, height, header, columns, empty, isFollowed }: Props<T>) {
  const scroller = useRef<HTMLDivElement>(null);
  const id = useId();
  const [, redraw] = useState(0);
  const [active, setActive] = useState<string>();
  const virtualizer = useRef<Virtualizer<HTMLDivElement, HTMLDivElement> | undefined>(undefined);
  const options = {
    count: items.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => height,
    overscan: 8,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    onChange: () => redraw((turn) => turn + 1),
    initialRect: { width: 0, height: 800 },
  };
  const list = (virtualizer.current ??= new Virtualizer<HTMLDivElement, HTMLDivElement>(options));
  const before = useRef(height);
  list.setOptions({ ...list.options, ...options });
  const hasRows = items.length > 0;
  useLayoutEffect(() => {
    if (!hasRows) return undefined;
    const end = list._didMount();
    list._willUpdate();
    redraw((turn) => turn + 1);
    return end;
  }, [hasRows]);
  useLayoutEffect(() => {
    list._willUpdate();
    if (before.current !== height) list.measure();
    before.current = height;
  });
  const isAtEnd = useRef(true);
  useEffect(() => {
    if (isFollowed && isAtEnd.current) scroller.current?.scrollTo({ top: scroller.current.scrollHeight });
  }, [items, isFollowed]);
  if (!hasRows) return <div class="empty">{empty}</div>;

  const found = items.findIndex((item) => keyOf(item) === active);
  const at = found < 0 ? 0 : found;
  const move = (to: number) => {
    const next = Math.max(0, Math.min(items.length - 1, to));
    const item = items[next];
    if (item === undefined) return;
    setActive(keyOf(item));
    list.scrollToIndex(next);
  };
  const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 400) / height) - 1);
  const press = (event: TargetedKeyboardEvent<HTMLDivElement>) => {
    const first = found < 0;
    const steps: Record<string, number> = { ArrowDown: first ? 0 : at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: items.length - 1 };
    const step = steps[event.key];
    if (step !== undefined) move(step);
    else if ((event.key === 'Enter' || event.key === ' ') && open) {
      const item = items[at];
      if (item !== undefined) open(item);
    } else return;
    event.preventDefault();
  };
  const shown = list.getVirtualItems();
  const isActiveShown = found >= 0 && shown.some(({ index }) => index === found);
  return (
    <div class={`list ${columns}`}>
      {header && <div class="row head" aria-hidden="true">{header}</div>}
      <div
        ref={scroller} class="scroller" role="listbox" tabIndex={0} aria-label={label}
        aria-activedescendant={isActiveShown ? `${id}-${found}` : undefined} onKeyDown={press}
        onScroll={({ currentTarget: box }) => (isAtEnd.current = box.scrollTop + box.clientHeight > box.scrollHeight - height)}
      >
        <div role="presentation" style={{ height: `${list.getTotalSize()}px`, position: 'relative' }}>
          {shown.map(({ index, start }) => {
            const item = items[index];
            if (item === undefined) return null;
            const key = keyOf(item);
            return (
              <div
                key={key} id={`${id}-${index}`} role="option" aria-selected={key === active} aria-setsize={items.length} aria-posinset={index + 1}
                class={`row ${key === active ? 'active' : ''} ${open ? 'opens' : ''}`} style={{ height: `${height}px`, transform: `translateY(${start}px)` }}
                onClick={() => { setActive(key); open?.(item); }}
              >
                {row(item)}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}
