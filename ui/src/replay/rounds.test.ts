import { describe, expect, it } from 'vitest';
import { ApiError } from '../api/error';
import { load } from './recording';
import { queriedAt, Rounds } from './rounds';
import { ReplaySource } from './source';

async function replayed(rounds: Rounds): Promise<ReplaySource> {
  const text = await rounds.file().text();
  return new ReplaySource(await load([{ name: 'r.jsonl', text: () => Promise.resolve(text) }], () => {}));
}

const body = (n: number, length = 100): string => JSON.stringify({ n, padding: 'x'.repeat(length) });

describe('rounds of a recording', () => {
  it('are forgotten oldest first, and whole', async () => {
    const rounds = new Rounds(1000);
    for (let round = 0; round < 5; round += 1) {
      rounds.begin();
      rounds.keep('config', round, body(round));
      rounds.keep('shards', round, body(round));
    }
    expect(rounds).toMatchObject({ count: 3, answers: 6, forgotten: 2 });
    expect(rounds.bytes).toBe(rounds.file().size);
    expect(rounds.bytes).toBeLessThanOrEqual(1000);
    const kept = (await rounds.file().text()).trimEnd().split('\n');
    expect(kept.map((line) => (JSON.parse(line) as { at: number }).at)).toEqual([2, 2, 3, 3, 4, 4]);
  });
  it('never grow beyond what is kept, not even one alone', () => {
    const rounds = new Rounds(1000);
    rounds.begin();
    for (let index = 0; index < 20; index += 1) rounds.keep(`shards/${index}`, 1, body(index));
    expect(rounds.bytes).toBeLessThanOrEqual(1000);
    expect(rounds.missing.now[0]?.path).toBe('this round');
    rounds.keep('needs', 1, body(0, 2000));
    expect(rounds.missing.now.at(-1)).toMatchObject({ path: 'needs' });
    expect(rounds.answers).toBeGreaterThan(0);
  });
  it('remember what each could not have', () => {
    const rounds = new Rounds(10_000);
    rounds.begin();
    rounds.fail('needs?shard=a', 1, new ApiError(502, 'no answer in time'));
    rounds.keep('config', 1, body(1));
    expect(rounds.missing).toEqual({ now: [{ path: 'needs?shard=a', why: 'no answer in time' }], rounds: 1 });
    rounds.begin();
    rounds.keep('needs?shard=a', 2, body(2));
    expect(rounds.missing).toEqual({ now: [], rounds: 1 });
  });
  it('are replayed as they were, failures too', async () => {
    const rounds = new Rounds(10_000);
    rounds.keep('needs?shard=a', 1000, body(1));
    rounds.begin();
    rounds.fail('needs?shard=a', 2000, new ApiError(502, 'no answer in time'));
    rounds.fail('clusters', 2000, new ApiError(503, 'not wired'));
    rounds.begin();
    rounds.keep('needs?shard=a', 3000, new Blob([body(3)]));
    const replay = await replayed(rounds);
    replay.at = 1000;
    expect(await replay.get('needs?shard=a')).toMatchObject({ n: 1 });
    replay.at = 2000;
    await expect(replay.get('needs?shard=a')).rejects.toMatchObject({ status: 502, message: 'no answer in time' });
    await expect(replay.get('clusters')).rejects.toThrow('not in the recording');
    replay.at = 3000;
    expect(await replay.get('needs?shard=a')).toMatchObject({ n: 3 });
  });
  it('take the time from either end of an answer, and not from a text in it', async () => {
    const at = '2026-11-16T03:12:00.000Z';
    const long = 'y'.repeat(5000);
    expect(await queriedAt(new Blob([JSON.stringify({ queriedAt: at, long })]))).toBe(Date.parse(at));
    expect(await queriedAt(new Blob([JSON.stringify({ long, queriedAt: at })]))).toBe(Date.parse(at));
    expect(await queriedAt(new Blob([JSON.stringify({ error: `said "queriedAt":"${at}"` })]))).toBeNull();
  });
});
