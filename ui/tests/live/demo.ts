// `bigfleet demo`, and what a person at the guide can do.

import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { State } from '../../src/guide/types';
import { binary, Process } from './process';

export interface Where {
  guide: string;
  dashboard: string;
  /** Certificates of a reader, for a dashboard beside the demo's own. */
  tls: string;
}

export class Demo {
  private constructor(
    private readonly process: Process,
    private readonly folder: string,
    readonly where: Where,
  ) {}

  static async start(): Promise<Demo> {
    const path = binary('bigfleet', 'BIGFLEET_BIN');
    const folder = mkdtempSync(join(tmpdir(), 'bigfleet-live-'));
    const process = new Process('bigfleet demo', path, ['demo', '--listen', '127.0.0.1:0'], {
      TMPDIR: folder,
    });
    try {
      const guide = await process.said(/^guide +(http\S+)$/m, 60);
      const dashboard = await process.said(/^dashboard +(http\S+)$/m, 60);
      await process.said(/^ready in /m, 60);
      const inside = readdirSync(folder).find((name) => name.startsWith('bigfleet-demo-')) ?? '';
      const base = (url: string | undefined): string => (url ?? '').replace(/\/$/, '');
      return new Demo(process, folder, {
        guide: base(guide[1]),
        dashboard: base(dashboard[1]),
        tls: join(folder, inside, 'tls'),
      });
    } catch (error) {
      await process.stop();
      rmSync(folder, { recursive: true, force: true });
      throw error;
    }
  }

  /** What is left behind, which must be nothing. */
  async stop(): Promise<string[]> {
    await this.process.stop();
    const left = readdirSync(this.folder);
    rmSync(this.folder, { recursive: true, force: true });
    return left;
  }
}

/** Whoever sits at the guide. */
export class Hand {
  constructor(private readonly guide: string) {}

  async state(): Promise<State> {
    const response = await fetch(`${this.guide}/api/state`);
    return (await response.json()) as State;
  }

  async post(path: string, body: object): Promise<void> {
    const response = await fetch(`${this.guide}/api/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  }

  async until(what: string, holds: (state: State) => boolean, seconds = 60): Promise<State> {
    const end = Date.now() + seconds * 1000;
    for (;;) {
      const state = await this.state();
      if (holds(state)) return state;
      if (Date.now() > end) throw new Error(`never: ${what}; the run is ${JSON.stringify(state.run)}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  /** More demand than machines: needs of every kind, with their reasons. */
  async pressed(): Promise<State> {
    await this.until('nothing runs', (state) => state.demo.ready && state.run?.state !== 'running');
    // B comes first, so that it is A that waits.
    await this.post('demand', { workspace: 'b', tier: 'batch', level: 40 });
    await this.until('B has it all', (state) =>
      state.workspaces.some((one) => one.id === 'b' && one.pods.batch?.running === 40),
    );
    for (const workspace of ['a', 'c']) await this.post('demand', { workspace, tier: 'batch', level: 40 });
    await this.post('demand', { workspace: 'c', tier: 'critical', level: 3 });
    return this.until('what is short says why', (state) =>
      ['shard-0', 'shard-1'].every((shard) =>
        state.workspaces.some((one) => one.shard === shard && one.unmet.length > 0),
      ),
    );
  }
}
