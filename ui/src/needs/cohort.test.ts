import { describe, expect, it } from 'vitest';
import type { NeedView } from '../api/types';
import { need, unmet } from '../testing';
import { cohorts, needKey, tableRows } from './cohort';

function rows(needs: NeedView[], keep: (need: NeedView) => boolean = () => true): string[] {
  return tableRows(cohorts(needs), keep).map((row) =>
    row.kind === 'need'
      ? row.need.clusterId
      : row.kind === 'cut'
        ? `cut ${row.left}`
        : `cohort ${row.cohort.members.length}`,
  );
}

describe('cohorts', () => {
  it('keep the order of needs and stand where their first member stands', () => {
    const all = [
      need({ clusterId: 'a', profileFingerprint: 'x' }),
      need({ clusterId: 'b', profileFingerprint: 'y' }),
      need({ clusterId: 'c', profileFingerprint: 'x' }),
    ];
    expect(rows(all)).toEqual(['cohort 2', 'a', 'c', 'b']);
  });

  it('of one need have no header and no line', () => {
    expect(rows([unmet({ profileFingerprint: 'x' })])).toEqual(['a']);
  });

  it('are contested only with an unmet member', () => {
    expect(cohorts([need(), need()])[0]?.contested).toBe(false);
    expect(cohorts([need(), unmet()])[0]).toMatchObject({ contested: true, unmet: 1, machines: 1, lastServed: 0 });
    expect(rows([need(), need()])).toEqual(['cohort 2', 'a', 'a']);
  });

  it('draw the line after the last member that got machines', () => {
    const all = [
      need({ clusterId: 'a' }),
      unmet({ clusterId: 'b' }),
      unmet({ clusterId: 'c', claimedMachineCount: 2 }),
      unmet({ clusterId: 'd' }),
      unmet({ clusterId: 'e' }),
    ];
    expect(rows(all)).toEqual(['cohort 5', 'a', 'b', 'c', 'cut 2', 'd', 'e']);
  });

  it('draw it first where nobody got any, and last where everybody got some', () => {
    expect(rows([unmet({ clusterId: 'a' }), unmet({ clusterId: 'b' })])).toEqual(['cohort 2', 'cut 2', 'a', 'b']);
    expect(rows([need({ clusterId: 'a' }), unmet({ clusterId: 'b', claimedMachineCount: 1 })])).toEqual([
      'cohort 2',
      'a',
      'b',
      'cut 0',
    ]);
  });

  it('keep the line where it is when rows are filtered away', () => {
    const all = [need({ clusterId: 'a' }), unmet({ clusterId: 'b' }), unmet({ clusterId: 'c' })];
    expect(rows(all, (one) => !one.satisfied)).toEqual(['cohort 3', 'cut 2', 'b', 'c']);
    expect(rows(all, (one) => one.satisfied)).toEqual(['cohort 3', 'a', 'cut 2']);
    expect(rows(all, () => false)).toEqual([]);
  });

  it('count a satisfied member that shares a machine as served', () => {
    expect(cohorts([need({ claimedMachineCount: 0 }), unmet()])[0]?.lastServed).toBe(0);
  });

  it('are found by cluster, profile and group together', () => {
    const keys = [
      need(),
      need({ clusterId: 'b' }),
      need({ profileFingerprint: 'g' }),
      need({ need: { group: 'x' } }),
    ].map(needKey);
    expect(new Set(keys).size).toBe(4);
  });
});
