// Answers from the kinds of managed clusters.

import type { Num, Counts, Vector, Answer } from './answer';

export interface ClusterRow {
  cluster: string;
  capacityRequests: Num;
  pendingCapacityRequests: Num;
  upcomingNodes: Num;
  error: string | null;
}

export interface Clusters extends Answer {
  clusters: ClusterRow[];
  total: Num;
  next: string | null;
}

export interface Requirement {
  key: string;
  operator: string;
  values: string[];
}

export interface CapacityRequest {
  namespace: string;
  name: string;
  phase: string;
  priority: number;
  resources: Vector;
  requirements: Requirement[];
  interruptionPenalty: string | null;
  reclamationPenalty: string | null;
  coLocation: { topologyKey: string } | null;
  satisfied: string | null;
  reason: string | null;
  message: string | null;
  createdAt: string | null;
}

export interface UpcomingNode {
  name: string;
  machineId: string | null;
  phase: string;
  nodeName: string | null;
  providerId: string | null;
  instanceType: string | null;
  zone: string | null;
  resources: Vector;
  lastError: string | null;
  createdAt: string | null;
}

export interface ClusterDetail extends Answer {
  cluster: string;
  capacityRequests: Num;
  pendingCapacityRequests: Num;
  capacityRequestsByPhase: Counts;
  upcomingNodes: Num;
  upcomingNodesByPhase: Counts;
  requests: CapacityRequest[];
  nodes: UpcomingNode[];
  requestsTruncated: boolean;
  nodesTruncated: boolean;
}

export interface Capacity {
  name: string;
  resources: Vector;
  availableCount: number;
  availability: string;
  cost: string;
  requirements: Requirement[];
  createdAt: string | null;
}

export interface AvailableCapacity extends Answer {
  clusters: { cluster: string; error: string | null; capacities: Capacity[] | null }[];
  total: Num;
  next: string | null;
}
