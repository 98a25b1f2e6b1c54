// Penalty buckets by their metric labels (wire chapter §10).

/** 0, 0.5, 1 … 8388608, pinned: as the engine counts them, without `unspecified`. */
export const BUCKETS: readonly string[] = [
  '0',
  '0.5',
  ...Array.from({ length: 24 }, (_, power) => String(2 ** power)),
  'pinned',
];

/** The label with its dollars, `$1k` for 1024-ish where room is short. */
export function bucketText(label: string | null | undefined): string {
  if (!label) return '—';
  if (label === 'pinned') return 'pinned';
  if (label === 'unspecified') return '$0';
  const value = Number(label);
  if (!Number.isFinite(value)) return label;
  return `$${value.toLocaleString('en-US')}`;
}

/** `$8.4M`, for axes. */
export function bucketShort(label: string): string {
  const value = Number(label);
  if (!Number.isFinite(value)) return label;
  if (value < 1024) return `$${label}`;
  return `$${value.toLocaleString('en-US', { notation: 'compact', maximumFractionDigits: 0 })}`;
}

/** Place in the order of buckets; unknown labels last. */
export function bucketRank(label: string): number {
  const rank = BUCKETS.indexOf(label === 'unspecified' ? '0' : label);
  return rank < 0 ? BUCKETS.length : rank;
}
