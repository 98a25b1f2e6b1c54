// A fleet for the stub server, always the same for the same size and instant.

import type {
  ActionRates, AvailableCapacity, ClusterDetail, Clusters, Config, Decision, Decisions, Explain, Finops, FinopsShard, FinopsTrend,
  MachineDetail, Machines, MachineView, Needs, NeedView, Overview, Savings, Sessions, ShardDetail, ShardReports, Shards, ShardTrends,
  Summary, Topology, WhatIf,
} from '../../../src/api/types';

export interface Size {
  shards: number;
  needs: number;
  machines: number;
  clusters: number;
  decisions: number;
  domains: number;
}

export const SMALL: Size = { shards: 3, needs: 46, machines: 120, clusters: 5, decisions: 60, domains: 14 };
export const FULL: Size = { shards: 200, needs: 20_000, machines: 20_000, clusters: 20_000, decisions: 5_000, domains: 2_000 };

/** A generator with a seed: tests must not differ from run to run. */
function dice(seed: number): () => number {
  let state = Math.imul(seed, 2654435761) >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

const ZONES = ['eu-west-1a', 'eu-west-1b', 'eu-west-1c'];
const TYPES = ['m6i.2xlarge', 'm6i.8xlarge', 'c7g.4xlarge', 'p5.48xlarge', 'r6i.4xlarge'];
const CAPACITY = ['bare_metal', 'reserved', 'on_demand', 'spot'];
const STATES = ['configured', 'configured', 'configured', 'configured', 'configured', 'idle', 'idle', 'creating', 'configuring', 'draining', 'failed', 'speculative'];
const CLUSTERS = ['prod-eu', 'prod-us', 'ml-train', 'batch', 'staging'];
const KINDS = ['Bootstrap', 'Provision', 'Preempt', 'Reclaim', 'Delete'];
const TAGS: Record<string, string> = { Bootstrap: 'phase1.idle', Provision: 'phase1.speculative', Preempt: 'phase2.inversion', Reclaim: 'phase3.excess', Delete: 'phase3.release' };
const REASONS: [string, string | null][] = [
  ['PRIORITY_STARVED', null],
  ['NO_MATCHING_SUPPLY', null],
  ['TOPOLOGY_UNSATISFIABLE', null],
  ['PREEMPTION_EXHAUSTED', null],
  ['TOPOLOGY_UNSATISFIABLE', 'SPREAD_UNSATISFIABLE'],
  ['PRIORITY_STARVED', 'BOOTSTRAP_REFUSED'],
  ['PRIORITY_STARVED', 'PROVIDER_FAILING'],
  ['PRIORITY_STARVED', 'NO_SESSION'],
  ['PRIORITY_STARVED', 'PREEMPTION_UNDER_WAY'],
  ['PRIORITY_STARVED', 'QUOTA_EXHAUSTED'],
];

export class Fleet {
  /** Milliseconds; the server's idea of now when it was made. */
  readonly now: number;
  /** How long ago everything was computed, in seconds. */
  age = 3;

  constructor(readonly size: Size = SMALL, now = Date.now()) {
    this.now = now;
  }

  private computed(): number {
    return (Date.now() - this.age * 1000) * 1e6;
  }

  private answer(): { queriedAt: string } {
    return { queriedAt: new Date().toISOString() };
  }

  private sampled(): { queriedAt: string; sampledAtUnixNanos: number; scrapeIntervalSeconds: number } {
    return { ...this.answer(), sampledAtUnixNanos: this.computed(), scrapeIntervalSeconds: 5 };
  }

  cluster(index: number): string {
    return index < CLUSTERS.length ? (CLUSTERS[index] as string) : `cluster-${String(index).padStart(5, '0')}`;
  }

  config(): Config & Record<string, unknown> {
    return { grafanaUrl: '', prometheusWired: true, coordinatorWired: true, kubeconfigWired: true, metricsBy: 'prometheus', plaintext: false, openToNetwork: false, authMode: 'oidc', viewer: { name: 'jane', clusters: null }, logout: 'auth/logout', version: '0.1.0', basePath: '/', ...this.answer() };
  }

  overview(): Overview {
    const machines = this.size.machines * this.size.shards;
    return { shards: this.size.shards, clusters: this.size.clusters, machines, machinesByState: { configured: Math.round(machines * 0.72), idle: Math.round(machines * 0.1), creating: Math.round(machines * 0.03), configuring: Math.round(machines * 0.04), draining: Math.round(machines * 0.02), failed: Math.round(machines * 0.01), speculative: Math.round(machines * 0.08) }, machinesByCapacityType: { reserved: Math.round(machines * 0.4), on_demand: Math.round(machines * 0.2), spot: Math.round(machines * 0.3), bare_metal: Math.round(machines * 0.1) }, shortfalls: 7, needsUnmetByReason: { priority_starved: 4, no_matching_supply: 2, topology_unsatisfiable: 1, preemption_exhausted: 0 }, cycleP99Seconds: 0.0123, dollarsPerHour: 184.32, ...this.sampled() };
  }

  private times(steps: number, step: number): number[] {
    const end = Math.floor(Date.now() / 1000 / step) * step;
    return Array.from({ length: steps }, (_, index) => end - (steps - 1 - index) * step);
  }

  private wave(steps: number, base: number, swing: number, phase: number, gap = -1): (number | null)[] {
    return Array.from({ length: steps }, (_, index) => (index === gap ? null : Math.max(0, base + swing * Math.sin(index / 9 + phase) + (swing / 3) * Math.sin(index / 2.3 + phase))));
  }

  actions(): ActionRates {
    return { timestamps: this.times(120, 30), kinds: KINDS, values: KINDS.map((_, index) => this.wave(120, 0.4 / (index + 1), 0.3 / (index + 1), index, 40)), stepSeconds: 30, ...this.sampled() };
  }

  shards(): Shards {
    const shards = Array.from({ length: this.size.shards }, (_, index) => ({ pod: `shard-${index}`, cycleP99Seconds: index === 1 ? 1.42 : 0.008 + (index % 7) / 1000, machines: this.size.machines, shortfalls: index === 1 ? 7 : 0, activeSessions: 2 + (index % 3), dollarsPerHour: 61.4 + index / 10, paused: index === 2, fenced: false, live: true as boolean | null }));
    return { shards, ...this.sampled() };
  }

  shard(pod: string): ShardDetail {
    const row = this.shards().shards.find((shard) => shard.pod === pod) ?? this.shards().shards[0];
    const overview = this.overview();
    return { ...(row as Shards['shards'][number]), cycleP99ByPhaseSeconds: { reconcile: 0.0006, snapread: 0.0002, phase1: 0.0041, phase2: 0.0009, phase3: 0.0012, emit: 0.0004, execute: 0.0003 }, machinesByState: overview.machinesByState, machinesByCapacityType: overview.machinesByCapacityType, machinesByStateAndType: {}, actionsByKindRatePerSec: { Bootstrap: 0.4, Provision: 0.12, Preempt: 0.01, Reclaim: 0.08, Delete: 0.02 }, occCommittedPerSec: 0, occConflictPerSec: 0, ...this.sampled() };
  }

  trends(pod: string): ShardTrends {
    return { pod, timestamps: this.times(120, 30), cycleP99Seconds: this.wave(120, 0.009, 0.002, 0, 30), actionRates: Object.fromEntries(KINDS.map((kind, index) => [kind, this.wave(120, 0.3 / (index + 1), 0.2 / (index + 1), index)])), machinesByState: { configured: this.wave(120, 80, 8, 0), idle: this.wave(120, 14, 6, 2), draining: this.wave(120, 3, 2, 1) }, shortfalls: this.wave(120, 4, 4, 1).map((value) => (value === null ? null : Math.round(value))), dollarsPerHour: this.wave(120, 61, 4, 0), stepSeconds: 30, ...this.sampled() };
  }

  clusters(after: string | undefined, limit: number, search: string): Clusters {
    const all = Array.from({ length: this.size.clusters }, (_, index) => this.cluster(index)).sort().filter((cluster) => cluster.includes(search));
    const from = after === undefined ? 0 : all.findIndex((cluster) => cluster > after);
    const page = from < 0 ? [] : all.slice(from, from + limit);
    const more = from >= 0 && from + limit < all.length;
    return { clusters: page.map((cluster, index) => ({ cluster, capacityRequests: 120 + index, pendingCapacityRequests: index % 4, upcomingNodes: 18 + index, error: null })), total: all.length, next: more ? (page.at(-1) ?? null) : null, ...this.answer() };
  }

  clusterDetail(cluster: string): ClusterDetail {
    const many = this.size === FULL ? 2000 : 40;
    const capacityRequests = this.size === FULL ? 20_000 : many;
    return {
      cluster, capacityRequests, pendingCapacityRequests: 3, capacityRequestsByPhase: { Pending: 3, Acknowledged: capacityRequests - 3 }, upcomingNodes: 24, upcomingNodesByPhase: { Ready: 19, Provisioning: 2, Registered: 1, Draining: 1, Failed: 1 },
      requests: Array.from({ length: many }, (_, index) => ({ namespace: index % 3 ? 'shop' : 'ml', name: `web-${String(index).padStart(4, '0')}`, phase: index < 3 ? 'Pending' : 'Acknowledged', priority: index % 2 ? 1000 : 100, resources: { cpu: '2', memory: '8Gi' }, requirements: [{ key: 'topology.kubernetes.io/zone', operator: 'In', values: ['eu-west-1a'] }], interruptionPenalty: '16', reclamationPenalty: null, coLocation: index % 9 ? null : { topologyKey: 'topology.bigfleet/rack' }, satisfied: index < 3 ? null : index < 7 ? 'False' : 'True', reason: index < 3 ? null : index < 7 ? 'PriorityStarved' : 'Satisfied', message: index < 7 ? 'matching machines exist but went to needs ahead of it' : null, createdAt: new Date(this.now - index * 61_000).toISOString() })),
      nodes: Array.from({ length: 24 }, (_, index) => ({ name: `un-m-${index}`, machineId: `m-${String(index).padStart(5, '0')}`, phase: index === 0 ? 'Failed' : index < 3 ? 'Provisioning' : index === 3 ? 'Draining' : 'Ready', nodeName: index < 3 ? null : `node-${index}`, providerId: `sim://${index}`, instanceType: TYPES[index % 5] as string, zone: ZONES[index % 3] as string, resources: { cpu: '8' }, lastError: index === 0 ? 'launch failed: InsufficientInstanceCapacity' : null, createdAt: new Date(this.now - index * 3600_000).toISOString() })),
      requestsTruncated: this.size === FULL, nodesTruncated: false, ...this.answer(),
    };
  }

  available(): AvailableCapacity {
    const clusters = Array.from({ length: Math.min(200, this.size.clusters) }, (_, index) => ({
      cluster: this.cluster(index), error: null as string | null,
      capacities: TYPES.slice(0, 4).map((type, place) => ({ name: `avc-${type}`, resources: { cpu: '32', memory: '128Gi' }, availableCount: [120, 14, 3, 0][place] as number, availability: ['High', 'Medium', 'Low', 'None'][place] as string, cost: ['384m', '1.536', '768m', '98.32'][place] as string, requirements: [{ key: 'node.kubernetes.io/instance-type', operator: 'In', values: [type] }, { key: 'topology.kubernetes.io/zone', operator: 'In', values: ['eu-west-1a'] }], createdAt: null })) as AvailableCapacity['clusters'][number]['capacities'],
    }));
    return { clusters, total: this.size.clusters, next: clusters.length < this.size.clusters ? this.cluster(clusters.length - 1) : null, ...this.answer() };
  }

  topology(): Topology {
    return {
      coordinator: { raftTerm: 7, applyRatePerSec: 12.4, applyErrorRatePerSec: 0, pendingInstructionsTotal: 2, lastExportUnixSeconds: Date.now() / 1000 - 1900, transfersByPhase: { draining: 3, handover: 1 }, recovering: false, leaderId: 'coordinator-1' },
      replicas: ['coordinator-0', 'coordinator-1', 'coordinator-2'].map((nodeId, index) => ({ address: `${nodeId}.bigfleet:7790`, nodeId, role: index === 1 ? 'leader' : 'follower', phase: 'open', term: 7, commitIndex: 18_402, appliedIndex: 18_402 - index, lag: index, voters: [], error: null })),
      shards: Array.from({ length: this.size.shards }, (_, index) => ({ shardId: `shard-${index}`, address: `shard-${index}.bigfleet:7780`, registeredAtUnixNs: (this.now - 86_400_000) * 1e6, lastHeartbeatUnixNs: this.computed() })),
      domainAssignments: Array.from({ length: this.size.domains }, (_, index) => ({ topologyKey: index % 3 ? 'topology.bigfleet/rack' : 'topology.kubernetes.io/zone', topologyValue: index % 3 ? `rack-${index}` : `zone-${index}`, shardId: `shard-${index % this.size.shards}` })),
      domainsNext: null,
      quotas: [{ provider: 'ec2', region: 'eu-west-1', perShard: { 'shard-0': 400, 'shard-1': 400, 'shard-2': 200 } }],
      providers: [{ name: 'ec2', address: 'provider-ec2.bigfleet:7788', region: 'eu-west-1' }, { name: 'metal', address: 'provider-static.bigfleet:7788', region: '' }],
      rebuilding: false, warnings: [], ...this.answer(),
    };
  }

  reports(): ShardReports {
    return {
      reports: Array.from({ length: this.size.shards }, (_, index) => ({
        shardId: `shard-${index}`, cycle: 18_000 + index, receivedAtUnixNs: this.computed(),
        summary: { totalMachines: this.size.machines, freeMachines: Math.round(this.size.machines * 0.18), instanceTypeCounts: Object.fromEntries(TYPES.map((type, place) => [type, Math.round(this.size.machines / (place + 2))])), zoneCounts: Object.fromEntries(ZONES.map((zone, place) => [zone, Math.round(this.size.machines / (place + 2))])), providerAddress: index === 2 ? '' : 'provider-ec2.bigfleet:7788' },
        shortfalls: Array.from({ length: index === 0 ? 6 : index === 1 ? 100 : 0 }, (_, place) => {
          // Whose it is nobody knows; a viewer with a scope is not told what it asks for.
          const hidden = index === 0 && place === 5;
          const ageCycles = 1 + ((place * 7) % 40);
          return {
            priority: [1_000_000, 1000, 100][place % 3] as number,
            deficit: hidden ? null : { cpu: `${8 * (place + 1)}`, memory: `${32 * (place + 1)}Gi` },
            ageCycles,
            penaltyBucket: ['pinned', '1024', '0.5', '16'][place % 4] as string,
            requirements: hidden
              ? []
              : [{ key: 'topology.kubernetes.io/zone', operator: 'In', values: [ZONES[place % 3] as string] }],
            minUnit: hidden ? null : {},
            escalated: ageCycles > 5,
            hidden,
          };
        }),
      })),
      silentShards: [], rebuilding: false, ...this.answer(),
    };
  }

  need(index: number): NeedView {
    const roll = dice(index + 7);
    const cluster = this.size === FULL ? this.cluster(Math.floor(index / 40) % 200) : this.cluster(index % 5);
    const gang = index % 6 === 0;
    const unmet = this.size === FULL ? index % 5 === 0 : index % 3 === 1 || gang;
    const [reason, detail] = gang ? ['TOPOLOGY_UNSATISFIABLE', null] : (REASONS[Math.floor(index / 3) % REASONS.length] as [string, string | null]);
    const profile = this.size === FULL ? index % 900 : index % 11;
    const priority = [1_000_000, 100_000, 1000, 100][Math.floor((index / this.size.needs) * 4)] as number;
    const cpu = 8 * (1 + Math.floor(roll() * 60));
    return {
      clusterId: cluster, profileFingerprint: `p=${priority}|ipb=${profile % 27}|rpb=2|reqs=pool:1:${profile};zone:1:${ZONES[profile % 3]}`,
      arrivalUnixNanos: (this.now - index * 97_000) * 1e6, satisfied: !unmet,
      need: {
        requirements: gang
          ? [{ key: 'topology.bigfleet/rack', operator: 'Same', values: [] }, { key: 'node.kubernetes.io/instance-type', operator: 'In', values: ['p5.48xlarge'] }]
          : [{ key: 'topology.kubernetes.io/zone', operator: 'In', values: [ZONES[profile % 3] as string] }, ...(profile % 2 ? [{ key: 'kubernetes.io/arch', operator: 'In', values: ['arm64'] }] : [])],
        aggregateResources: gang ? { 'nvidia.com/gpu': '64', cpu: '768', memory: '8Ti' } : { cpu: String(cpu), memory: `${cpu * 4}Gi` },
        minUnit: gang ? { 'nvidia.com/gpu': '8', cpu: '96', memory: '1Ti' } : { cpu: '2', memory: '8Gi' },
        priority, spread: profile === 4 ? [{ topologyKey: 'topology.kubernetes.io/zone', maxSkew: 1, whenUnsatisfiable: 'DoNotSchedule' }] : [],
        interruptionPenaltyBucket: ['0', '0.5', '16', '1024', '65536', 'pinned'][profile % 6] as string, reclamationPenaltyBucket: ['0', '64', '8192'][profile % 3] as string,
        group: gang ? `topology.bigfleet/rack\u0000job=llm-${index},;\u0000ml` : '',
      },
      residualDeficit: unmet ? (gang ? { 'nvidia.com/gpu': '24', cpu: '288', memory: '3Ti' } : { cpu: String(Math.ceil(cpu / 3)) }) : null,
      claimedMachineCount: unmet ? (gang ? 5 : index % 2 ? 3 : 0) : Math.max(1, Math.round(cpu / 32)), bootstrapCount: index % 4 === 0 ? 1 : 0, provisionCount: index % 7 === 0 ? 1 : 0,
      sameDomain: gang ? 'rack-17' : '', sameSatisfiable: gang ? false : null, acquisitionParked: gang && index % 12 === 0, parkedAgeCycles: gang && index % 12 === 0 ? 22 : 0, ageCyclesUnmet: unmet ? 1 + (index % 70) : 0,
      reason: unmet ? (detail ?? reason) : null, unmetReason: unmet ? reason : null, unmetDetail: unmet ? detail : null,
      detailText: detail === 'BOOTSTRAP_REFUSED' ? 'template: bootstrap:3: function "joinToken" not defined' : detail === 'PROVIDER_FAILING' ? 'create m-00017: InsufficientInstanceCapacity in eu-west-1a' : '',
      matchingSupply: unmet ? { idle: 0, configured: 41, speculative: index % 2 ? 0 : 1000, capped: index % 2 === 0 } : null,
      preemption: reason === 'PREEMPTION_EXHAUSTED' && unmet ? { victimsFound: 2, capacityFreed: { cpu: '16', memory: '64Gi' } } : null,
      sameCandidates: gang ? Array.from({ length: 8 }, (_, place) => ({ domain: `rack-${17 + place}`, coveragePerMille: 625 - place * 70, satisfiable: false })) : [],
    };
  }

  needs(shard: string, cluster: string | undefined, limit: number): Needs {
    const all = Array.from({ length: this.size.needs }, (_, index) => this.need(index)).filter((need) => cluster === undefined || need.clusterId === cluster);
    return { shard, cycle: 18_231, computedAtUnixNanos: this.computed(), totalNeeds: all.length, rebuilding: false, ...this.answer(), needs: all.slice(0, limit) };
  }

  machine(index: number): MachineView {
    const roll = dice(index + 99);
    const state = STATES[Math.floor(roll() * STATES.length)] as string;
    const bound = ['configured', 'configuring', 'draining'].includes(state);
    const capacityType = CAPACITY[Math.floor(roll() * 4)] as string;
    return {
      id: `m-${String(index).padStart(5, '0')}`, state, sinceUnixNanos: (this.now - Math.floor(roll() * 9e7)) * 1e6, instanceType: TYPES[index % 5] as string, zone: ZONES[index % 3] as string, capacityType,
      pricePerHour: capacityType === 'spot' ? 0.11 : capacityType === 'on_demand' ? 0.38 : 0, interruptionProbability: capacityType === 'spot' ? 0.3 : 0.05, hostProvider: state === 'speculative' ? null : 'ec2', hostRef: state === 'speculative' ? null : `i-0abc${index}`,
      resources: { cpu: '8', memory: '32Gi' }, allocatable: { cpu: '7.5', memory: '28Gi' }, labels: { 'topology.bigfleet/rack': `rack-${index % 40}`, 'kubernetes.io/arch': 'amd64' }, lastError: state === 'failed' ? 'launch failed: InsufficientInstanceCapacity' : '', cluster: bound ? this.cluster(index % 5) : '',
      assignedPriority: bound ? 1000 : null, assignedInterruptionPenaltyDollars: bound ? 16 : null, assignedReclamationPenaltyDollars: bound ? 64 : null, assignedFingerprint: bound ? 'p=1000|ipb=7|rpb=9|reqs=' : '', assignedGroup: '', inFlight: state === 'configuring' ? 'Bootstrap' : state === 'draining' ? 'Reclaim' : '', claimedByFingerprint: state === 'configured' ? 'p=1000|ipb=7|rpb=9|reqs=' : '', claimedByGroup: '', notAcquirableUntilUnixNanos: null,
    };
  }

  machines(shard: string, limit: number, page: string | undefined, keep: (machine: MachineView) => boolean): Machines {
    const all = Array.from({ length: this.size.machines }, (_, index) => this.machine(index)).filter(keep);
    const from = Number(page ?? 0);
    return { shard, cycle: 18_231, computedAtUnixNanos: this.computed(), total: all.length, next: from + limit < all.length ? String(from + limit) : null, machines: all.slice(from, from + limit), ...this.answer() };
  }

  machineDetail(shard: string, id: string): MachineDetail {
    const steps = [['speculative', 'creating', 'decision'], ['creating', 'idle', 'ack'], ['idle', 'configuring', 'decision'], ['configuring', 'idle', 'rollback'], ['idle', 'configuring', 'decision'], ['configuring', 'configured', 'ack']];
    return { shard, machine: { ...this.machine(Number(id.slice(2)) || 0), id }, transitions: steps.map(([from, to, cause], index) => ({ from: from as string, to: to as string, timeUnixNanos: (this.now - (6 - index) * 97_000) * 1e6, cause: cause as string, ofSequence: `10995116277${index}`, error: cause === 'rollback' ? 'blob_timeout: no answer in 30 s' : '', clusterId: index > 1 ? 'prod-eu' : null })), ...this.answer() };
  }

  sessions(shard: string): Sessions {
    const some = Math.min(2000, this.size.clusters);
    return { shard, sessions: Array.from({ length: some }, (_, index) => ({ clusterId: this.cluster(index), connected: index !== 3, connectedSinceUnixNanos: (this.now - 4e6) * 1e6, lastRollupUnixNanos: (Date.now() - ((index % 5) + 1) * 3000) * 1e6, needs: 12 * index, rollupsHeld: index === 2 ? 2 : 0, outboxDepth: index, lastRejection: index === 4 ? 'need 3: quantity "12x" of cpu does not parse' : '', peer: `10.0.${index % 256}.7:51822`, protocolVersion: '1.4', features: ['need-status'] })), ...this.answer() };
  }

  decision(index: number): Decision {
    const at = Math.floor(index / 2);
    const kind = KINDS[at % 5] as string;
    const later = index % 2 === 1;
    return { sequence: String(1099511627777n + BigInt(index)), cycle: 18_000 + Math.floor(index / 12), timeUnixNanos: (Date.now() - (this.size.decisions - index) * 1500) * 1e6, kind, machineId: `m-${String(at % 200).padStart(5, '0')}`, clusterId: kind === 'Delete' ? '' : this.cluster(at % 5), profileFingerprint: kind === 'Delete' ? '' : 'p=1000|ipb=7|rpb=9|reqs=', group: '', priority: kind === 'Delete' ? 0 : 1000, preemptorPriority: kind === 'Preempt' ? 1_000_000 : 0, effectiveCost: kind === 'Provision' ? 0.16 : 0.1, runnerUpCost: kind === 'Provision' ? 0.38 : null, reason: TAGS[kind] as string, outcome: later ? (at % 11 === 5 ? 'provider_error' : 'success') : 'decided', graceSeconds: kind === 'Preempt' ? 10 : kind === 'Reclaim' ? 600 : 0, error: later && at % 11 === 5 ? 'create: RESOURCE_EXHAUSTED: quota' : '', ofSequence: later ? String(1099511627777n + BigInt(index - 1)) : null, gap: false };
  }

  decisions(shard: string, limit: number, keep: (decision: Decision) => boolean): Decisions {
    const all = Array.from({ length: this.size.decisions }, (_, index) => this.decision(index)).filter(keep);
    const decisions = all.slice(-limit);
    return { shard, decisions, next: decisions.at(-1)?.sequence ?? '0', more: false, gap: false, ...this.answer() };
  }

  explain(shard: string, need: NeedView): Explain {
    return {
      shard, cycle: 18_231, computedAtUnixNanos: this.computed(), need, rank: 23, rankOf: this.size.needs,
      funnel: { matching: 164, usable: 152, boundHere: 20, boundElsewhere: 88, idleFree: 0, speculativeFree: 0, inTransition: 6, failed: 2, heldBack: 4, takenThisCycle: 32, claimed: need.claimedMachineCount },
      ahead: Array.from({ length: 14 }, (_, index) => ({ clusterId: this.cluster(index % 5), profileFingerprint: `p=1000000|ipb=${index}|rpb=2|reqs=`, group: index % 3 ? '' : `gang-${index}\u0000ml`, priority: 1_000_000 - index * 1000, machinesTaken: 14 - index, arrivalUnixNanos: (this.now - index * 1e6) * 1e6 })),
      hiddenAhead: { needs: 2, machinesTaken: 5 }, domains: Array.from({ length: 40 }, (_, index) => ({ domain: `rack-${17 + index}`, coveragePerMille: Math.max(0, 625 - index * 16), satisfiable: false })),
      decisions: [0, 2, 4].map((index) => this.decision(index)), ...this.answer(),
    };
  }

  whatif(shard: string): WhatIf {
    const taken = this.size === FULL ? 1000 : 8;
    return { shard, cycle: 18_231, computedAtUnixNanos: this.computed(), satisfied: true, reason: null, unmetReason: null, unmetDetail: null, residualDeficit: null, picks: Array.from({ length: taken }, (_, index) => ({ machineId: `m-${String(index).padStart(5, '0')}`, state: index < 3 ? 'idle' : 'speculative', effectiveCost: 98.32, clusterId: '', priority: 0 })), victims: [{ machineId: 'm-00040', state: 'configured', effectiveCost: 98.32, clusterId: 'batch', priority: 100 }], dollarsPerHour: 491.6, sameDomain: 'rack-7', ...this.answer() };
  }

  finops(): Finops {
    const buckets = ['unspecified', '0', '0.5', ...Array.from({ length: 24 }, (_, power) => String(2 ** power)), 'pinned'];
    const capacityTypes = ['bare_metal', 'reserved', 'on_demand', 'spot', 'unspecified'];
    const roll = dice(5);
    const row = (low: number, high: number, most: number): number[] => buckets.map((_, index) => (index >= low && index <= high ? Math.floor(roll() * most) : 0));
    const configured = [row(10, 24, 30), row(3, 22, 90), row(12, 27, 60), row(1, 9, 220), row(99, 99, 0)];
    (configured[3] as number[])[27] = 3;
    const supply = buckets.map((_, index) => configured.reduce((sum, one) => sum + (one[index] as number), 0));
    return {
      totals: { machines: 2400, configured: 2100, idle: 210, idleShare: 0.0875, dollarsPerHour: 184.32, demandRows: 840 }, buckets, capacityTypes, configured, machines: configured,
      machinesByTypeAndState: { bare_metal: { configured: 200, idle: 10 }, reserved: { configured: 700, idle: 60 }, on_demand: { configured: 420, idle: 30, speculative: 900 }, spot: { configured: 780, idle: 110, draining: 12, speculative: 4000 } },
      demandByBucket: supply.map((n) => Math.round(n / 3)), supplyByBucket: supply, dollarsPerHour: { bare_metal: { configured: 0 }, reserved: { configured: 0 }, on_demand: { configured: 98.2, idle: 3.4 }, spot: { configured: 74.9, idle: 7.82 } },
      actionRatesPerSec: { Bootstrap: 0.4, Provision: 0.12, Preempt: 0.01, Reclaim: 0.08, Delete: 0.02 },
      redFlags: [{ id: 'pinned-on-spot', severity: 'danger', title: 'Pinned work on Spot', detail: '3 machines that may vanish carry work that may never be interrupted.', value: 3, where: ['shard-0'], estimate: false }],
      unchecked: [{ id: 'create-and-delete-rising', why: 'no samples for two hours: start the dashboard with --prometheus-url of a server that keeps them' }], ...this.sampled(),
    };
  }

  trend(): FinopsTrend {
    return { timestamps: this.times(120, 21_600), series: [{ capacityType: 'on_demand', state: 'configured', values: this.wave(120, 90, 20, 0, 50) }, { capacityType: 'on_demand', state: 'idle', values: this.wave(120, 4, 3, 0) }, { capacityType: 'spot', state: 'configured', values: this.wave(120, 70, 30, 2) }], stepSeconds: 21_600, ...this.sampled() };
  }

  finopsShard(shard: string): FinopsShard {
    const rows = CLUSTERS.flatMap((cluster, index) => ['critical', 'service', 'batch'].map((priorityClass, place) => ({ cluster, priorityClass, capacityType: 'spot', state: 'configured', machines: 4 * (index + 1) * (place + 1), dollarsPerHour: 0.44 * (index + 1) * (place + 1) })));
    return { shard, cycle: 18_231, machines: 120, truncated: false, rows: [...rows, { cluster: '', priorityClass: '', capacityType: 'spot', state: 'idle', machines: 12, dollarsPerHour: 1.32 }], redFlags: [{ id: 'idle-past-hold', severity: 'warning', title: 'Idle elastic machines past twice their hold', detail: '4 spot machines have been idle for longer than 2 minutes.', value: 4, where: [shard], estimate: true }], ...this.answer() };
  }

  savings(shard: string): Savings {
    const rows = Array.from({ length: Math.min(500, this.size.decisions) }, (_, index) => ({ sequence: String(1099511627777n + BigInt(index)), timeUnixNanos: (this.now - index * 9000) * 1e6, cycle: 18_000 - index, kind: 'Provision', machineId: `m-${String(index).padStart(5, '0')}`, clusterId: this.cluster(index % 5), reason: 'phase1.speculative', cost: 0.16, runnerUpCost: 0.38, savedPerHour: 0.22 }));
    return { shard, decisions: 4 * this.size.decisions, compared: this.size.decisions, savedPerHour: this.size.decisions * 0.22, gap: false, rows, ...this.answer() };
  }

  summary(shard: string): Summary {
    return { shard, cycle: 18_231, computedAtUnixNanos: this.computed(), shardEpoch: 1, phaseMicros: { phase1: 4100 }, machines: [{ state: 'configured', capacityType: 'spot', count: 90 }, { state: 'idle', capacityType: 'reserved', count: 12 }], dollarsPerHour: { spot: 9.9 }, actions: { Bootstrap: 1 }, shortfalls: { batch: 2 }, sessions: 4, needs: 46, needsUnmet: 7, queueDepth: 0, actuationPaused: shard === 'shard-2', dryRun: false, fenced: false, lastReconcileUnixNanos: this.computed() };
  }
}
