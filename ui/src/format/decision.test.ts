import { describe, expect, it } from 'vitest';
import { decision } from '../testing';
import { costWords, KINDS, outcomeTone, tagMeaning, verb, withOutcomes } from './decision';

describe('decisions', () => {
  it('are sentences for every kind', () => {
    const words = KINDS.map((kind) =>
      verb(
        decision({ kind, graceSeconds: kind === 'Preempt' ? 10 : kind === 'Reclaim' ? 600 : 0, outcome: 'dry_run' }),
      ),
    );
    expect(words).toEqual([
      'configure for a',
      'create for a',
      'preempt from a, 10 s of grace',
      'reclaim from a, 10 min of grace',
      'release to the provider',
      'actuation set to dry-run',
    ]);
  });
  it('show the engine`s costs, and none where it recorded none', () => {
    expect(costWords(decision({ effectiveCost: 0.1, runnerUpCost: 0.38 }))).toBe('$0.10/h, next best $0.38/h');
    expect(costWords(decision({ effectiveCost: 0, runnerUpCost: null }))).toBe('$0.00/h');
    expect(costWords(decision())).toBe('');
  });
  it('know every tag of the engine', () => {
    for (const tag of ['phase1.idle', 'phase1.speculative', 'phase2.inversion', 'phase3.excess', 'phase3.release'])
      expect(tagMeaning(tag)).not.toBeNull();
    expect(tagMeaning('phase9.new')).toBeNull();
  });
  it('join their outcomes, newest first', () => {
    const rows = withOutcomes([
      decision({ sequence: '1' }),
      decision({ sequence: '2', machineId: 'm-2' }),
      decision({ sequence: '3', ofSequence: '1', outcome: 'success' }),
    ]);
    expect(rows.map((row) => [row.sequence, row.closed?.outcome ?? null])).toEqual([
      ['2', null],
      ['1', 'success'],
    ]);
  });
  it('join outcomes of their own shard only', () => {
    const rows = withOutcomes([
      { ...decision({ sequence: '1' }), shard: 'shard-0' },
      { ...decision({ sequence: '1' }), shard: 'shard-1' },
      { ...decision({ sequence: '2', ofSequence: '1', outcome: 'fenced' }), shard: 'shard-0' },
    ]);
    expect(rows.map((row) => [row.shard, row.closed?.outcome ?? null])).toEqual([
      ['shard-1', null],
      ['shard-0', 'fenced'],
    ]);
  });
  it('keep an outcome whose decision is not here', () => {
    expect(withOutcomes([decision({ sequence: '9', ofSequence: '5', outcome: 'success' })])).toHaveLength(1);
  });
  it('never paint an unknown outcome green', () => {
    expect(outcomeTone('success')).toBe('good');
    expect(outcomeTone('fenced')).toBe('red');
    expect(outcomeTone('something_new')).toBe('red');
    expect(outcomeTone('suppressed')).toBe('amber');
  });
});
