// Which rows of a long table are in the document.

/** Above this many rows only those in sight are. */
export const VIRTUAL_ABOVE = 150;
const MARGIN = 12;

export interface Window {
  from: number;
  to: number;
}

export function visibleRows(total: number, rowHeight: number, scrollTop: number, height: number): Window {
  if (total <= VIRTUAL_ABOVE) return { from: 0, to: total };
  const first = Math.floor(Math.max(0, scrollTop) / rowHeight) - MARGIN;
  const last = Math.ceil((Math.max(0, scrollTop) + height) / rowHeight) + MARGIN;
  const from = Math.min(Math.max(0, first), Math.max(0, total - 1));
  return { from, to: Math.min(total, Math.max(last, from + 1)) };
}

/** Where to scroll so that a row is seen whole; `null` where it is. */
export function scrollFor(index: number, rowHeight: number, scrollTop: number, height: number): number | null {
  const top = index * rowHeight;
  if (top < scrollTop) return top;
  if (top + rowHeight > scrollTop + height) return top + rowHeight - height;
  return null;
}
