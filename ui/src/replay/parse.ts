// Lines of a decision log: those of a shard's audit log, those that this dashboard exports, and
// answers that it recorded.

import type { Decision } from '../api/types';

export interface RecordedAnswer {
  /** Milliseconds since the epoch, by the server's clock. */
  at: number;
  path: string;
  body: unknown;
  /** In place of a body that is megabytes: its text, to be read when it is asked for. */
  text?: string;
  /** In place of a body: what was said at that moment. */
  error?: { status: number; message: string };
}

export type Line =
  | { kind: 'decision'; decision: Decision & { shard?: string } }
  | { kind: 'answer'; answer: RecordedAnswer }
  | { kind: 'bad'; why: string };

/** Sequences exceed what a JavaScript number holds, so they are read as texts. */
const SEQUENCES = /"(seq|of)"\s*:\s*(\d+)/g;

/** From here on a body stays a text: its reading would be felt. */
const BIG = 1024 * 1024;
/** How this dashboard begins the line of an answer. */
const ANSWER = /^\{"recorded":("(?:[^"\\]|\\.)*"),"at":(\d+(?:\.\d+)?),"body":/;

export function parseLine(text: string, big = BIG): Line {
  if (text.length >= big) {
    const line = unread(text);
    if (line) return line;
  }
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
    return { kind: 'answer', answer: { at, path: line.recorded, body: line.body, ...failure(line.error) } };
  }
  if (typeof line.kind !== 'string') return { kind: 'bad', why: 'neither a decision nor a recorded answer' };
  return typeof line.time === 'string' ? audit(line) : exported(line);
}

/** Decisions are read at once, for they make the moments. */
function unread(text: string): Line | null {
  const head = ANSWER.exec(text.slice(0, 4096));
  if (!head?.[1] || !text.endsWith('}')) return null;
  const path = JSON.parse(head[1]) as string;
  if (path.startsWith('decisions')) return null;
  const body = text.slice(head[0].length, -1);
  return { kind: 'answer', answer: { at: Number(head[2]), path, body: undefined, text: body } };
}

/** What an answer says. */
export function bodyOf({ body, text }: RecordedAnswer): unknown {
  return text === undefined ? body : (JSON.parse(text) as unknown);
}

function failure(value: unknown): Pick<RecordedAnswer, 'error'> {
  if (typeof value !== 'object' || value === null) return {};
  const { status, message } = value as Record<string, unknown>;
  return { error: { status: number(status) ?? 0, message: text(message) } };
}

function audit(line: Record<string, unknown>): Line {
  const time = nanos(String(line.time));
  if (time === null) return { kind: 'bad', why: `“${String(line.time)}” is no time` };
  const named = (name: string): unknown => line[AUDIT[name] ?? name];
  const sequence = text(line.seq) || `${time}-${text(line.machine)}-${text(line.outcome)}`;
  return { kind: 'decision', decision: { ...read(named, time), sequence } };
}

function exported(line: Record<string, unknown>): Line {
  const time = number(line.timeUnixNanos);
  if (time === null) return { kind: 'bad', why: 'a decision without a time' };
  const shard = text(line.shard);
  return { kind: 'decision', decision: { ...(shard ? { shard } : {}), ...read((name) => line[name], time) } };
}

/** What the audit log calls otherwise than the API. */
const AUDIT: Record<string, string> = {
  sequence: 'seq',
  machineId: 'machine',
  clusterId: 'cluster',
  profileFingerprint: 'need',
  preemptorPriority: 'preemptor_priority',
  effectiveCost: 'cost',
  runnerUpCost: 'runner_up_cost',
  graceSeconds: 'grace_seconds',
  ofSequence: 'of',
};

/** A decision whose fields are found by the names of the API. */
function read(named: (name: string) => unknown, timeUnixNanos: number): Decision {
  return {
    sequence: text(named('sequence')),
    cycle: number(named('cycle')) ?? 0,
    timeUnixNanos,
    kind: text(named('kind')),
    machineId: text(named('machineId')),
    clusterId: text(named('clusterId')),
    profileFingerprint: text(named('profileFingerprint')),
    group: text(named('group')),
    priority: number(named('priority')) ?? 0,
    preemptorPriority: number(named('preemptorPriority')) ?? 0,
    effectiveCost: number(named('effectiveCost')),
    runnerUpCost: number(named('runnerUpCost')),
    reason: text(named('reason')),
    outcome: text(named('outcome')),
    graceSeconds: number(named('graceSeconds')) ?? 0,
    error: text(named('error')),
    ofSequence: text(named('ofSequence')) || null,
    gap: named('gap') === true,
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
