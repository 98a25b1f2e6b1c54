import { beginning } from './beginning';
import { describe, expect, it } from 'vitest';
import { inOrder, STATES } from './colours';
import { longAgo, natural, sortRows } from './sort';
import { scrollFor, VIRTUAL_ABOVE, visibleRows } from './window';

describe('order', () => {
  it('puts unknown last, whichever way', () => {
    const rows = [{ n: 2 }, { n: null }, { n: 1 }];
    expect(sortRows(rows, (row) => row.n, false).map((row) => row.n)).toEqual([1, 2, null]);
    expect(sortRows(rows, (row) => row.n, true).map((row) => row.n)).toEqual([2, 1, null]);
  });
  it('by age puts what has none last, whichever way', () => {
    const rows = [{ at: null }, { at: 5 }, { at: 9 }];
    expect(sortRows(rows, (row) => longAgo(row.at), false).map((row) => row.at)).toEqual([9, 5, null]);
    expect(sortRows(rows, (row) => longAgo(row.at), true).map((row) => row.at)).toEqual([5, 9, null]);
  });
  it('is stable and counts as people do', () => {
    expect(['shard-10', 'shard-2'].sort(natural)).toEqual(['shard-2', 'shard-10']);
    const rows = [
      { a: 1, b: 'x' },
      { a: 1, b: 'y' },
    ];
    expect(sortRows(rows, (row) => row.a, true).map((row) => row.b)).toEqual(['x', 'y']);
  });
  it('of states is that of their life, others after', () => {
    expect(inOrder({ zombie: 1, idle: 2, configured: 3 }, STATES).map(([name]) => name)).toEqual([
      'configured',
      'idle',
      'zombie',
    ]);
  });
});

describe('the window', () => {
  it('is everything up to 150 rows', () => {
    expect(visibleRows(VIRTUAL_ABOVE, 34, 9000, 600)).toEqual({ from: 0, to: 150 });
  });
  it('is what is in sight, and some, above', () => {
    const { from, to } = visibleRows(20_000, 34, 340_000, 680);
    expect(from).toBeLessThanOrEqual(10_000);
    expect(to).toBeGreaterThanOrEqual(10_020);
    expect(to - from).toBeLessThan(60);
  });
  it('never leaves the rows', () => {
    expect(visibleRows(200, 34, 1e9, 600).to).toBe(200);
    expect(visibleRows(200, 34, -50, 600).from).toBe(0);
    const gone = visibleRows(200, 34, 1e9, 600);
    expect(gone.to).toBeGreaterThan(gone.from);
  });
  it('scrolls only when a row is not seen whole', () => {
    expect(scrollFor(5, 34, 0, 600)).toBeNull();
    expect(scrollFor(0, 34, 100, 600)).toBe(0);
    expect(scrollFor(100, 34, 0, 600)).toBe(101 * 34 - 600);
  });
});

describe('where a plot begins', () => {
  const nulls = (n: number): null[] => new Array<null>(n).fill(null);
  it.each([
    ['at once', [[1, 2, 3]], 0],
    [
      'one before the first known of any series',
      [
        [...nulls(50), ...Array(30).fill(1)],
        [...nulls(40), ...Array(40).fill(0)],
      ],
      39,
    ],
    ['with enough points to be a line', [[...nulls(118), 1, 2]], 112],
    ['with the range where nothing is known', [nulls(120)], 0],
    ['nowhere', [], 0],
  ])('%s', (_, series, from) => expect(beginning(series as (number | null)[][])).toBe(from));
});
