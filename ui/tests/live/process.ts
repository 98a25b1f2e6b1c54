// Processes under test: started, heard, and ended whatever happens.

import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** Where a binary of this repository is: named by a variable, else what cargo built last. */
export function binary(name: string, variable: string): string {
  const named = process.env[variable];
  const target = resolve(ROOT, process.env.CARGO_TARGET_DIR ?? 'target');
  const places = named ? [named] : ['debug', 'release'].map((profile) => join(target, profile, name));
  const found = places.find((place) => existsSync(place));
  if (!found)
    throw new Error(`no ${name} at ${places.join(' or ')}; run \`cargo build --bin ${name}\`, or set ${variable}`);
  return found;
}

export class Process {
  private readonly child: ChildProcess;
  private text = '';
  private ended: string | null = null;
  private wake: () => void = () => {};
  private readonly kill = (): void => void this.child.kill('SIGKILL');

  constructor(
    readonly name: string,
    path: string,
    args: string[],
    env: Record<string, string> = {},
  ) {
    this.child = spawn(path, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    const hear = (part: Buffer): void => {
      this.text += part.toString();
      this.wake();
    };
    this.child.stdout?.on('data', hear);
    this.child.stderr?.on('data', hear);
    this.child.on('error', (error) => this.over(String(error)));
    this.child.on('exit', (code, signal) => this.over(`exit ${code ?? signal}`));
    process.on('exit', this.kill);
  }

  private over(how: string): void {
    this.ended ??= how;
    this.wake();
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  /** What it said that matches, now or within the time. */
  async said(pattern: RegExp, seconds: number): Promise<RegExpMatchArray> {
    const end = Date.now() + seconds * 1000;
    for (;;) {
      const found = this.text.match(pattern);
      if (found) return found;
      const left = end - Date.now();
      if (this.ended !== null || left <= 0)
        throw new Error(
          `${this.name} never said ${pattern} (${this.ended ?? 'still running'}):\n${this.text.slice(-3000)}`,
        );
      await this.news(left);
    }
  }

  private news(within: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, within);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** Asks it to end, and ends it. */
  async stop(): Promise<void> {
    this.signal('SIGINT');
    const end = Date.now() + 10_000;
    while (this.ended === null && Date.now() < end) await this.news(end - Date.now());
    if (this.ended === null) this.kill();
    process.off('exit', this.kill);
  }
}
