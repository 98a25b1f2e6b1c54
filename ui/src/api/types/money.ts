// Where the money goes.

import type { Num, Known, Answer, Sampled } from './answer';

export interface RedFlag {
  id: string;
  severity: string;
  title: string;
  detail: string;
  value: Num;
  where: string[];
  estimate: boolean;
}

export interface Finops extends Sampled {
  totals: { machines: Num; configured: Num; idle: Num; idleShare: Num; dollarsPerHour: Num; demandRows: Num };
  buckets: string[];
  capacityTypes: string[];
  configured: Num[][] | null;
  machines: Num[][] | null;
  machinesByTypeAndState: Record<string, Known> | null;
  demandByBucket: Num[] | null;
  supplyByBucket: Num[] | null;
  dollarsPerHour: Record<string, Known> | null;
  actionRatesPerSec: Known | null;
  redFlags: RedFlag[];
  unchecked: { id: string; why: string }[];
}

export interface FinopsTrend extends Sampled {
  timestamps: number[];
  series: { capacityType: string; state: string; values: Num[] }[];
  stepSeconds: number;
}

export interface FinopsShard extends Answer {
  shard: string;
  cycle: number;
  /** Left out by servers that do not know it. */
  computedAtUnixNanos?: Num;
  machines: Num;
  truncated: boolean;
  rows: {
    cluster: string;
    priorityClass: string;
    capacityType: string;
    state: string;
    machines: number;
    dollarsPerHour: Num;
  }[];
  redFlags: RedFlag[];
}

export interface SavingsRow {
  sequence: string;
  timeUnixNanos: Num;
  cycle: number;
  kind: string;
  machineId: string;
  clusterId: string;
  reason: string;
  cost: number;
  runnerUpCost: number;
  savedPerHour: number;
}

export interface Savings extends Answer {
  shard: string;
  decisions: number;
  compared: number;
  savedPerHour: Num;
  gap: boolean;
  rows: SavingsRow[];
}
