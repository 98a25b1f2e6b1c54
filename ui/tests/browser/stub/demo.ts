// A demo in the middle of a scenario, for the guide.

import type { DemoDecision, State } from '../../../src/guide/types';

const NAMES = ['move', 'burst', 'saturate', 'preemption', 'spot-interruption', 'zone-outage', 'gang', 'stock-out', 'provider-brown-out', 'leader-loss', 'coordinator-loss', 'shard-crash', 'everything-down', 'accident', 'kill-switch-and-dry-run'];

function tier(name: string, label: string, capacityType: string, from: number, to: number, probability: number, states: Record<string, number>): State['fleet']['tiers'][number] {
  const total = Object.values(states).reduce((sum, n) => sum + n, 0);
  return { tier: name, label, capacityType, committed: to === 0, priceFrom: from, priceTo: to, interruptionProbability: probability, dollarsPerHour: to * (states.configured ?? 0), total, states };
}

export function decision(sequence: number, changes: Partial<DemoDecision> = {}): DemoDecision {
  return { shard: 'shard-0', sequence, cycle: 800 + sequence, atUnixMs: Date.now() - 60_000 + sequence * 1000, kind: 'Provision', machine: `spot-${sequence}`, cluster: 'cluster-c', priority: 100, preemptorPriority: 0, effectiveCost: 0.1, runnerUpCost: 0.38, graceSeconds: 0, reason: 'phase1.speculative', outcome: 'decided', error: '', ofSequence: 0, text: '', ...changes };
}

export function demoState(): State {
  const pods = (wanted: number, running: number) => ({ wanted, running, pending: wanted - running });
  return {
    sequence: 412, atUnixMs: Date.now(),
    demo: { ready: true, hosted: false, plaintext: false, startedInMs: 2900, upForMs: 61_000, residentBytes: 171_000_000, dashboardUrl: 'http://127.0.0.1:8091/', unitText: 'one unit is one pod of 7 CPU and 26Gi: it fills a machine', problem: null, session: null },
    fleet: {
      dollarsPerHour: 1.84,
      tiers: [
        tier('owned', 'Owned bare metal', 'BARE_METAL', 0, 0, 0, { idle: 2, configured: 24, draining: 2 }),
        tier('reserved', 'Reserved', 'RESERVED', 0, 0, 0, { idle: 1, configured: 11 }),
        tier('ondemand', 'On-demand', 'ON_DEMAND', 0.38, 0.38, 0.05, { configured: 2, creating: 1, speculative: 13 }),
        tier('spot', 'Spot', 'SPOT', 0.1, 0.12, 0.3, { configured: 9, configuring: 2, speculative: 21, failed: 1 }),
        tier('gpu', 'GPU', 'RESERVED', 0, 0, 0, { idle: 32 }),
      ],
    },
    workspaces: ['a', 'b', 'c'].map((id, index) => ({
      id, cluster: `cluster-${id}`, shard: `shard-${index % 2}`, label: `Cluster ${id.toUpperCase()}`, levels: { batch: 4 + index * 6, production: 6, critical: index },
      pods: { batch: pods(4 + index * 6, 4 + index * 4), production: pods(6, 6), critical: pods(index, index), gang: pods(0, 0) }, nodes: 10 + index * 4, machines: { BARE_METAL: 6, RESERVED: 4, ON_DEMAND: 0, SPOT: index * 4 }, dollarsPerHour: index * 0.62, connected: index !== 1, rollupsHeld: index === 1 ? 2 : 0,
      unmet: index === 2 ? [{ tier: 'batch', priority: 100, reason: 'PRIORITY_STARVED', detail: '', text: 'matching machines exist but went to needs ahead of it', fingerprint: 'p=100', group: '' }] : [],
    })),
    coordinators: [0, 1, 2].map((index) => ({ id: `coordinator-${index}`, running: index !== 2, leader: index === 0, term: 2 })),
    shards: [0, 1].map((index) => ({ id: `shard-${index}`, running: true, epoch: 1, cycle: 812, computedAtUnixMs: Date.now(), stale: false, rebuilding: index === 1, mode: index === 0 ? 'DRY_RUN' : 'ACTIVE', sessions: 2, needs: 6, needsUnmet: 1 })),
    tiers: [{ tier: 'batch', priority: 100, penaltyDollars: 0 }, { tier: 'production', priority: 100_000, penaltyDollars: 0.5 }, { tier: 'critical', priority: 1_000_000, penaltyDollars: 16 }],
    scenarios: NAMES.map((name, index) => ({ name, title: name.slice(0, 1).toUpperCase() + name.slice(1).replaceAll('-', ' '), action: 'drop demand in A, raise it in B', mustBeSeen: 'machines drain to Idle, go to B; $/h unchanged', state: index === 0 ? 'passed' : index === 1 ? 'failed' : 'idle', passed: index === 0 ? 3 : 0, failed: index === 1 ? 1 : 0, lastMs: index < 2 ? 14_200 : null })),
    run: null, decisions: [decision(3), decision(2, { kind: 'Reclaim', reason: 'phase3.excess', graceSeconds: 600, ofSequence: 0, effectiveCost: 0, runnerUpCost: null, machine: 'metal-owned-003' }), decision(1, { outcome: 'success' })],
    real: ['the engine, every cycle of it', 'the protocol between all parts', 'the scheduler of each cluster', "the providers' contract"], simulated: ['the clouds, their prices and their latencies', 'the nodes and what runs on them'],
  };
}

export function run(state: 'running' | 'passed' | 'failed'): NonNullable<State['run']> {
  return {
    name: 'move', state, startedAtUnixMs: Date.now() - 9000, endedAtUnixMs: state === 'running' ? null : Date.now(),
    steps: [{ phase: 'precondition', text: 'A and B are served on committed machines', state: 'done', atUnixMs: Date.now(), detail: 'A 10, B 6' }, { phase: 'act', text: 'A drops to 2, B rises to 14', state: state === 'running' ? 'running' : 'done', atUnixMs: Date.now(), detail: '' }],
    claims: [{ text: '$/h unchanged', state: state === 'running' ? 'pending' : state, detail: state === 'failed' ? '$0.00 before, $0.38 during' : '$0.00 before, at most $0.00 during, $0.00 after' }, { text: 'machines drain to Idle and go to B', state: state === 'running' ? 'pending' : 'passed', detail: '' }],
    explain: null,
  };
}
