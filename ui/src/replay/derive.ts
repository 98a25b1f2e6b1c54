// What decisions alone imply. A log says what was done to which machine; states follow from that
// and are labelled so. What it does not say stays unknown.

import type { Decision, MachineView, Transition } from '../api/types';
import type { Recorded } from './recording';

/** Index of the first decision after an instant in milliseconds. */
export function until(decisions: readonly Recorded[], at: number): number {
  let [low, high] = [0, decisions.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((decisions[middle]?.timeUnixNanos ?? 0) / 1e6 <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

const PATH: Record<string, { from: string; by: string; to: string }> = {
  Bootstrap: { from: 'idle', by: 'configuring', to: 'configured' },
  Provision: { from: 'speculative', by: 'creating', to: 'configured' },
  Preempt: { from: 'configured', by: 'draining', to: 'idle' },
  Reclaim: { from: 'configured', by: 'draining', to: 'idle' },
  Delete: { from: 'idle', by: 'deleting', to: 'speculative' },
};
const OPEN = new Set(['decided', 'reclaim_wait']);
const WITHHELD = new Set(['suppressed', 'dryrun', 'stale_inventory', 'removals_held']);

export interface Known {
  view: MachineView;
  shard: string;
  transitions: Transition[];
}

/** Machines that the log has spoken of, by shard and id. */
export class Machines {
  private known = new Map<string, Known>();
  private done = 0;

  constructor(private readonly decisions: readonly Recorded[]) {}

  at(index: number): Map<string, Known> {
    // Backwards means from the start; forwards only the rest.
    if (index < this.done) {
      this.known = new Map();
      this.done = 0;
    }
    for (; this.done < index; this.done += 1) {
      const decision = this.decisions[this.done];
      if (decision) this.apply(decision);
    }
    return this.known;
  }

  private apply(decision: Recorded): void {
    const path = PATH[decision.kind];
    if (!path || decision.machineId === '' || WITHHELD.has(decision.outcome)) return;
    const key = `${decision.shard} ${decision.machineId}`;
    let known = this.known.get(key);
    if (!known)
      this.known.set(
        key,
        (known = { view: blank(decision.machineId, path.from), shard: decision.shard, transitions: [] }),
      );
    const view = known.view;
    const to = OPEN.has(decision.outcome) ? path.by : decision.outcome === 'success' ? path.to : path.from;
    if (view.state !== to) {
      known.transitions.push({
        from: view.state,
        to,
        timeUnixNanos: decision.timeUnixNanos,
        cause: decision.ofSequence === null ? 'decision' : to === path.from ? 'rollback' : 'ack',
        ofSequence: decision.ofSequence ?? decision.sequence,
        error: decision.error,
        clusterId: decision.clusterId || null,
      });
    }
    view.state = to;
    view.sinceUnixNanos = decision.timeUnixNanos;
    view.inFlight = OPEN.has(decision.outcome) ? decision.kind : '';
    view.lastError = decision.error;
    const bound = to === 'configuring' || to === 'configured' || to === 'draining' || to === 'creating';
    view.cluster = bound ? decision.clusterId : '';
    view.assignedPriority = bound ? decision.priority : null;
    view.assignedFingerprint = bound ? decision.profileFingerprint : '';
    view.assignedGroup = bound ? decision.group : '';
  }
}

function blank(id: string, state: string): MachineView {
  return {
    id,
    state,
    sinceUnixNanos: null,
    instanceType: '',
    zone: '',
    capacityType: '',
    pricePerHour: null,
    interruptionProbability: null,
    hostProvider: null,
    hostRef: null,
    resources: {},
    allocatable: {},
    labels: {},
    lastError: '',
    cluster: '',
    assignedPriority: null,
    assignedInterruptionPenaltyDollars: null,
    assignedReclamationPenaltyDollars: null,
    assignedFingerprint: '',
    assignedGroup: '',
    inFlight: '',
    claimedByFingerprint: '',
    claimedByGroup: '',
    notAcquirableUntilUnixNanos: null,
  };
}

/** Decisions per second by kind in equal steps up to an instant in milliseconds. */
export function rates(
  decisions: readonly Decision[],
  at: number,
  durationSeconds: number,
  stepSeconds: number,
): { timestamps: number[]; kinds: string[]; values: number[][] } {
  const steps = Math.max(1, Math.round(durationSeconds / stepSeconds));
  const end = Math.ceil(at / 1000 / stepSeconds) * stepSeconds;
  const start = end - steps * stepSeconds;
  const timestamps = Array.from({ length: steps }, (_, index) => start + (index + 1) * stepSeconds);
  const byKind = new Map<string, number[]>();
  for (const one of decisions) {
    const seconds = (one.timeUnixNanos ?? 0) / 1e9;
    if (one.ofSequence !== null || seconds <= start || seconds * 1000 > at) continue;
    let row = byKind.get(one.kind);
    if (!row) byKind.set(one.kind, (row = new Array<number>(steps).fill(0)));
    const index = Math.min(steps - 1, Math.floor((seconds - start) / stepSeconds));
    row[index] = (row[index] ?? 0) + 1 / stepSeconds;
  }
  const kinds = [...byKind.keys()].sort();
  return { timestamps, kinds, values: kinds.map((kind) => byKind.get(kind) ?? []) };
}
