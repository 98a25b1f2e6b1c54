import { describe, expect, it } from 'vitest';
import { need, unmet } from '../testing';
import { overlaps, roughlyAhead } from './ahead';
import { chunks, coverage, groupParts, keyName, resourceName, worst } from './shape';
import { byCluster, mostUnmet, summarise } from './summary';

describe('the chunk estimate', () => {
  it('is the most over resources, rounded up, with the resource that decides', () => {
    expect(chunks({ aggregateResources: { cpu: '10', memory: '64Gi' }, minUnit: { cpu: '4', memory: '8Gi' } })).toEqual(
      { machines: 8, binding: 'memory' },
    );
    expect(chunks({ aggregateResources: { cpu: '10' }, minUnit: { cpu: '4' } })).toEqual({
      machines: 3,
      binding: 'cpu',
    });
  });
  it('is exact for fractions', () => {
    expect(chunks({ aggregateResources: { cpu: '1.1' }, minUnit: { cpu: '100m' } }).machines).toBe(11);
  });
  it('leaves out resources without a unit, and says so when none is left', () => {
    expect(chunks({ aggregateResources: { cpu: '10', memory: '8Gi' }, minUnit: { cpu: '5' } })).toEqual({
      machines: 2,
      binding: 'cpu',
    });
    expect(chunks({ aggregateResources: { cpu: '10' }, minUnit: {} })).toEqual({ machines: null, binding: null });
    expect(chunks({ aggregateResources: { cpu: '10' }, minUnit: { cpu: '0' } }).machines).toBeNull();
  });
});

describe('coverage', () => {
  it('follows the engine`s deficit', () => {
    const one = unmet({ need: { aggregateResources: { cpu: '8', memory: '32Gi' } }, residualDeficit: { cpu: '2' } });
    expect(coverage(one)).toEqual([
      { name: 'cpu', wanted: '8', missing: '2', perMille: 750 },
      { name: 'memory', wanted: '32Gi', missing: null, perMille: 1000 },
    ]);
    expect(worst(coverage(one))?.name).toBe('cpu');
  });
  it('of a satisfied need is whole, of an unknown deficit unknown', () => {
    expect(coverage(need())[0]?.perMille).toBe(1000);
    expect(coverage(unmet({ residualDeficit: null }))[0]?.perMille).toBeNull();
    expect(worst(coverage(unmet({ residualDeficit: null })))).toBeNull();
  });
  it('never falls below nothing', () => {
    expect(coverage(unmet({ residualDeficit: { cpu: '99' } }))[0]?.perMille).toBe(0);
  });
  it('names the rare resource among equals', () => {
    const one = unmet({
      need: { aggregateResources: { cpu: '8', 'nvidia.com/gpu': '8' } },
      residualDeficit: { cpu: '4', 'nvidia.com/gpu': '4' },
    });
    expect(worst(coverage(one))?.name).toBe('nvidia.com/gpu');
  });
});

describe('names', () => {
  it('are short, and groups come apart at the NUL', () => {
    expect(resourceName('nvidia.com/gpu')).toBe('gpu');
    expect(keyName('topology.kubernetes.io/zone')).toBe('zone');
    const rack = 'topology.bigfleet/rack';
    expect(groupParts(`${rack}\0app=train,role=worker,;\0ml`)).toEqual({
      name: 'app=train, role=worker',
      namespace: 'ml',
    });
    expect(groupParts(`${rack}\0;tier In a,b;\0ml`)).toEqual({ name: 'tier In a,b', namespace: 'ml' });
    expect(groupParts(`${rack}\0\0ml`)).toEqual({ name: 'same rack', namespace: 'ml' });
    expect(groupParts('train')).toEqual({ name: 'train', namespace: null });
    expect(groupParts('')).toEqual({ name: '', namespace: null });
  });
});

describe('the summary', () => {
  const all = [
    need(),
    unmet({ clusterId: 'b' }),
    unmet({ clusterId: 'b', unmetDetail: 'NO_SESSION' }),
    unmet({ clusterId: 'c' }),
  ];
  it('counts by the reason shown', () => {
    const summary = summarise(all);
    expect(summary).toMatchObject({ total: 4, satisfied: 1 });
    expect(summary.unmet.map(({ reason, count }) => [reason.name, count])).toEqual([
      ['PRIORITY_STARVED', 2],
      ['NO_SESSION', 1],
    ]);
  });
  it('preselects the cluster with the most unmet needs', () => {
    expect(mostUnmet(byCluster(all))).toBe('b');
    expect(mostUnmet(byCluster([unmet({ clusterId: 'z' }), unmet({ clusterId: 'y' })]))).toBe('y');
    expect(mostUnmet(byCluster([need()]))).toBeNull();
  });
});

describe('who may be ahead', () => {
  const zone = (operator: string, ...values: string[]) => ({ key: 'zone', operator, values });
  it.each([
    [zone('In', 'a'), zone('In', 'b'), false],
    [zone('In', 'a', 'b'), zone('In', 'b'), true],
    [zone('In', 'a'), zone('NotIn', 'a'), false],
    [zone('NotIn', 'a'), zone('In', 'a', 'b'), true],
    [zone('Exists'), zone('DoesNotExist'), false],
    [zone('NotIn', 'a'), zone('DoesNotExist'), true],
    [zone('Same'), zone('In', 'a'), true],
    [zone('In', 'a'), { key: 'arch', operator: 'In', values: ['arm64'] }, true],
  ])('%j and %j', (a, b, together) => {
    expect(overlaps([a], [b])).toBe(together);
    expect(overlaps([b], [a])).toBe(together);
  });
  it('are higher needs with machines of an overlapping shape', () => {
    const low = unmet({ need: { requirements: [zone('In', 'a')] } });
    const high = need({ profileFingerprint: 'h', need: { priority: 1000 } });
    const elsewhere = need({ profileFingerprint: 'e', need: { priority: 1000, requirements: [zone('In', 'b')] } });
    const lower = need({ profileFingerprint: 'l', need: { priority: 1 } });
    expect(roughlyAhead(low, [high, elsewhere, lower, low])).toEqual([high]);
  });
});
