// Needs and decisions for tests, whole but for what a test is about.

import type { Decision, NeedView } from './api/types';

export function need(changes: Partial<Omit<NeedView, 'need'>> & { need?: Partial<NeedView['need']> } = {}): NeedView {
  const { need: demand, ...view } = changes;
  return {
    clusterId: 'a',
    profileFingerprint: 'f',
    arrivalUnixNanos: 1e18,
    satisfied: true,
    residualDeficit: null,
    claimedMachineCount: 1,
    bootstrapCount: 0,
    provisionCount: 0,
    sameDomain: '',
    sameSatisfiable: null,
    acquisitionParked: false,
    parkedAgeCycles: 0,
    ageCyclesUnmet: 0,
    reason: null,
    unmetReason: null,
    unmetDetail: null,
    detailText: '',
    matchingSupply: null,
    preemption: null,
    sameCandidates: [],
    ...view,
    need: {
      requirements: [],
      aggregateResources: { cpu: '8' },
      minUnit: { cpu: '2' },
      priority: 100,
      spread: [],
      interruptionPenaltyBucket: '0',
      reclamationPenaltyBucket: '0',
      group: '',
      ...demand,
    },
  };
}

/** An unmet one without machines. */
export function unmet(changes: Parameters<typeof need>[0] = {}): NeedView {
  return need({
    satisfied: false,
    claimedMachineCount: 0,
    unmetReason: 'PRIORITY_STARVED',
    residualDeficit: { cpu: '8' },
    ...changes,
  });
}

export function decision(changes: Partial<Decision> = {}): Decision {
  return {
    sequence: '1',
    cycle: 1,
    timeUnixNanos: 1_000_000_000_000_000_000,
    kind: 'Bootstrap',
    machineId: 'm-1',
    clusterId: 'a',
    profileFingerprint: 'f',
    group: '',
    priority: 100,
    preemptorPriority: 0,
    effectiveCost: null,
    runnerUpCost: null,
    reason: 'phase1.idle',
    outcome: 'decided',
    graceSeconds: 0,
    error: '',
    ofSequence: null,
    gap: false,
    ...changes,
  };
}
