// What was loaded: decisions in order, recorded answers, and what a run folder says of itself.

import type { Decision } from '../api/types';
import { natural } from '../parts/sort';
import { parseCsv, parseLine, type RecordedAnswer, type Series } from './parse';

export type Recorded = Decision & { shard: string };

export interface Moment {
  /** `null` for a moment that only recorded answers know. */
  cycle: number | null;
  /** Milliseconds since the epoch: everything up to here has happened. */
  at: number;
  decisions: number;
}

export interface Recording {
  name: string;
  shards: string[];
  decisions: Recorded[];
  /** By path, ascending by time. */
  answers: Map<string, RecordedAnswer[]>;
  moments: Moment[];
  summary: Record<string, unknown> | null;
  series: Series[];
  problems: string[];
}

export interface NamedText {
  /** Path within the folder. */
  name: string;
  text: () => Promise<string>;
}

const LINES_AT_ONCE = 2000;
const AT_ONCE = 1024 * 1024;

/** Reads files in slices, so that a large log does not stall the page. */
export async function load(files: NamedText[], progress: (lines: number) => void): Promise<Recording> {
  const recording: Recording = {
    name: files.length === 1 ? (files[0]?.name ?? '') : (files[0]?.name.split('/')[0] ?? ''),
    shards: [],
    decisions: [],
    answers: new Map(),
    moments: [],
    summary: null,
    series: [],
    problems: [],
  };
  let lines = 0;
  for (const file of files) {
    if (/\.(jsonl|ndjson|log)$/i.test(file.name)) {
      const all = (await file.text()).split('\n');
      const shard = stem(file.name);
      const bad = new Map<string, number>();
      let read = 0;
      for (const [index, line] of all.entries()) {
        if (line.trim() !== '') take(recording, line, shard, bad);
        lines += 1;
        read += line.length;
        if (read < AT_ONCE && index % LINES_AT_ONCE !== LINES_AT_ONCE - 1) continue;
        read = 0;
        progress(lines);
        await new Promise((resolve) => setTimeout(resolve));
      }
      for (const [why, count] of bad) recording.problems.push(`${file.name}: ${count} lines left out, ${why}`);
    } else if (/\.csv$/i.test(file.name)) {
      const series = parseCsv(file.name, await file.text());
      if (series) recording.series.push(series);
    } else if (/(^|\/)summary\.json$/i.test(file.name)) {
      try {
        recording.summary = JSON.parse(await file.text()) as Record<string, unknown>;
      } catch {
        recording.problems.push(`${file.name}: not JSON`);
      }
    }
  }
  finish(recording);
  return recording;
}

function take(recording: Recording, text: string, shard: string, bad: Map<string, number>): void {
  const line = parseLine(text);
  if (line.kind === 'bad') bad.set(line.why, (bad.get(line.why) ?? 0) + 1);
  else if (line.kind === 'decision')
    recording.decisions.push({ ...line.decision, shard: line.decision.shard ?? shard });
  else addAnswer(recording, line.answer);
}

function addAnswer(recording: Recording, answer: RecordedAnswer): void {
  const list = recording.answers.get(answer.path);
  if (list) list.push(answer);
  else recording.answers.set(answer.path, [answer]);
  // Recorded lists of decisions are decisions like any other.
  const body = answer.body as { shard?: string; decisions?: Decision[] } | null;
  if (answer.path.startsWith('decisions') && body?.decisions && body.shard) {
    for (const one of body.decisions) recording.decisions.push({ ...one, shard: body.shard });
  }
}

function finish(recording: Recording): void {
  const seen = new Set<string>();
  recording.decisions = recording.decisions.filter((one) => {
    const key = `${one.shard} ${one.sequence}`;
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
  recording.decisions.sort(
    (a, b) => (a.timeUnixNanos ?? 0) - (b.timeUnixNanos ?? 0) || natural(a.sequence, b.sequence),
  );
  for (const [path, list] of recording.answers) {
    list.sort((a, b) => a.at - b.at);
    const failed = list.filter((one) => one.error !== undefined).length;
    if (failed > 0) recording.problems.push(`${path} failed ${failed} of ${list.length} times while this was recorded`);
  }
  recording.moments = momentsOf(recording);
  const shards = new Set(recording.decisions.map((one) => one.shard));
  for (const path of recording.answers.keys()) {
    const shard = new URLSearchParams(path.split('?')[1] ?? '').get('shard');
    if (shard) shards.add(shard);
  }
  recording.shards = [...shards].sort(natural);
}

/** One per cycle with decisions, at its last record; and one per second with recorded answers. */
export function momentsOf(recording: Pick<Recording, 'decisions' | 'answers'>): Moment[] {
  const moments: Moment[] = [];
  for (const one of recording.decisions) {
    const at = (one.timeUnixNanos ?? 0) / 1e6;
    const last = moments.at(-1);
    // Outcomes carry the deciding cycle and come later: they are a moment of their own.
    if (last && last.cycle === one.cycle && at - last.at < 1000) {
      last.at = at;
      last.decisions += 1;
    } else moments.push({ cycle: one.cycle, at, decisions: 1 });
  }
  const seconds = new Set<number>();
  for (const list of recording.answers.values()) for (const one of list) seconds.add(Math.ceil(one.at / 1000) * 1000);
  for (const at of seconds) moments.push({ cycle: null, at, decisions: 0 });
  return moments.sort((a, b) => a.at - b.at);
}

/** `shard-3` of `run/shard-3.audit.jsonl`. */
export function stem(name: string): string {
  const base = name.slice(name.lastIndexOf('/') + 1);
  return (
    base
      .replace(/\.(jsonl|ndjson|log)$/i, '')
      .replace(/[.-](audit|decisions)$/i, '')
      .replace(/^(audit|decisions)-(?=.)/i, '') || base
  );
}
