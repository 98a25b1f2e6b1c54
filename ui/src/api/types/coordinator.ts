// Answers of the coordinator.

import type { Num, Counts, Known, Vector, Answer } from './answer';
import type { Requirement } from './crds';

export interface Replica {
  address: string;
  nodeId: string | null;
  role: string | null;
  phase: string | null;
  term: Num;
  commitIndex: Num;
  appliedIndex: Num;
  lag: Num;
  voters: string[] | null;
  error: string | null;
}

export interface Topology extends Answer {
  coordinator: {
    raftTerm: Num;
    applyRatePerSec: Num;
    applyErrorRatePerSec: Num;
    pendingInstructionsTotal: Num;
    lastExportUnixSeconds: Num;
    transfersByPhase: Known | null;
    recovering: boolean | number | null;
    leaderId: string | null;
  };
  replicas: Replica[];
  shards: { shardId: string; address: string; registeredAtUnixNs: Num; lastHeartbeatUnixNs: Num }[];
  domainAssignments: { topologyKey: string; topologyValue: string; shardId: string }[];
  domainsNext: string | null;
  quotas: { provider: string; region: string; perShard: Counts }[];
  providers: { name: string; address: string; region: string }[];
  rebuilding: boolean;
  warnings: string[];
}

export interface Shortfall {
  priority: number;
  deficit: Vector | null;
  ageCycles: number;
  penaltyBucket: string;
  requirements: Requirement[];
  minUnit?: Vector | null;
  escalated: boolean;
  /** What it asks for is not told to a viewer who may not see every cluster. */
  hidden: boolean;
}

export interface ShardReport {
  shardId: string;
  /** The number of the report, which is no cycle of the engine. */
  cycle: Num;
  receivedAtUnixNs: Num;
  summary: {
    totalMachines: Num;
    freeMachines: Num;
    instanceTypeCounts: Counts;
    zoneCounts: Counts;
    providerAddress: string;
  } | null;
  shortfalls: Shortfall[];
}

export interface ShardReports extends Answer {
  reports: ShardReport[];
  silentShards: string[];
  rebuilding: boolean;
}
