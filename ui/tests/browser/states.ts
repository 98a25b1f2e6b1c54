// The states of experience chapter §3.6 as answers of the stub server.

import { Fleet, FULL } from './stub/fleet';
import type { Handler, Stub } from './stub/server';

const FLAGS: [RegExp, string][] = [
  [/^(fleet|finops\/(snapshot|trend)|shards)/, '--prometheus-url'],
  [/^(clusters|available-capacity)/, '--kubeconfig'],
  [/./, '--coordinator-addr'],
];

function flagOf(path: string): string {
  return FLAGS.find(([pattern]) => pattern.test(path))?.[1] ?? '';
}

const all =
  (answer: (path: string) => ReturnType<Handler>): Handler =>
  (path) =>
    path === 'config' ? undefined : answer(path);

/** Fields of an answer replaced, whatever else it says. */
function patched(stub: Stub, patches: Record<string, (body: Record<string, unknown>) => object>): Handler {
  return (path, query) => {
    const name = Object.keys(patches).find((pattern) => new RegExp(`^${pattern.replaceAll('*', '[^/]+')}$`).test(path));
    if (name === undefined) return undefined;
    const { body } = stub.plain(path, query);
    return { body: { ...(body as object), ...patches[name]?.(body as Record<string, unknown>) } };
  };
}

export const STATES: Record<string, (stub: Stub) => void> = {
  loading: (stub) => {
    stub.override = all(() => 'hang');
  },
  unwired: (stub) => {
    stub.override = all((path) => ({
      status: 503,
      body: { error: `not wired: start the dashboard with ${flagOf(path)}` },
    }));
  },
  failing: (stub) => {
    stub.override = all((path) => ({ status: 502, body: { error: `${path} timed out after 5 s` } }));
  },
  rebuilding: (stub) => {
    stub.override = patched(stub, {
      needs: () => ({ cycle: 0, computedAtUnixNanos: null, totalNeeds: 0, rebuilding: true, needs: [] }),
      machines: () => ({ cycle: 0, computedAtUnixNanos: null, total: 0, machines: [], next: null }),
      topology: (body) => ({
        rebuilding: true,
        shards: (body.shards as object[]).map((one) => ({ ...one, lastHeartbeatUnixNs: null })),
      }),
      'shard-reports': () => ({ rebuilding: true, reports: [], silentShards: ['shard-0'] }),
      whatif: () => ({ cycle: 0, computedAtUnixNanos: null, satisfied: false, picks: [], victims: [] }),
      sessions: () => ({ sessions: [] }),
      decisions: () => ({ decisions: [] }),
      'finops/shard': () => ({ cycle: 0, computedAtUnixNanos: null, machines: 0, rows: [], redFlags: [] }),
      'finops/savings': () => ({ decisions: 0, compared: 0, savedPerHour: 0, rows: [] }),
    });
  },
  empty: (stub) => {
    stub.override = patched(stub, {
      needs: () => ({ totalNeeds: 0, needs: [] }),
      machines: () => ({ total: 0, machines: [], next: null }),
      topology: () => ({ domainAssignments: [], quotas: [], providers: [] }),
      'shard-reports': () => ({ reports: [] }),
      'fleet/overview': () => ({
        shards: 0,
        clusters: 0,
        machines: 0,
        machinesByState: {},
        machinesByCapacityType: {},
        shortfalls: 0,
        needsUnmetByReason: { priority_starved: 0 },
        dollarsPerHour: 0,
      }),
      'fleet/actions': () => ({ timestamps: [], kinds: [], values: [] }),
      shards: () => ({ shards: [] }),
      'shards/*/trends': () => ({
        timestamps: [],
        cycleP99Seconds: [],
        actionRates: {},
        machinesByState: {},
        shortfalls: [],
      }),
      sessions: () => ({ sessions: [] }),
      clusters: () => ({ clusters: [], total: 0 }),
      'clusters/*': () => ({
        capacityRequests: 0,
        capacityRequestsByPhase: {},
        upcomingNodes: 0,
        upcomingNodesByPhase: {},
        requests: [],
        nodes: [],
      }),
      'available-capacity': () => ({ clusters: [] }),
      decisions: () => ({ decisions: [] }),
      'finops/snapshot': (body) => ({
        redFlags: [],
        unchecked: [],
        configured: (body.configured as number[][]).map((row) => row.map(() => 0)),
        demandByBucket: [],
        supplyByBucket: [],
      }),
      'finops/trend': () => ({ timestamps: [], series: [] }),
      'finops/shard': () => ({ machines: 0, rows: [], redFlags: [] }),
      'finops/savings': () => ({ decisions: 0, compared: 0, savedPerHour: 0, rows: [] }),
    });
  },
  partial: (stub) => {
    stub.override = patched(stub, {
      needs: (body) => ({ totalNeeds: 90_000, needs: body.needs }),
      topology: (body) => ({
        warnings: ['rates and transfers are not known: start the dashboard with --prometheus-url'],
        coordinator: {
          ...(body.coordinator as object),
          applyRatePerSec: null,
          pendingInstructionsTotal: null,
          transfersByPhase: null,
          lastExportUnixSeconds: null,
        },
        replicas: (body.replicas as object[]).map((one, index) =>
          index === 2
            ? {
                address: 'coordinator-2:7790',
                nodeId: null,
                role: null,
                phase: null,
                term: null,
                commitIndex: null,
                appliedIndex: null,
                lag: null,
                voters: null,
                error: 'connection refused',
              }
            : one,
        ),
      }),
      'shard-reports': (body) => ({
        silentShards: ['shard-1', 'shard-2'],
        reports: (body.reports as object[]).slice(0, 1).map((one) => ({ ...one, summary: null })),
      }),
      'fleet/overview': () => ({
        shards: null,
        machines: null,
        machinesByState: { idle: null, configured: 4 },
        machinesByCapacityType: {},
        shortfalls: null,
        needsUnmetByReason: {},
        cycleP99Seconds: null,
        dollarsPerHour: null,
      }),
      shards: (body) => ({
        shards: (body.shards as object[]).map((one) => ({
          ...one,
          machines: null,
          shortfalls: null,
          cycleP99Seconds: null,
          live: null,
          paused: null,
          dollarsPerHour: null,
        })),
      }),
      'shards/*': () => ({
        cycleP99Seconds: null,
        machines: null,
        machinesByState: null,
        cycleP99ByPhaseSeconds: null,
        dollarsPerHour: null,
      }),
      clusters: (body) => ({
        clusters: (body.clusters as object[]).map((one, index) =>
          index === 1
            ? {
                ...one,
                capacityRequests: null,
                pendingCapacityRequests: null,
                upcomingNodes: null,
                error: 'timed out after 30 s',
              }
            : one,
        ),
      }),
      'clusters/*': () => ({
        requestsTruncated: true,
        nodesTruncated: true,
        capacityRequests: 9000,
        upcomingNodes: 900,
      }),
      'available-capacity': (body) => ({
        clusters: (body.clusters as object[]).map((one, index) =>
          index === 1 ? { ...one, error: 'forbidden', capacities: null } : one,
        ),
      }),
      machines: (body) => ({ total: null, machines: body.machines }),
      decisions: () => ({ gap: true, more: true }),
      whatif: () => ({
        satisfied: false,
        unmetReason: 'PRIORITY_STARVED',
        residualDeficit: { cpu: '8' },
        picks: [{ machineId: 'm-00001', state: 'idle', effectiveCost: null, clusterId: '', priority: 0 }],
        // Of a cluster that the viewer may not see.
        victims: [{ machineId: 'x-1', state: 'configured', effectiveCost: null, clusterId: null, priority: null }],
        dollarsPerHour: null,
        sameDomain: '',
      }),
      'finops/shard': () => ({ truncated: true, machines: 200_000, redFlags: [] }),
      'finops/snapshot': () => ({
        totals: {
          machines: null,
          configured: null,
          idle: null,
          idleShare: null,
          dollarsPerHour: null,
          demandRows: null,
        },
        configured: null,
        machines: null,
        machinesByTypeAndState: null,
        demandByBucket: null,
        dollarsPerHour: null,
        actionRatesPerSec: null,
      }),
    });
  },
  stale: (stub) => {
    stub.fleet.age = 400;
  },
  full: (stub) => {
    stub.fleet = new Fleet(FULL);
  },
};
