// Order of rows by one column. Unknown values come last whichever way.

export type SortValue = string | number | boolean | null | undefined;

export function sortRows<R>(rows: readonly R[], value: (row: R) => SortValue, descending: boolean): R[] {
  const keyed = rows.map((row, index) => ({ row, index, value: value(row) }));
  keyed.sort((a, b) => compare(a.value, b.value, descending) || a.index - b.index);
  return keyed.map((entry) => entry.row);
}

function compare(a: SortValue, b: SortValue, descending: boolean): number {
  const [noA, noB] = [unknown(a), unknown(b)];
  if (noA || noB) return Number(noA) - Number(noB);
  const order = typeof a === 'string' && typeof b === 'string' ? natural(a, b) : Number(a) - Number(b);
  return descending ? -order : order;
}

function unknown(value: SortValue): boolean {
  return value === null || value === undefined || value === '' || Number.isNaN(value);
}

/** Orders instants by their age; an unknown one has none. */
export function longAgo(instant: number | null): number | null {
  return instant === null ? null : -instant;
}

const collator = new Intl.Collator('en', { numeric: true });

/** `shard-2` before `shard-10`. */
export function natural(a: string, b: string): number {
  return collator.compare(a, b);
}
