// How needs fared, why, and how one would.

import type { Num, Vector, Answer } from './answer';
import type { Requirement } from './crds';
import type { Decision } from './shard';

export interface Spread {
  topologyKey: string;
  maxSkew: number;
  whenUnsatisfiable: string;
}

/** One constrained aggregate request, as the cluster sent it. */
export interface Demand {
  requirements: Requirement[];
  aggregateResources: Vector;
  minUnit: Vector;
  priority: number;
  spread: Spread[];
  interruptionPenaltyBucket: string;
  reclamationPenaltyBucket: string;
  group: string;
}

export interface DomainCoverage {
  domain: string;
  coveragePerMille: number;
  satisfiable: boolean;
}

/** How one need fared in the last cycle. */
export interface NeedView {
  clusterId: string;
  profileFingerprint: string;
  arrivalUnixNanos: Num;
  satisfied: boolean;
  need: Demand;
  residualDeficit: Vector | null;
  claimedMachineCount: number;
  bootstrapCount: number;
  provisionCount: number;
  sameDomain: string;
  sameSatisfiable: boolean | null;
  acquisitionParked: boolean;
  parkedAgeCycles: number;
  ageCyclesUnmet: number;
  reason: string | null;
  unmetReason: string | null;
  unmetDetail: string | null;
  detailText: string;
  matchingSupply: { idle: number; configured: number; speculative: number; capped: boolean } | null;
  preemption: { victimsFound: number; capacityFreed: Vector | null } | null;
  sameCandidates: DomainCoverage[];
}

export interface NeedsHead extends Answer {
  shard: string;
  cycle: number;
  computedAtUnixNanos: Num;
  totalNeeds: number;
  rebuilding: boolean;
}

export interface Needs extends NeedsHead {
  needs: NeedView[];
}

export interface Ahead {
  clusterId: string;
  profileFingerprint: string;
  group: string;
  priority: number;
  machinesTaken: number;
  arrivalUnixNanos: Num;
}

export interface Funnel {
  matching: number;
  usable: number;
  boundHere: number;
  boundElsewhere: number;
  idleFree: number;
  speculativeFree: number;
  inTransition: number;
  failed: number;
  heldBack: number;
  takenThisCycle: number;
  claimed: number;
}

export interface Explain extends Answer {
  shard: string;
  cycle: number;
  computedAtUnixNanos?: Num;
  need: NeedView;
  rank: number;
  rankOf: number;
  funnel: Funnel | null;
  ahead: Ahead[];
  hiddenAhead: { needs: number; machinesTaken: number } | null;
  domains: DomainCoverage[];
  decisions: Decision[];
}

export interface Pick {
  /** Of a victim whose cluster the viewer may not see, not its own. */
  machineId: string;
  state: string;
  effectiveCost: Num;
  clusterId: string | null;
  priority: Num;
}

export interface WhatIf extends Answer {
  shard: string;
  cycle: number;
  computedAtUnixNanos?: Num;
  satisfied: boolean;
  reason: string | null;
  unmetReason: string | null;
  unmetDetail: string | null;
  residualDeficit: Vector | null;
  picks: Pick[];
  victims: Pick[];
  dollarsPerHour: Num;
  sameDomain: string;
}
