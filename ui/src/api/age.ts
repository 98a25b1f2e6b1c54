// How old data is. Browser clocks are wrong often enough that they are never compared with the
// fleet's: the server says when it asked, and from then on a steady clock runs.

export interface Received {
  /** When the server asked its source, by the server's clock. */
  queriedAt: string | null;
  /** When the answer was here, by the page's steady clock, in milliseconds. */
  receivedAt: number;
}

/** Age in seconds of something computed at `computedMs`; `null` where that is not known. */
export function ageSeconds(computedMs: number | null, received: Received, steadyNow: number): number | null {
  if (computedMs === null || !Number.isFinite(computedMs)) return null;
  const queried = received.queriedAt === null ? NaN : Date.parse(received.queriedAt);
  if (Number.isNaN(queried)) return null;
  const waited = Math.max(0, steadyNow - received.receivedAt);
  return Math.max(0, (queried - computedMs + waited) / 1000);
}

/** Limits of experience chapter §1. */
export const LIMIT = { needs: 20, soft: 30 } as const;

/** Metrics are old after three scrapes. */
export function metricsLimit(scrapeIntervalSeconds: number | null): number | null {
  return scrapeIntervalSeconds === null ? null : 3 * scrapeIntervalSeconds;
}
