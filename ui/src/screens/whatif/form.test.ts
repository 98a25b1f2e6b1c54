import { describe, expect, it } from 'vitest';
import type { Demand } from '../../api/types';
import { demandOf, emptyForm, formOf } from './form';

describe('the what-if form', () => {
  it('stands for 64 GPUs in one rack at first', () => {
    expect(demandOf(emptyForm())).toMatchObject({
      aggregateResources: { 'nvidia.com/gpu': '64' },
      minUnit: { 'nvidia.com/gpu': '8' },
      group: 'what-if',
      requirements: [{ operator: 'Same' }],
    });
  });
  it('comes back from a link', () => {
    const form = {
      ...emptyForm(),
      cluster: 'a',
      requirements: [{ key: 'zone', operator: 'In', values: 'a, b' }],
      spreadKey: 'topology.kubernetes.io/zone',
      maxSkew: 2,
      interruption: '16',
    };
    expect(formOf(demandOf(form) as Demand, 'a')).toEqual(form);
  });
  it.each([
    [{ resources: [] }, 'at least one resource'],
    [{ resources: [{ name: 'cpu', total: 'lots', unit: '' }] }, 'total of cpu'],
    [{ resources: [{ name: 'cpu', total: '-1', unit: '' }] }, 'total of cpu'],
    [{ resources: [{ name: 'cpu', total: '4', unit: '8' }] }, 'more than its total'],
    [{ resources: [{ name: '', total: '4', unit: '' }] }, 'no name'],
    [{ priority: null }, 'whole number'],
    [{ requirements: [{ key: 'zone', operator: 'In', values: ' ' }] }, 'no values'],
    [{ spreadKey: 'zone', maxSkew: 0 }, 'at least 1'],
  ])('refuses %j', (changes, why) => expect(demandOf({ ...emptyForm(), ...changes })).toContain(why));
  it('names no group without co-location', () => {
    expect(demandOf({ ...emptyForm(), same: '' })).toMatchObject({ group: '', requirements: [] });
  });
});
