// Where the samples of a plot begin.

/** Points that are drawn at least, known or not. */
const LEAST = 8;

/** The last point before anything is known, so that the first known one stands off the axis. */
export function beginning(series: readonly (readonly (number | null | undefined)[])[]): number {
  const length = Math.max(0, ...series.map((values) => values.length));
  let first = 0;
  while (first < length && series.every((values) => (values[first] ?? null) === null)) first += 1;
  // Nothing at all is known: that takes the whole range to say.
  if (first === length) return 0;
  return Math.max(0, Math.min(first - 1, length - LEAST));
}
