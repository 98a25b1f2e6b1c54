// Everything that a view depends on stands in its URL, so that a link reproduces it.

export type Query = Record<string, string>;

/** The path below the base, with a leading slash and without a trailing one. */
export function below(base: string, pathname: string): string {
  const prefix = base.endsWith('/') ? base.slice(0, -1) : base;
  const rest = pathname.startsWith(prefix) ? pathname.slice(prefix.length) : pathname;
  const trimmed = rest.replace(/\/+$/, '');
  return trimmed.startsWith('/') ? trimmed : `/${trimmed}`;
}

/** Parameters of `/shards/:pod` in a path, decoded; `null` where it does not match. */
export function match(pattern: string, path: string): Query | null {
  const wanted = pattern.split('/');
  const given = path.split('/');
  if (wanted.length !== given.length) return null;
  const found: Query = {};
  for (const [index, part] of wanted.entries()) {
    const value = given[index] ?? '';
    if (part.startsWith(':')) {
      const decoded = decode(value);
      if (decoded === null || decoded === '') return null;
      found[part.slice(1)] = decoded;
    } else if (part !== value) return null;
  }
  return found;
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/** First value of every parameter. */
export function parseQuery(search: string): Query {
  const query: Query = {};
  for (const [name, value] of new URLSearchParams(search)) query[name] ??= value;
  return query;
}

/** `?a=1&b=2` by name, so that equal views have equal links; empty values are left out. */
export function formatQuery(query: Record<string, string | number | null | undefined>): string {
  const pairs = Object.entries(query)
    .filter((pair): pair is [string, string | number] => pair[1] !== null && pair[1] !== undefined && pair[1] !== '')
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const text = new URLSearchParams(pairs.map(([name, value]) => [name, String(value)])).toString();
  return text === '' ? '' : `?${text}`;
}

/** `query` with some parameters changed; `null` takes one out. */
export function change(query: Query, by: Record<string, string | null>): Query {
  const changed = { ...query };
  for (const [name, value] of Object.entries(by)) {
    if (value === null || value === '') delete changed[name];
    else changed[name] = value;
  }
  return changed;
}

/** A change that takes these parameters out. */
export function without(names: readonly string[]): Record<string, null> {
  return Object.fromEntries(names.map((name) => [name, null]));
}

export interface Sort {
  key: string;
  descending: boolean;
}

/** `-machines` sorts by machines, most first. */
export function parseSort(text: string | undefined, keys: readonly string[], fallback: Sort | null): Sort | null {
  if (!text) return fallback;
  const descending = text.startsWith('-');
  const key = descending ? text.slice(1) : text;
  return keys.includes(key) ? { key, descending } : fallback;
}

export function formatSort(sort: Sort): string {
  return (sort.descending ? '-' : '') + sort.key;
}

export const RANGES = ['15m', '1h', '6h', '24h'] as const;
export type Range = (typeof RANGES)[number];
export const USUAL_RANGE: Range = '1h';

/** A time range that the server takes, with a step of about 120 points. */
export function range(text: string | undefined): { duration: Range; step: string } {
  const duration = RANGES.find((known) => known === text) ?? USUAL_RANGE;
  const step = { '15m': '10s', '1h': '30s', '6h': '3m', '24h': '12m' }[duration];
  return { duration, step };
}
