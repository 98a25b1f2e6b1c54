// A decision in a sentence, with the engine's own tag and numbers.

import type { Decision } from '../api/types';
import type { Tone } from '../needs/reasons';
import { dollars, duration, known, plain } from './text';

/** What each reason tag of the engine stands for. */
const TAGS: Record<string, string> = {
  'phase1.idle': 'an idle machine matched',
  'phase1.speculative': 'nothing idle matched, so capacity is created',
  'phase2.inversion': 'a higher need lacked machines of this shape',
  'phase3.excess': 'its cluster no longer needs it',
  'phase3.release': 'nobody claimed it within its hold time',
};

export function tagMeaning(tag: string): string | null {
  return TAGS[tag] ?? null;
}

/** What happens, without the machine's name. */
export function verb(decision: Pick<Decision, 'kind' | 'clusterId' | 'outcome' | 'graceSeconds'>): string {
  const cluster = decision.clusterId;
  switch (decision.kind) {
    case 'Bootstrap':
      return `configure for ${cluster}`;
    case 'Provision':
      return `create for ${cluster}`;
    case 'Preempt':
      return `preempt from ${cluster}${grace(decision)}`;
    case 'Reclaim':
      return `reclaim from ${cluster}${grace(decision)}`;
    case 'Delete':
      return 'release to the provider';
    case 'SetActuation':
      return `actuation set to ${plain(decision.outcome)}`;
    default:
      return decision.kind;
  }
}

function grace(decision: Pick<Decision, 'graceSeconds'>): string {
  return decision.graceSeconds > 0 ? `, ${duration(decision.graceSeconds)} of grace` : '';
}

/** `$0.10/h, next best $0.38/h`; nothing where the engine recorded no cost. */
export function costWords(decision: Pick<Decision, 'effectiveCost' | 'runnerUpCost'>): string {
  if (!known(decision.effectiveCost)) return '';
  const next = known(decision.runnerUpCost) ? `, next best ${dollars(decision.runnerUpCost)}/h` : '';
  return `${dollars(decision.effectiveCost)}/h${next}`;
}

const GOOD = new Set(['success', 'transition_raced_to_idle', 'active']);
const OPEN = new Set(['decided', 'reclaim_wait']);
const WITHHELD = new Set(['suppressed', 'dryrun', 'dry_run', 'paused', 'stale_inventory', 'removals_held']);

export function outcomeTone(outcome: string): Tone {
  if (GOOD.has(outcome)) return 'good';
  if (OPEN.has(outcome)) return 'blue';
  if (WITHHELD.has(outcome)) return 'amber';
  if (['stale_state', 'inventory_miss', 'missing_profile', 'ctx_canceled', 'no_session'].includes(outcome))
    return 'grey';
  return 'red';
}

export const KINDS = ['Bootstrap', 'Provision', 'Preempt', 'Reclaim', 'Delete', 'SetActuation'] as const;

export const OUTCOMES = [
  'decided',
  'success',
  'reclaim_wait',
  'suppressed',
  'dryrun',
  'fenced',
  'provider_error',
  'ack_rejected',
  'blob_error',
  'blob_timeout',
  'no_session',
  'ctx_canceled',
  'transition_error',
  'transition_raced_to_idle',
  'stale_state',
  'inventory_miss',
  'missing_profile',
  'stale_inventory',
  'removals_held',
  'other',
] as const;

/** Decisions with the newest outcome of each, newest first; an outcome alone stands for itself. */
export function withOutcomes<D extends Decision & { shard?: string }>(
  records: readonly D[],
): (D & { closed: D | null })[] {
  const rows = new Map<string, D & { closed: D | null }>();
  const order: (D & { closed: D | null })[] = [];
  for (const record of records) {
    const of = record.ofSequence === null ? undefined : rows.get(key(record, record.ofSequence));
    if (of) {
      of.closed = record;
      continue;
    }
    const row = { ...record, closed: null };
    rows.set(key(record, record.sequence), row);
    order.push(row);
  }
  return order.reverse();
}

/** Sequences count within a shard. */
function key(record: { shard?: string }, sequence: string): string {
  return `${record.shard ?? ''} ${sequence}`;
}
