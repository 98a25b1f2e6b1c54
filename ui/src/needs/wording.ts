// How a need fared, in plain words. Demand is a vector and a shard is for life: the words never
// speak of pods to shed, of other shards, or of kinds of capacity as a cause.

import type { NeedView } from '../api/types';
import { count, plural } from '../format/text';
import { shown } from './reasons';

/** Ages above this escalate to the coordinator. */
export const ESCALATES_AFTER = 5;
/** A parked gang is tried again every so many cycles. */
export const REPROBE_CYCLES = 32;

/** What happened, in a sentence or two. */
export function explanation(need: NeedView): string {
  const held = plural(need.claimedMachineCount, 'machine');
  if (need.satisfied) {
    const fresh = need.bootstrapCount + need.provisionCount;
    const news = fresh === 0 ? 'none of them new this cycle' : `${count(fresh)} of them new this cycle`;
    return need.claimedMachineCount === 0
      ? 'It fits on machines that already serve this cluster.'
      : `It holds ${held}, ${news}.`;
  }
  const part = need.claimedMachineCount > 0 ? ` It holds ${held} so far.` : '';
  switch (shown(need.unmetReason ?? need.reason, need.unmetDetail).name) {
    case 'PRIORITY_STARVED':
      return `Machines of this shape exist, and needs that come first took them.${part}`;
    case 'NO_MATCHING_SUPPLY':
      return `No machine that this shard knows, in whatever state, matches the requirements and holds the smallest unit.${part}`;
    case 'TOPOLOGY_UNSATISFIABLE':
      return `The whole group must stand in one domain, and no domain has room for all of it.${part}`;
    case 'PREEMPTION_EXHAUSTED':
      return `Lower work was found to preempt, and what it frees is too little.${part}`;
    case 'SPREAD_UNSATISFIABLE':
      return `Machines remain, and taking any of them would break a hard spread term.${part}`;
    case 'BOOTSTRAP_REFUSED':
      return `Machines are there, and the cluster's operator refuses to say how they join.${part}`;
    case 'PROVIDER_FAILING':
      return `Machines that would help are held back because the provider keeps failing on them.${part}`;
    case 'NO_SESSION':
      return `The operator of this cluster is not connected. What it has stays; nothing new is bought for it.${part}`;
    case 'PREEMPTION_UNDER_WAY':
      return `Machines of lower work are draining for it. Once their grace is over they are its own.${part}`;
    case 'QUOTA_EXHAUSTED':
      return `Machines that would help cannot be created: the share of the provider account is spent.${part}`;
    default:
      return `It is not met, and the reason is not one that this dashboard knows.${part}`;
  }
}

/** How long it has waited and whether anybody was told. */
export function ageWords(need: NeedView): string {
  if (need.satisfied) return 'not waiting';
  const cycles = plural(need.ageCyclesUnmet, 'cycle');
  return need.ageCyclesUnmet > ESCALATES_AFTER ? `unmet for ${cycles}, escalated` : `unmet for ${cycles}`;
}

/** The phases that an unmet need went through, with the engine's numbers. */
export function path(need: NeedView): { phase: string; text: string }[] {
  const kept = Math.max(0, need.claimedMachineCount - need.bootstrapCount - need.provisionCount);
  const first = need.acquisitionParked
    ? `kept ${plural(kept, 'machine')}; it is parked, so nothing was acquired`
    : `kept ${plural(kept, 'machine')}, took ${count(need.bootstrapCount)} idle and ${count(need.provisionCount)} to be created`;
  const second = need.preemption
    ? `found ${plural(need.preemption.victimsFound, 'victim')}, too little was freed`
    : need.unmetDetail === 'PREEMPTION_UNDER_WAY'
      ? 'found enough victims; they are draining'
      : 'freed nothing for it';
  return [
    { phase: 'Assignment', text: first },
    { phase: 'Priority inversions', text: second },
  ];
}
