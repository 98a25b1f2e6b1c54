// The demo's decisions with their outcomes, in the words of the dashboard.

import { costWords, tagMeaning, verb } from '../format/decision';
import type { DemoDecision } from './types';

export interface FeedLine {
  key: string;
  atUnixMs: number;
  kind: string;
  machine: string;
  text: string;
  numbers: string;
  outcome: string;
  error: string;
}

/** Newest first; a decision and its outcome are one line. */
export function feed(decisions: readonly DemoDecision[]): FeedLine[] {
  const outcomes = new Map<string, DemoDecision>();
  for (const one of decisions) {
    const of = `${one.shard} ${one.ofSequence}`;
    // The newest outcome counts; decisions come newest first.
    if (one.ofSequence !== 0 && !outcomes.has(of)) outcomes.set(of, one);
  }
  const here = new Set(decisions.map((one) => `${one.shard} ${one.sequence}`));
  return decisions
    .filter((one) => one.ofSequence === 0 || !here.has(`${one.shard} ${one.ofSequence}`))
    .map((one) => {
      const key = `${one.shard} ${one.sequence}`;
      const closed = outcomes.get(key);
      const meaning = tagMeaning(one.reason);
      return {
        key,
        atUnixMs: one.atUnixMs,
        kind: one.kind,
        machine: one.machine,
        text:
          verb({ kind: one.kind, clusterId: one.cluster, outcome: one.outcome, graceSeconds: one.graceSeconds }) +
          (meaning ? `: ${meaning}` : ''),
        numbers: numbers(one),
        outcome: closed?.outcome ?? one.outcome,
        error: closed?.error || one.error,
      };
    });
}

/** −1 and `null` are no cost. */
function numbers(one: DemoDecision): string {
  const known = (cost: number | null): number | null => (cost === null || cost < 0 ? null : cost);
  const parts = [costWords({ effectiveCost: known(one.effectiveCost), runnerUpCost: known(one.runnerUpCost) })];
  if (one.kind === 'Preempt')
    parts.push(`priority ${one.priority.toLocaleString('en-US')} for ${one.preemptorPriority.toLocaleString('en-US')}`);
  parts.push(`cycle ${one.cycle.toLocaleString('en-US')}`);
  return parts.filter((part) => part !== '').join(' · ');
}
