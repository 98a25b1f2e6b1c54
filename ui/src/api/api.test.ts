import { describe, expect, it } from 'vitest';
import { ageSeconds, LIMIT, metricsLimit } from './age';
import { ApiError, errorOf, flagsIn } from './error';
import { Failing } from './failing';
import { fleetNow } from './fleet';
import { withScrapes } from './sampled';
import type { Sampled, Summary } from './types';

describe('age', () => {
  const queriedAt = '2026-11-16T08:00:10Z';
  const computed = Date.parse('2026-11-16T08:00:07Z');
  it('is what it was when asked, and the time since, whatever the browser`s clock says', () => {
    expect(ageSeconds(computed, { queriedAt, receivedAt: 1000 }, 6000)).toBe(8);
  });
  it('is unknown without an instant', () => {
    expect(ageSeconds(null, { queriedAt, receivedAt: 0 }, 0)).toBeNull();
    expect(ageSeconds(computed, { queriedAt: null, receivedAt: 0 }, 0)).toBeNull();
    expect(ageSeconds(computed, { queriedAt: 'oops', receivedAt: 0 }, 0)).toBeNull();
  });
  it('of metrics stays below its limit between two polls', () => {
    const scraped = (scrapeIntervalSeconds: number | null) => ({ scrapeIntervalSeconds }) as Sampled;
    const polls = [null, 1, 5, 10, 60].map((interval) => withScrapes(30)(scraped(interval)));
    expect(polls).toEqual([30, 10, 10, 20, 30]);
    expect(withScrapes(30)(null)).toBe(30);
  });
  it('has the limits of the specification', () => {
    expect(LIMIT).toEqual({ needs: 20, soft: 30 });
    expect(metricsLimit(5)).toBe(15);
    expect(metricsLimit(null)).toBeNull();
  });
});

describe('errors', () => {
  it.each([
    [503, 'unwired'],
    [401, 'denied'],
    [403, 'denied'],
    [404, 'missing'],
    [400, 'refused'],
    [502, 'failed'],
    [0, 'failed'],
  ])('%d is %s', (status, trouble) => expect(new ApiError(status, '').trouble).toBe(trouble));
  it('carry the server`s words, and survive a server that has none', async () => {
    const wired = await errorOf(
      new Response('{"error":"not wired: start the dashboard with --prometheus-url"}', { status: 503 }),
    );
    expect(flagsIn(wired.message)).toEqual(['--prometheus-url']);
    expect((await errorOf(new Response('<html>', { status: 502 }))).message).toBe('the server answered 502');
  });
});

describe('the fleet from summaries', () => {
  const frame = (shard: string, changes: Partial<Summary> = {}): Summary => ({
    shard,
    cycle: 1,
    computedAtUnixNanos: 5e18,
    shardEpoch: 1,
    phaseMicros: {},
    machines: [{ state: 'idle', capacityType: 'spot', count: 3 }],
    dollarsPerHour: { spot: 1.5 },
    actions: {},
    shortfalls: { batch: 2 },
    sessions: 2,
    needs: 10,
    needsUnmet: 1,
    queueDepth: 0,
    actuationPaused: false,
    dryRun: false,
    fenced: false,
    lastReconcileUnixNanos: null,
    ...changes,
  });
  it('adds shards up and is as old as the oldest', () => {
    const fleet = fleetNow([frame('a'), frame('b', { computedAtUnixNanos: 4e18, actuationPaused: true })]);
    expect(fleet).toMatchObject({
      shards: 2,
      machines: 6,
      dollarsPerHour: 3,
      shortfalls: 4,
      sessions: 4,
      needsUnmet: 2,
      paused: ['b'],
      oldestUnixNanos: 4e18,
    });
  });
});

describe('what the stream does not tell', () => {
  const fails = (topic: string, shard: string | null = null) => ({ topic, shard, state: 'failed', error: 'gone' });
  it('is that of the shard that fails, and of no other', () => {
    const failing = new Failing();
    failing.hear(fails('decisions', 'b'));
    expect(['a', 'b', null].map((shard) => failing.has('decisions', shard))).toEqual([false, true, false]);
    expect(failing.has('summary', 'b')).toBe(false);
    expect(failing.shards('decisions')).toEqual(['b']);
    failing.hear({ topic: 'decisions', shard: 'b', state: 'ok' });
    expect(failing.has('decisions', 'b')).toBe(false);
  });
  it('is all of a topic that fails as a whole', () => {
    const failing = new Failing();
    failing.hear(fails('topology'));
    expect(failing.has('topology')).toBe(true);
    expect(failing.has('topology', 'a')).toBe(true);
    expect(failing.shards('topology')).toEqual([]);
  });
  it('of a topic of one shard is that shard`s', () => {
    const failing = new Failing();
    failing.hear(fails('needs:a', 'a'));
    expect(failing.has('needs:a')).toBe(true);
    expect(failing.has('needs:a', 'a')).toBe(true);
    expect(failing.has('needs:b', 'b')).toBe(false);
  });
  it('ends with the first news of it', () => {
    const failing = new Failing();
    failing.hear(fails('decisions', 'a'));
    failing.hear(fails('decisions', 'b'));
    failing.hear(fails('topology'));
    failing.news('decisions', { shard: 'b' });
    failing.news('topology', {});
    expect(failing.shards('decisions')).toEqual(['a']);
    expect(failing.has('topology')).toBe(false);
  });
});
