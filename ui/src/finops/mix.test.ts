import { describe, expect, it } from 'vitest';
import { demandBars, mixOf, moneyByType, shade, sumBy } from './mix';

describe('FinOps sums', () => {
  it('leave out what does not exist yet', () => {
    expect(mixOf({ spot: { configured: 3, speculative: 900 }, reserved: { idle: 1 } })).toEqual([
      ['reserved', 1],
      ['spot', 3],
    ]);
  });
  it('keep unknown money unknown', () => {
    expect(moneyByType({ spot: { configured: 1.5, idle: 0.5 }, reserved: { configured: 1, idle: null } })).toEqual([
      ['reserved', null],
      ['spot', 2],
    ]);
    expect(mixOf({ spot: { configured: 3, idle: null } })).toEqual([['spot', null]]);
  });
  it('show buckets in use, in their order', () => {
    expect(
      demandBars({ buckets: ['pinned', '16', '0'], demandByBucket: [1, 0, 2], supplyByBucket: [0, 0, 5] }).map(
        (row) => row.bucket,
      ),
    ).toEqual(['0', 'pinned']);
    expect(demandBars({ buckets: ['0'], demandByBucket: null, supplyByBucket: [4] })).toEqual([
      { bucket: '0', demand: null, supply: 4 },
    ]);
  });
  it('tell a bucket of which a side is not known', () => {
    expect(demandBars({ buckets: ['0', '16'], demandByBucket: [null, 0], supplyByBucket: [0, 0] })).toEqual([
      { bucket: '0', demand: null, supply: 0 },
    ]);
  });
  it('shade by order of magnitude', () => {
    expect(shade(0, 1000)).toBe(0);
    expect(shade(null, 1000)).toBe(0);
    expect(shade(1, 1000)).toBe(1);
    expect(shade(1000, 1000)).toBe(5);
    expect(shade(30, 1000)).toBeGreaterThan(shade(1, 1000));
  });
  it('sum by a name, most money first', () => {
    const rows = [
      { c: 'a', machines: 1, dollarsPerHour: 1 },
      { c: 'b', machines: 2, dollarsPerHour: null },
      { c: 'a', machines: 3, dollarsPerHour: 2 },
      { c: 'b', machines: 1, dollarsPerHour: 5 },
    ];
    expect(sumBy(rows, (row) => row.c)).toEqual([
      { name: 'a', machines: 4, dollarsPerHour: 3 },
      { name: 'b', machines: 3, dollarsPerHour: null },
    ]);
  });
});
