// How values are written. Unknown is a dash, never a zero: a zero hides a dead source.

export const UNKNOWN = '—';

type Maybe<T> = T | null | undefined;

export function count(value: Maybe<number>): string {
  return known(value) ? Math.round(value).toLocaleString('en-US') : UNKNOWN;
}

/** `1.2M` where room is short. */
export function compact(value: Maybe<number>): string {
  if (!known(value)) return UNKNOWN;
  if (Math.abs(value) < 10_000) return count(value);
  return value.toLocaleString('en-US', { notation: 'compact', maximumFractionDigits: 1 });
}

export function decimal(value: Maybe<number>, digits = 1): string {
  if (!known(value)) return UNKNOWN;
  return value.toLocaleString('en-US', { maximumFractionDigits: digits });
}

export function dollars(value: Maybe<number>, digits = 2): string {
  if (!known(value)) return UNKNOWN;
  const amount = Math.abs(value).toLocaleString('en-US', {
    minimumFractionDigits: digits,
    maximumFractionDigits: Math.abs(value) > 0 && Math.abs(value) < 0.01 ? 4 : digits,
  });
  return `${value < 0 ? '−' : ''}$${amount}`;
}

export function perHour(value: Maybe<number>): string {
  return known(value) ? `${dollars(value)}/h` : UNKNOWN;
}

export function share(value: Maybe<number>): string {
  return known(value) ? `${decimal(value * 100, value < 0.1 ? 1 : 0)} %` : UNKNOWN;
}

/** A rate a second, in the unit that leaves a readable number. */
export function rate(perSecond: Maybe<number>): string {
  if (!known(perSecond)) return UNKNOWN;
  if (perSecond === 0) return '0/s';
  return perSecond >= 1 ? `${decimal(perSecond)}/s` : `${decimal(perSecond * 60, 2)}/min`;
}

/** `340 µs`, `12 ms`, `1.4 s`, `3 min 20 s`, `2 h 5 min`, `4 d 2 h`. */
export function duration(seconds: Maybe<number>): string {
  if (!known(seconds)) return UNKNOWN;
  const size = Math.abs(seconds);
  const sign = seconds < 0 ? '−' : '';
  if (size === 0) return '0 s';
  // Where rounding reaches the next unit, it is the next unit.
  if (size < 0.0009995) return `${sign}${decimal(size * 1e6, 0)} µs`;
  if (size < 0.9995) return `${sign}${decimal(size * 1e3, size < 0.01 ? 1 : 0)} ms`;
  if (size < 59.5) return `${sign}${decimal(size, size < 10 ? 1 : 0)} s`;
  return sign + whole(Math.round(size));
}

/** An age in whole units, `0 s` for the future: clocks differ. */
export function age(seconds: Maybe<number>): string {
  if (!known(seconds)) return UNKNOWN;
  const size = Math.max(0, Math.floor(seconds));
  return size < 60 ? `${size} s` : whole(size);
}

function whole(size: number): string {
  const units: [number, string][] = [
    [86_400, 'd'],
    [3_600, 'h'],
    [60, 'min'],
    [1, 's'],
  ];
  const first = units.findIndex(([unit]) => size >= unit);
  const [unit, name] = units[first] ?? [1, 's'];
  const next = units[first + 1];
  const rest = next ? Math.floor((size % unit) / next[0]) : 0;
  return `${Math.floor(size / unit)} ${name}${next && rest > 0 ? ` ${rest} ${next[1]}` : ''}`;
}

/** Local wall clock with seconds; the title of an element carries the whole instant. */
export function clock(milliseconds: Maybe<number>): string {
  if (!known(milliseconds)) return UNKNOWN;
  return new Date(milliseconds).toLocaleTimeString('en-GB', { hour12: false });
}

/** `2026-11-16 08:12:34 UTC`: the same for everybody who looks. */
export function instant(milliseconds: Maybe<number>): string {
  if (!known(milliseconds)) return UNKNOWN;
  return `${new Date(milliseconds).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/** Nanoseconds since the epoch as milliseconds; 0 means that nothing has happened. */
export function nanosToMillis(nanos: Maybe<number>): number | null {
  return known(nanos) && nanos > 0 ? nanos / 1e6 : null;
}

export function orUnknown(text: Maybe<string>): string {
  return text ? text : UNKNOWN;
}

/** `ON_DEMAND` and `on_demand` as `on-demand`; `IDLE` as `idle`. */
export function plain(label: Maybe<string>): string {
  return label ? label.toLowerCase().replaceAll('_', '-') : UNKNOWN;
}

export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

export function known(value: Maybe<number>): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}

/** The sum of what is known; `null` where a part is not, or nothing is. */
export function sumKnown(parts: Iterable<Maybe<number>>): number | null {
  let sum: number | null = null;
  for (const part of parts) {
    if (!known(part)) return null;
    sum = (sum ?? 0) + part;
  }
  return sum;
}

/** `Foo bar` of `foo bar`. */
export function sentence(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
