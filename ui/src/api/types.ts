// Bodies of the dashboard's HTTP API. `null` always means "not known".

export type Num = number | null;
export type Counts = Record<string, number>;
/** Of metrics: without entries nothing is known, which is not the same as 0. */
export type Known = Record<string, Num>;
export type Vector = Record<string, string>;

export interface Answer {
  queriedAt: string;
}

/** Answers from metrics: when the newest sample was taken. */
export interface Sampled extends Answer {
  sampledAtUnixNanos: Num;
  scrapeIntervalSeconds: Num;
}

export interface Config extends Answer {
  grafanaUrl: string;
  prometheusWired: boolean;
  coordinatorWired: boolean;
  kubeconfigWired: boolean;
  plaintext: boolean;
  openToNetwork: boolean;
  authMode: string;
  viewer: { name: string; clusters: string[] | null } | null;
  logout: string | null;
  version: string;
}

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
}

export interface ShardReport {
  shardId: string;
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
  machineId: string;
  state: string;
  effectiveCost: Num;
  clusterId: string | null;
  priority: number;
}

export interface WhatIf extends Answer {
  shard: string;
  cycle: number;
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
