import { describe, expect, it } from 'vitest';
import { feed } from './feed';
import { inDashboard, whyLink } from './links';
import { STORY } from './story';
import type { DemoDecision } from './types';

function decision(changes: Partial<DemoDecision>): DemoDecision {
  return {
    shard: 'shard-0',
    sequence: 1,
    cycle: 812,
    atUnixMs: 1,
    kind: 'Provision',
    machine: 'm',
    cluster: 'cluster-a',
    priority: 100,
    preemptorPriority: 0,
    effectiveCost: 0.1,
    runnerUpCost: 0.38,
    graceSeconds: 0,
    reason: 'phase1.speculative',
    outcome: 'decided',
    error: '',
    ofSequence: 0,
    text: '',
    ...changes,
  };
}

describe('the decision feed', () => {
  it('says it in plain words with the numbers of the engine', () => {
    expect(feed([decision({})])[0]).toMatchObject({
      text: 'create for cluster-a: nothing idle matched, so capacity is created',
      numbers: '$0.10/h, next best $0.38/h · cycle 812',
      outcome: 'decided',
    });
  });
  it('joins a decision and its outcome, of the same shard only', () => {
    const lines = feed([
      decision({ sequence: 3, ofSequence: 1, outcome: 'success' }),
      decision({ sequence: 1 }),
      decision({ shard: 'shard-1', sequence: 1 }),
    ]);
    expect(lines.map((line) => [line.key, line.outcome])).toEqual([
      ['shard-0 1', 'success'],
      ['shard-1 1', 'decided'],
    ]);
  });
  it('takes −1 for no cost', () => {
    expect(feed([decision({ effectiveCost: -1, runnerUpCost: -1 })])[0]?.numbers).toBe('cycle 812');
  });
  it('tells whom a preemption is for', () => {
    expect(
      feed([decision({ kind: 'Preempt', preemptorPriority: 1_000_000, effectiveCost: 0, runnerUpCost: null })])[0]
        ?.numbers,
    ).toContain('priority 100 for 1,000,000');
  });
});

it('every scenario of the specification has its story', () => {
  expect(Object.keys(STORY)).toEqual([
    'move',
    'burst',
    'saturate',
    'preemption',
    'spot-interruption',
    'zone-outage',
    'gang',
    'stock-out',
    'provider-brown-out',
    'leader-loss',
    'coordinator-loss',
    'shard-crash',
    'everything-down',
    'accident',
    'kill-switch-and-dry-run',
  ]);
});

it('links into the dashboard, whether or not its address ends with a slash', () => {
  for (const base of ['http://h:1', 'http://h:1/']) expect(inDashboard(base, 'decisions')).toBe('http://h:1/decisions');
  expect(whyLink('http://h:1', { shard: 's', cluster: 'c', fingerprint: 'p=1|x', group: '' })).toBe(
    'http://h:1/needs?cluster=c&need=p%3D1%7Cx&of=c&shard=s',
  );
});
