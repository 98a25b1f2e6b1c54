// The live view of one shard.

import type { Num, Counts, Vector, Answer } from './answer';

export interface MachineView {
  id: string;
  state: string;
  sinceUnixNanos: Num;
  instanceType: string;
  zone: string;
  capacityType: string;
  pricePerHour: Num;
  interruptionProbability: Num;
  hostProvider: string | null;
  hostRef: string | null;
  resources: Vector | null;
  allocatable: Vector | null;
  labels: Record<string, string>;
  lastError: string;
  cluster: string;
  assignedPriority: Num;
  assignedInterruptionPenaltyDollars: Num;
  assignedReclamationPenaltyDollars: Num;
  assignedPinned?: boolean | null;
  assignedFingerprint: string;
  assignedGroup: string;
  inFlight: string;
  claimedByFingerprint: string;
  claimedByGroup: string;
  notAcquirableUntilUnixNanos: Num;
}

export interface Machines extends Answer {
  shard: string;
  cycle: number;
  /** Left out by servers that do not know it, as in the other answers of a cycle. */
  computedAtUnixNanos?: Num;
  total: Num;
  next: string | null;
  machines: MachineView[];
}

export interface Transition {
  from: string;
  to: string;
  timeUnixNanos: Num;
  cause: string;
  ofSequence: string | null;
  error: string;
  clusterId: string | null;
}

export interface MachineDetail extends Answer {
  shard: string;
  machine: MachineView;
  transitions: Transition[];
}

export interface Session {
  clusterId: string;
  connected: boolean;
  connectedSinceUnixNanos: Num;
  lastRollupUnixNanos: Num;
  needs: number;
  rollupsHeld: number;
  outboxDepth: number;
  lastRejection: string;
  peer: string;
  protocolVersion: string;
  features: string[];
}

export interface Sessions extends Answer {
  shard: string;
  sessions: Session[];
}

export interface Decision {
  sequence: string;
  cycle: number;
  timeUnixNanos: Num;
  kind: string;
  machineId: string;
  clusterId: string;
  profileFingerprint: string;
  group: string;
  priority: number;
  preemptorPriority: number;
  effectiveCost: Num;
  runnerUpCost: Num;
  reason: string;
  outcome: string;
  graceSeconds: number;
  error: string;
  ofSequence: string | null;
  gap: boolean;
}

export interface Decisions extends Answer {
  shard: string;
  decisions: Decision[];
  next: string | null;
  more: boolean;
  gap: boolean;
}

/** One cycle of one shard, from the stream. */
export interface Summary {
  shard: string;
  cycle: number;
  computedAtUnixNanos: Num;
  shardEpoch: number;
  phaseMicros: Counts;
  machines: { state: string; capacityType: string; count: number }[];
  dollarsPerHour: Counts;
  actions: Counts;
  shortfalls: Counts;
  sessions: number;
  needs: number;
  needsUnmet: number;
  queueDepth: number;
  actuationPaused: boolean;
  dryRun: boolean;
  fenced: boolean;
  lastReconcileUnixNanos: Num;
}
