// The form for one need, and the need it stands for.

import type { Demand } from '../../api/types';
import { parse } from '../../format/quantity';

export interface Form {
  cluster: string;
  priority: number | null;
  resources: { name: string; total: string; unit: string }[];
  requirements: { key: string; operator: string; values: string }[];
  same: string;
  spreadKey: string;
  maxSkew: number | null;
  interruption: string;
  reclamation: string;
}

/** Topology keys that machines carry, by their providers' contract. */
const RACK = 'topology.bigfleet/rack';
export const TOPOLOGY_KEYS: readonly string[] = ['topology.kubernetes.io/zone', RACK, 'kubernetes.io/hostname'];

/** The choice for a field: a link may name a key that nobody offers. */
export function keysWith(key: string): string[] {
  return key === '' || TOPOLOGY_KEYS.includes(key) ? [...TOPOLOGY_KEYS] : [...TOPOLOGY_KEYS, key];
}

/** 64 GPUs in one rack. */
export function emptyForm(): Form {
  return {
    cluster: '',
    priority: 1000,
    resources: [{ name: 'nvidia.com/gpu', total: '64', unit: '8' }],
    requirements: [],
    same: RACK,
    spreadKey: '',
    maxSkew: 1,
    interruption: '0',
    reclamation: '0',
  };
}

/** The need, or what is wrong with the form. */
export function demandOf(form: Form): Demand | string {
  const aggregateResources: Record<string, string> = {};
  const minUnit: Record<string, string> = {};
  for (const { name, total, unit } of form.resources) {
    if (name.trim() === '' && total.trim() === '' && unit.trim() === '') continue;
    if (name.trim() === '') return `a resource of ${total} has no name`;
    const amount = parse(total);
    if (amount === null || amount <= 0n) return `the total of ${name} must be a quantity above 0, such as 64 or 512Gi`;
    aggregateResources[name.trim()] = total.trim();
    if (unit.trim() === '') continue;
    const one = parse(unit);
    if (one === null || one <= 0n) return `the smallest unit of ${name} must be a quantity above 0, or empty`;
    if (one > amount) return `the smallest unit of ${name} is more than its total`;
    minUnit[name.trim()] = unit.trim();
  }
  if (Object.keys(aggregateResources).length === 0) return 'name at least one resource';
  if (form.priority === null || !Number.isInteger(form.priority)) return 'the priority must be a whole number';

  const requirements = [];
  for (const { key, operator, values } of form.requirements) {
    if (key.trim() === '') return 'a requirement has no key';
    const bare = operator === 'Exists' || operator === 'DoesNotExist';
    const list = bare
      ? []
      : values
          .split(',')
          .map((value) => value.trim())
          .filter((value) => value !== '');
    if (!bare && list.length === 0) return `the requirement on ${key} has no values`;
    requirements.push({ key: key.trim(), operator, values: list });
  }
  if (form.same !== '') requirements.push({ key: form.same, operator: 'Same', values: [] });
  const skew = form.maxSkew ?? 1;
  if (form.spreadKey !== '' && skew < 1) return 'the skew must be at least 1';
  return {
    requirements,
    aggregateResources,
    minUnit,
    priority: form.priority,
    spread:
      form.spreadKey === '' ? [] : [{ topologyKey: form.spreadKey, maxSkew: skew, whenUnsatisfiable: 'DoNotSchedule' }],
    interruptionPenaltyBucket: form.interruption,
    reclamationPenaltyBucket: form.reclamation,
    // A gang needs a name of its own; nobody else has this one.
    group: form.same === '' ? '' : 'what-if',
  };
}

/** The form that shows a need of a link. */
export function formOf(need: Partial<Demand>, cluster: string): Form {
  const all = need.requirements ?? [];
  const spread = need.spread?.[0];
  return {
    cluster,
    priority: need.priority ?? 0,
    resources: Object.entries(need.aggregateResources ?? {}).map(([name, total]) => ({
      name,
      total,
      unit: need.minUnit?.[name] ?? '',
    })),
    requirements: all
      .filter((one) => one.operator !== 'Same')
      .map((one) => ({ key: one.key, operator: one.operator, values: one.values.join(', ') })),
    same: all.find((one) => one.operator === 'Same')?.key ?? '',
    spreadKey: spread?.topologyKey ?? '',
    maxSkew: spread?.maxSkew ?? 1,
    interruption: need.interruptionPenaltyBucket ?? '0',
    reclamation: need.reclamationPenaltyBucket ?? '0',
  };
}
