// Answers from metrics.

import type { Num, Known, Sampled } from './answer';

export interface Overview extends Sampled {
  shards: Num;
  clusters: Num;
  machines: Num;
  machinesByState: Known | null;
  machinesByCapacityType: Known | null;
  shortfalls: Num;
  needsUnmetByReason: Known | null;
  cycleP99Seconds: Num;
  dollarsPerHour: Num;
}

export interface ActionRates extends Sampled {
  timestamps: number[];
  kinds: string[];
  values: Num[][];
  stepSeconds: number;
}

export interface ShardRow {
  pod: string;
  cycleP99Seconds: Num;
  machines: Num;
  shortfalls: Num;
  activeSessions: Num;
  dollarsPerHour: Num;
  paused: boolean | null;
  fenced: boolean | null;
  live: boolean | null;
}

export interface Shards extends Sampled {
  shards: ShardRow[];
}

export interface ShardDetail extends Sampled, ShardRow {
  cycleP99ByPhaseSeconds: Known | null;
  machinesByState: Known | null;
  machinesByCapacityType: Known | null;
  machinesByStateAndType: Record<string, Known> | null;
  actionsByKindRatePerSec: Known | null;
  occCommittedPerSec: Num;
  occConflictPerSec: Num;
}

export interface ShardTrends extends Sampled {
  pod: string;
  timestamps: number[];
  cycleP99Seconds: Num[];
  actionRates: Record<string, Num[]>;
  machinesByState: Record<string, Num[]>;
  shortfalls: Num[];
  dollarsPerHour: Num[];
  stepSeconds: number;
}
