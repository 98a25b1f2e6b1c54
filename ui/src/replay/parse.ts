// Lines of a decision log: those of a shard's audit log, those that this dashboard exports, and
// answers that it recorded.

import type { Decision } from '../api/types';

export interface RecordedAnswer {
  /** Milliseconds since the epoch, by the server's clock. */
  at: number;
  path: string;
  body: unknown;
}

export type Line =
  | { kind: 'decision'; decision: Decision & { shard?: string } }
  | { kind: 'answer'; answer: RecordedAnswer }
  | { kind: 'bad'; why: string };

/** Sequences exceed what a JavaScript number holds, so they are read as texts. */
const SEQUENCES = /"(seq|of)"\s*:\s*(\d+)/g;

export function parseLine(text: string): Line {
  let value: unknown;
  try {
    value = JSON.parse(text.replace(SEQUENCES, '"$1":"$2"'));
  } catch {
    return { kind: 'bad', why: 'not JSON' };
  }
  if (typeof value !== 'object' || value === null) return { kind: 'bad', why: 'not an object' };
  const line = value as Record<string, unknown>;
  if (typeof line.recorded === 'string') {
    const at = Number(line.at);
    if (!Number.isFinite(at)) return { kind: 'bad', why: 'a recorded answer without a time' };
    return { kind: 'answer', answer: { at, path: line.recorded, body: line.body } };
  }
  if (typeof line.kind !== 'string') return { kind: 'bad', why: 'neither a decision nor a recorded answer' };
  return typeof line.time === 'string' ? audit(line) : exported(line);
}

function audit(line: Record<string, unknown>): Line {
  const time = nanos(String(line.time));
  if (time === null) return { kind: 'bad', why: `“${String(line.time)}” is no time` };
  return {
    kind: 'decision',
    decision: {
      sequence: text(line.seq) || `${time}-${text(line.machine)}-${text(line.outcome)}`,
      cycle: number(line.cycle) ?? 0,
      timeUnixNanos: time,
      kind: text(line.kind),
      machineId: text(line.machine),
      clusterId: text(line.cluster),
      profileFingerprint: text(line.need),
      group: text(line.group),
      priority: number(line.priority) ?? 0,
      preemptorPriority: number(line.preemptor_priority) ?? 0,
      effectiveCost: number(line.cost),
      runnerUpCost: number(line.runner_up_cost),
      reason: text(line.reason),
      outcome: text(line.outcome),
      graceSeconds: number(line.grace_seconds) ?? 0,
      error: text(line.error),
      ofSequence: text(line.of) || null,
      gap: false,
    },
  };
}

function exported(line: Record<string, unknown>): Line {
  const time = number(line.timeUnixNanos);
  if (time === null) return { kind: 'bad', why: 'a decision without a time' };
  return {
    kind: 'decision',
    decision: {
      ...(text(line.shard) ? { shard: text(line.shard) } : {}),
      sequence: text(line.sequence),
      cycle: number(line.cycle) ?? 0,
      timeUnixNanos: time,
      kind: text(line.kind),
      machineId: text(line.machineId),
      clusterId: text(line.clusterId),
      profileFingerprint: text(line.profileFingerprint),
      group: text(line.group),
      priority: number(line.priority) ?? 0,
      preemptorPriority: number(line.preemptorPriority) ?? 0,
      effectiveCost: number(line.effectiveCost),
      runnerUpCost: number(line.runnerUpCost),
      reason: text(line.reason),
      outcome: text(line.outcome),
      graceSeconds: number(line.graceSeconds) ?? 0,
      error: text(line.error),
      ofSequence: text(line.ofSequence) || null,
      gap: line.gap === true,
    },
  };
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : '';
}

function number(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

/** Nanoseconds of an RFC 3339 instant, to the microsecond that a number holds. */
function nanos(time: string): number | null {
  const milliseconds = Date.parse(time);
  if (Number.isNaN(milliseconds)) return null;
  const fraction = /\.(\d+)/.exec(time)?.[1] ?? '';
  const below = fraction.length > 3 ? Number(`0.${fraction.slice(3)}`) : 0;
  return Math.round((milliseconds + below) * 1e6);
}

/** Columns of numbers over time; the first column is the time, in seconds or as an instant. */
export interface Series {
  name: string;
  times: number[];
  columns: { name: string; values: (number | null)[] }[];
}

export function parseCsv(name: string, content: string): Series | null {
  const [head, ...lines] = content.split(/\r?\n/).filter((line) => line.trim() !== '');
  if (head === undefined || lines.length === 0) return null;
  const titles = head.split(',').map((title) => title.trim().replaceAll('"', ''));
  const series: Series = { name, times: [], columns: titles.slice(1).map((title) => ({ name: title, values: [] })) };
  for (const line of lines) {
    const cells = line.split(',').map((cell) => cell.trim().replaceAll('"', ''));
    const first = cells[0] ?? '';
    const time = /^-?[\d.]+$/.test(first) ? Number(first) : Date.parse(first) / 1000;
    if (!Number.isFinite(time)) return null;
    series.times.push(time);
    series.columns.forEach((column, index) => {
      const cell = cells[index + 1] ?? '';
      const value = cell === '' ? NaN : Number(cell);
      column.values.push(Number.isFinite(value) ? value : null);
    });
  }
  // Columns without a single number say nothing over time.
  series.columns = series.columns.filter((column) => column.values.some((value) => value !== null));
  return series.columns.length === 0 ? null : series;
}
