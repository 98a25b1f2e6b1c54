// The fleet as its shards' own cycle summaries tell it: without metrics, and as new as a cycle.

import type { Summary } from './types';

export interface FleetNow {
  shards: number;
  sessions: number;
  machines: number;
  machinesByState: Record<string, number>;
  dollarsPerHour: number;
  shortfalls: number;
  needs: number;
  needsUnmet: number;
  paused: string[];
  dryRun: string[];
  fenced: string[];
  /** The oldest frame among the newest of each shard, in nanoseconds; `null` before the first. */
  oldestUnixNanos: number | null;
}

export function fleetNow(frames: Iterable<Summary>): FleetNow {
  const fleet: FleetNow = {
    shards: 0,
    sessions: 0,
    machines: 0,
    machinesByState: {},
    dollarsPerHour: 0,
    shortfalls: 0,
    needs: 0,
    needsUnmet: 0,
    paused: [],
    dryRun: [],
    fenced: [],
    oldestUnixNanos: null,
  };
  for (const frame of frames) {
    fleet.shards += 1;
    fleet.sessions += frame.sessions;
    fleet.needs += frame.needs;
    fleet.needsUnmet += frame.needsUnmet;
    fleet.dollarsPerHour += sum(frame.dollarsPerHour);
    fleet.shortfalls += sum(frame.shortfalls);
    for (const { state, count } of frame.machines) {
      fleet.machines += count;
      fleet.machinesByState[state] = (fleet.machinesByState[state] ?? 0) + count;
    }
    if (frame.actuationPaused) fleet.paused.push(frame.shard);
    if (frame.dryRun) fleet.dryRun.push(frame.shard);
    if (frame.fenced) fleet.fenced.push(frame.shard);
    const computed = frame.computedAtUnixNanos;
    if (computed !== null && (fleet.oldestUnixNanos === null || computed < fleet.oldestUnixNanos)) {
      fleet.oldestUnixNanos = computed;
    }
  }
  return fleet;
}

function sum(parts: Record<string, number>): number {
  return Object.values(parts).reduce((total, part) => total + part, 0);
}
