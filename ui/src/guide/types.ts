// Bodies of the demo's API. Unknown keys are ignored: it only grows.

import type { DomainCoverage } from '../api/types';

export interface Tier {
  tier: string;
  label: string;
  capacityType: string;
  /** Paid for anyway. */
  committed: boolean;
  priceFrom: number;
  priceTo: number;
  interruptionProbability: number;
  dollarsPerHour: number;
  total: number;
  states: Record<string, number>;
}

export interface Pods {
  wanted: number;
  running: number;
  pending: number;
}

export interface Unmet {
  tier: string;
  priority: number;
  reason: string;
  detail: string;
  text: string;
  fingerprint: string;
  group: string;
}

export interface Workspace {
  id: string;
  cluster: string;
  shard: string;
  label: string;
  levels: Record<string, number>;
  pods: Record<string, Pods>;
  nodes: number;
  machines: Record<string, number>;
  dollarsPerHour: number;
  connected: boolean;
  rollupsHeld: number;
  unmet: Unmet[];
}

export interface Scenario {
  name: string;
  title: string;
  action: string;
  mustBeSeen: string;
  state: 'idle' | 'running' | 'passed' | 'failed';
  passed: number;
  failed: number;
  lastMs: number | null;
}

export interface Run {
  name: string;
  state: 'running' | 'passed' | 'failed';
  startedAtUnixMs: number;
  endedAtUnixMs: number | null;
  steps: { phase: string; text: string; state: 'running' | 'done' | 'failed'; atUnixMs: number; detail: string }[];
  claims: { text: string; state: 'pending' | 'passed' | 'failed'; detail: string }[];
  explain: {
    shard: string;
    cluster: string;
    fingerprint: string;
    group: string;
    sameDomain: string;
    domains: DomainCoverage[];
  } | null;
}

export interface DemoDecision {
  shard: string;
  sequence: number;
  cycle: number;
  atUnixMs: number;
  kind: string;
  machine: string;
  cluster: string;
  priority: number;
  preemptorPriority: number;
  effectiveCost: number | null;
  runnerUpCost: number | null;
  graceSeconds: number;
  reason: string;
  outcome: string;
  error: string;
  ofSequence: number;
  text: string;
}

export interface Shard {
  id: string;
  running: boolean;
  epoch: number;
  cycle: number;
  computedAtUnixMs: number | null;
  stale: boolean;
  rebuilding: boolean;
  mode: string;
  sessions: number;
  needs: number;
  needsUnmet: number;
}

/** What the stream tells again and again. */
export interface Moving {
  sequence: number;
  atUnixMs: number;
  demo: {
    ready: boolean;
    hosted: boolean;
    plaintext: boolean;
    startedInMs: number | null;
    upForMs: number;
    residentBytes: number | null;
    dashboardUrl: string | null;
    unitText: string;
    problem: string | null;
    session: { endsAtUnixMs: number; idleEndsAtUnixMs: number } | null;
  };
  fleet: { dollarsPerHour: number | null; tiers: Tier[] };
  workspaces: Workspace[];
  coordinators: { id: string; running: boolean; leader: boolean; term: number }[];
  shards: Shard[];
  scenarios: Scenario[];
  run: Run | null;
}

export interface State extends Moving {
  tiers: { tier: string; priority: number; penaltyDollars: number }[];
  decisions: DemoDecision[];
  real: string[];
  simulated: string[];
}
