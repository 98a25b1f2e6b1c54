import { describe, expect, it } from 'vitest';
import { below, change, formatQuery, formatSort, match, parseQuery, parseSort, range } from './url';

describe('paths', () => {
  it.each([
    ['/', '/needs', '/needs'],
    ['/', '/', '/'],
    ['/fleet/', '/fleet/needs', '/needs'],
    ['/fleet/', '/fleet/', '/'],
    ['/fleet/', '/fleet', '/'],
    ['/a/b/', '/a/b/shards/x/', '/shards/x'],
  ])('below %s of %s', (base, path, rest) => expect(below(base, path)).toBe(rest));

  it('match patterns and decode parameters', () => {
    expect(match('/shards/:pod', '/shards/shard-0')).toEqual({ pod: 'shard-0' });
    expect(match('/clusters/:id', '/clusters/eu%2Fwest')).toEqual({ id: 'eu/west' });
    expect(match('/shards/:pod', '/shards')).toBeNull();
    expect(match('/shards/:pod', '/shards/a/b')).toBeNull();
    expect(match('/clusters/:id', '/clusters/%E0%A4')).toBeNull();
    expect(match('/', '/')).toEqual({});
  });
});

describe('the view in the URL', () => {
  it('comes back as it went', () => {
    const view = { shard: 'shard-0', cluster: '*', search: 'a b&c=d', group: 'train\0ml' };
    expect(parseQuery(formatQuery(view))).toEqual(view);
  });
  it('is the same text for the same view', () => {
    expect(formatQuery({ b: '2', a: '1' })).toBe(formatQuery({ a: '1', b: '2' }));
    expect(formatQuery({ a: '', b: null, c: undefined })).toBe('');
  });
  it('changes one thing and keeps the rest', () => {
    expect(change({ a: '1', b: '2' }, { b: null, c: '3' })).toEqual({ a: '1', c: '3' });
  });
  it('sorts by known columns only', () => {
    const fallback = { key: 'pod', descending: false };
    expect(parseSort('-machines', ['machines', 'pod'], fallback)).toEqual({ key: 'machines', descending: true });
    expect(parseSort('nonsense', ['machines'], fallback)).toBe(fallback);
    expect(formatSort({ key: 'machines', descending: true })).toBe('-machines');
  });
  it('takes time ranges that the server takes', () => {
    expect(range('6h')).toEqual({ duration: '6h', step: '3m' });
    expect(range('99y').duration).toBe('1h');
    expect(range(undefined).duration).toBe('1h');
  });
});
