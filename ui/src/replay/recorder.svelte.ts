// Keeps what the dashboard is told, so that it can be looked at again. Answers stay in this page
// until they are saved: the server keeps nothing. They are neither read nor parsed here, for those
// of a large fleet are megabytes.

import { ApiError } from '../api/error';
import { bytes } from '../api/source.svelte';
import type { Topology } from '../api/types';
import { formatQuery } from '../route/url';
import { queriedAt, Rounds, type Missing } from './rounds';

/** Half an hour of a fleet with a thousand needs; then the oldest rounds go. */
const BUDGET = 128 * 1024 * 1024;
const EVERY_MS = 10_000;
const PATIENCE_MS = 30_000;
export const SHARDS = 8;

export interface Kept {
  answers: number;
  bytes: number;
  rounds: number;
  /** Rounds that had to make room. */
  forgotten: number;
  missing: { now: Missing[]; rounds: number };
  /** Shards of the fleet, of which the first few are recorded. */
  shards: number;
}

class Recorder {
  running = $state(false);
  kept = $state.raw<Kept | null>(null);
  private rounds = new Rounds(BUDGET);
  private run: AbortController | null = null;
  /** What rounds ask is not kept a second time for a screen. */
  private asked = new Set<string>();
  /** Needs beyond those of the rounds that somebody looks at. */
  private looked = new Set<string>();
  private shards: string[] = [];
  /** How far the server's clock is ahead of this one, in milliseconds. */
  private ahead = 0;

  start(): void {
    // A second run would ask everything twice, and mix its rounds with those of the first.
    if (this.run !== null) return;
    this.run = new AbortController();
    this.running = true;
    this.rounds = new Rounds(BUDGET);
    this.asked.clear();
    this.looked.clear();
    this.shards = [];
    void this.record(this.run.signal);
  }

  stop(): void {
    this.run?.abort();
    this.run = null;
    this.running = false;
  }

  /** What any screen was answered. */
  note(path: string, body: unknown): void {
    if (!this.running || this.asked.has(path)) return;
    // Megabytes that are read are not written again: the round asks for them as they come.
    if (path.startsWith('needs')) return void this.looked.add(path);
    const said = (body as { queriedAt?: string } | null)?.queriedAt;
    const at = said === undefined ? this.now() : Date.parse(said);
    this.rounds.keep(path, at, JSON.stringify(body));
    this.tell();
  }

  file(): Blob {
    return this.rounds.file();
  }

  private async record(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const began = performance.now();
      // A hidden tab asks nothing, whatever it was told.
      if (document.visibilityState !== 'hidden') await this.round(signal);
      await pause(EVERY_MS - (performance.now() - began), signal);
    }
  }

  /** What every screen would ask, also of those that nobody looks at. */
  private async round(signal: AbortSignal): Promise<void> {
    this.rounds.begin();
    const topology = await this.ask('topology', signal);
    // A coordinator that does not answer takes no shard away.
    if (topology !== null) this.shards = await shardsIn(topology);
    for (const path of [
      'config',
      'fleet/overview',
      'fleet/actions?duration=1h&step=30s',
      'shards',
      'shard-reports',
      'clusters' + formatQuery({ limit: 200 }),
      'available-capacity' + formatQuery({ limit: 200 }),
      'finops/snapshot',
    ]) {
      await this.ask(path, signal);
    }
    for (const shard of this.shards.slice(0, SHARDS)) {
      await this.ask('needs' + formatQuery({ shard, limit: 20_000 }), signal);
      await this.ask('machines' + formatQuery({ shard, limit: 500 }), signal);
      await this.ask('decisions' + formatQuery({ shard, limit: 1000 }), signal);
      await this.ask('sessions' + formatQuery({ shard }), signal);
      await this.ask(`shards/${encodeURIComponent(shard)}`, signal);
      await this.ask(`shards/${encodeURIComponent(shard)}/trends?duration=1h&step=30s`, signal);
    }
    const looked = [...this.looked].filter((path) => !this.asked.has(path));
    this.looked.clear();
    for (const path of looked) {
      await this.ask(path, signal);
      // In the next round only if somebody still looks.
      this.asked.delete(path);
    }
  }

  private async ask(path: string, signal: AbortSignal): Promise<Blob | null> {
    if (signal.aborted || document.visibilityState === 'hidden') return null;
    try {
      const body = await bytes(path, AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MS)]));
      const at = await queriedAt(body);
      if (signal.aborted) return null;
      if (at !== null) this.ahead = at - Date.now();
      this.asked.add(path);
      this.rounds.keep(path, at ?? this.now(), body);
      this.tell();
      return body;
    } catch (error) {
      if (signal.aborted) return null;
      this.asked.delete(path);
      const late = (error as Error).name === 'TimeoutError';
      const why = late ? `no answer in ${PATIENCE_MS / 1000} s` : (error as Error).message;
      this.rounds.fail(path, this.now(), error instanceof ApiError ? error : new ApiError(0, why));
      this.tell();
      return null;
    }
  }

  private now(): number {
    return Math.round(Date.now() + this.ahead);
  }

  private tell(): void {
    const { answers, bytes, count, forgotten, missing } = this.rounds;
    this.kept = { answers, bytes, rounds: count, forgotten, missing, shards: this.shards.length };
  }
}

async function shardsIn(topology: Blob): Promise<string[]> {
  try {
    return (JSON.parse(await topology.text()) as Topology).shards.map((one) => one.shardId);
  } catch {
    return [];
  }
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const timer = setTimeout(done, Math.max(0, milliseconds));
    signal.addEventListener('abort', () => (clearTimeout(timer), done()), { once: true });
  });
}

export const recorder = new Recorder();
