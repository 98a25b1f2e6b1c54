import { describe, expect, it } from 'vitest';
import { ceilDiv, parse, perMille, short } from './quantity';

describe('quantities', () => {
  it.each([
    ['0', 0n],
    ['1', 1_000_000_000n],
    ['100m', 100_000_000n],
    ['1.5', 1_500_000_000n],
    ['.5', 500_000_000n],
    ['1Ki', 1024_000_000_000n],
    ['1k', 1000_000_000_000n],
    ['2e3', 2000_000_000_000n],
    ['2E', 2n * 10n ** 27n],
    ['1e-3', 1_000_000n],
    ['-1', -1_000_000_000n],
    ['+1', 1_000_000_000n],
    ['0.1n', 1n],
  ])('reads %s', (text, nano) => expect(parse(text)).toBe(nano));

  it.each(['', '.', 'Ki', '+', 'abc', '1 Gi', '1KiB', '1e1.5', '--1'])('refuses %j', (text) =>
    expect(parse(text)).toBeNull(),
  );

  it('divides exactly where floats would not', () => {
    // 1.1 / 0.1 is 11.000000000000002 in floats and would round up to 12.
    expect(ceilDiv(parse('1.1')!, parse('100m')!)).toBe(11n);
  });

  it('knows no share of nothing', () => {
    expect(perMille(1n, 0n)).toBeNull();
    expect(perMille(999n, 1000n)).toBe(999);
  });

  it.each([
    ['memory', '34359738368', '32Gi'],
    ['memory', '1.5Gi', '1.5Gi'],
    ['cpu', '250m', '250m'],
    ['cpu', '12500m', '12.5'],
    ['cpu', '20000', '20,000'],
    ['nvidia.com/gpu', '64', '64'],
    ['cpu', 'oops', 'oops'],
  ])('shows %s %s as %s', (name, text, shown) => expect(short(name, text)).toBe(shown));
});
