// What a recording keeps: the answers of its rounds, the newest that fit into a number of bytes.

import type { ApiError } from '../api/error';

export interface Missing {
  path: string;
  why: string;
}

interface Round {
  lines: Blob[];
  bytes: number;
  /** What could not be had in it. */
  missing: Map<string, string>;
}

export class Rounds {
  private rounds: Round[] = [];
  bytes = 0;
  /** Rounds that had to make room. */
  forgotten = 0;

  constructor(private readonly budget: number) {}

  begin(): void {
    this.rounds.push({ lines: [], bytes: 0, missing: new Map() });
  }

  /** An answer as it came, on one line; `at` is milliseconds since the epoch by the server's clock. */
  keep(path: string, at: number, body: string | Blob): void {
    const line = new Blob([`{"recorded":${JSON.stringify(path)},"at":${at},"body":`, body, '}\n']);
    if (line.size > this.budget) this.missed(path, 'the answer is larger than all that is kept');
    else this.add(line);
  }

  /** An answer that was none: whoever replays this moment is told the same. */
  fail(path: string, at: number, error: ApiError): void {
    const { status, message } = error;
    this.missed(path, message);
    // What is not wired is never there, at no moment.
    if (error.trouble === 'unwired') return;
    this.add(new Blob([`${JSON.stringify({ recorded: path, at, error: { status, message } })}\n`]));
  }

  get answers(): number {
    return this.rounds.reduce((sum, round) => sum + round.lines.length, 0);
  }

  get count(): number {
    return this.rounds.length;
  }

  /** What could not be had in the newest round, and in how many rounds something could not. */
  get missing(): { now: Missing[]; rounds: number } {
    const now = [...(this.rounds.at(-1)?.missing ?? [])].map(([path, why]) => ({ path, why }));
    return { now, rounds: this.rounds.filter((round) => round.missing.size > 0).length };
  }

  file(): Blob {
    return new Blob(
      this.rounds.flatMap((round) => round.lines),
      { type: 'application/jsonl' },
    );
  }

  private add(line: Blob): void {
    if (this.rounds.length === 0) this.begin();
    const round = this.rounds.at(-1)!;
    round.lines.push(line);
    round.bytes += line.size;
    this.bytes += line.size;
    while (this.bytes > this.budget) this.makeRoom();
  }

  /** The oldest round goes first, and of the last one its oldest answers. */
  private makeRoom(): void {
    const [oldest] = this.rounds;
    if (!oldest) return;
    if (this.rounds.length > 1) {
      this.rounds.shift();
      this.bytes -= oldest.bytes;
      this.forgotten += 1;
      return;
    }
    const line = oldest.lines.shift();
    oldest.bytes -= line?.size ?? 0;
    this.bytes -= line?.size ?? 0;
    oldest.missing.set('this round', 'it alone is larger than all that is kept');
  }

  private missed(path: string, why: string): void {
    if (this.rounds.length === 0) this.begin();
    this.rounds.at(-1)!.missing.set(path, why);
  }
}

/** How much of each end of an answer is looked at. */
const END = 1024;

/** Milliseconds of the `queriedAt` of an answer, without reading megabytes: it is at one of its ends. */
export async function queriedAt(body: Blob): Promise<number | null> {
  // Quotes within texts are escaped, so a text that looks like it is none.
  const ends = await Promise.all([body.slice(0, END).text(), body.slice(-END).text()]);
  const said = /"queriedAt":\s*"([^"]+)"/.exec(ends.join('\n'))?.[1];
  const at = said === undefined ? NaN : Date.parse(said);
  return Number.isNaN(at) ? null : at;
}
