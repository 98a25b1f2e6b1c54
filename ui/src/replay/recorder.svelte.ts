// Keeps what the dashboard is told, so that it can be looked at again. Answers stay in this page
// until they are saved: the server keeps nothing.

import { server } from '../api/source.svelte';
import type { Topology } from '../api/types';
import { formatQuery } from '../route/url';

/** An hour of a small fleet; then the oldest go. */
const MOST = 6000;
const EVERY_MS = 10_000;
const SHARDS = 8;

class Recorder {
  running = $state(false);
  kept = $state(0);
  trouble = $state<string | null>(null);
  private lines: string[] = [];
  private timer: ReturnType<typeof setInterval> | undefined;

  start(): void {
    this.lines = [];
    this.kept = 0;
    this.running = true;
    void this.round();
    this.timer = setInterval(() => void this.round(), EVERY_MS);
  }

  stop(): void {
    this.running = false;
    clearInterval(this.timer);
  }

  /** What any screen was answered. */
  note(path: string, body: unknown): void {
    if (!this.running) return;
    const said = (body as { queriedAt?: string } | null)?.queriedAt;
    const at = said === undefined ? Date.now() : Date.parse(said);
    this.lines.push(JSON.stringify({ recorded: path, at, body }));
    if (this.lines.length > MOST) this.lines.shift();
    this.kept = this.lines.length;
  }

  /** What every screen would ask, also of those that nobody looks at. */
  private async round(): Promise<void> {
    const topology = (await this.ask('topology')) as Topology | null;
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
      await this.ask(path);
    }
    for (const { shardId: shard } of (topology?.shards ?? []).slice(0, SHARDS)) {
      await this.ask('needs' + formatQuery({ shard, limit: 20_000 }));
      await this.ask('machines' + formatQuery({ shard, limit: 500 }));
      await this.ask('decisions' + formatQuery({ shard, limit: 1000 }));
      await this.ask('sessions' + formatQuery({ shard }));
      await this.ask(`shards/${encodeURIComponent(shard)}`);
      await this.ask(`shards/${encodeURIComponent(shard)}/trends?duration=1h&step=30s`);
    }
  }

  private async ask(path: string): Promise<unknown> {
    // A hidden tab asks nothing, whatever it was told.
    if (!this.running || document.visibilityState === 'hidden') return null;
    try {
      const body = await server.get(path, AbortSignal.timeout(30_000));
      this.note(path, body);
      this.trouble = null;
      return body;
    } catch (error) {
      // A source that is not wired is not in the recording; the rest is.
      this.trouble = (error as Error).message;
      return null;
    }
  }

  file(): Blob {
    return new Blob([this.lines.join('\n') + '\n'], { type: 'application/jsonl' });
  }
}

export const recorder = new Recorder();
