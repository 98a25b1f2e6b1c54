import { describe, expect, it } from 'vitest';
import { BUCKETS, bucketRank, bucketText } from './penalty';
import {
  age,
  compact,
  count,
  dollars,
  duration,
  instant,
  nanosToMillis,
  perHour,
  plain,
  rate,
  share,
  UNKNOWN,
} from './text';

describe('unknown is never a zero', () => {
  it.each([count, compact, dollars, perHour, share, rate, duration, age, instant])('%o', (format) => {
    expect(format(null)).toBe(UNKNOWN);
    expect(format(undefined)).toBe(UNKNOWN);
    expect(format(NaN)).toBe(UNKNOWN);
    expect(format(Infinity)).toBe(UNKNOWN);
    expect(format(0)).not.toBe(UNKNOWN);
  });
  it('takes instant 0 as never', () => {
    expect(nanosToMillis(0)).toBeNull();
    expect(nanosToMillis(1e15)).toBe(1e9);
  });
});

describe('values', () => {
  it.each([
    [0.00034, '340 µs'],
    [0.0009996, '1 ms'],
    [0.0123, '12 ms'],
    [0.9997, '1 s'],
    [59.7, '1 min'],
    [0.0041, '4.1 ms'],
    [1.42, '1.4 s'],
    [42, '42 s'],
    [200, '3 min 20 s'],
    [7500, '2 h 5 min'],
    [360_000, '4 d 4 h'],
    [0, '0 s'],
  ])('durations %d', (seconds, text) => expect(duration(seconds)).toBe(text));
  it('ages are whole, and never negative', () => {
    expect(age(3.9)).toBe('3 s');
    expect(age(-5)).toBe('0 s');
    expect(age(61)).toBe('1 min 1 s');
  });
  it('money', () => {
    expect(dollars(184.3)).toBe('$184.30');
    expect(dollars(-0.5)).toBe('−$0.50');
    expect(dollars(0.0012)).toBe('$0.0012');
    expect(perHour(0)).toBe('$0.00/h');
  });
  it('rates', () => {
    expect(rate(0)).toBe('0/s');
    expect(rate(12.44)).toBe('12.4/s');
    expect(rate(0.02)).toBe('1.2/min');
  });
  it('labels', () => {
    expect(plain('ON_DEMAND')).toBe('on-demand');
    expect(share(0.0875)).toBe('8.8 %');
    expect(instant(0)).toBe('1970-01-01 00:00:00 UTC');
    expect(compact(2_400_000)).toBe('2.4M');
  });
});

describe('penalty buckets', () => {
  it('are 27 values beside unspecified, in their order', () => {
    expect(BUCKETS).toHaveLength(27);
    expect(BUCKETS[0]).toBe('0');
    expect(BUCKETS[25]).toBe('8388608');
    expect(BUCKETS[26]).toBe('pinned');
    expect(bucketRank('pinned')).toBeGreaterThan(bucketRank('8388608'));
    expect(bucketRank('unspecified')).toBe(bucketRank('0'));
  });
  it('read as money', () => {
    expect(bucketText('8192')).toBe('$8,192');
    expect(bucketText('0.5')).toBe('$0.5');
    expect(bucketText('pinned')).toBe('pinned');
    expect(bucketText(null)).toBe('—');
  });
});
