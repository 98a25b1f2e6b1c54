// Age and limit of answers from metrics, and of soft state, as panels take them.

import { nanosToMillis } from '../format/text';
import { LIMIT, metricsLimit } from './age';
import type { Answer, Num, Sampled } from './types';

export const sampled = {
  computed: (data: Sampled): number | null => nanosToMillis(data.sampledAtUnixNanos),
  limit: (data: Sampled): number | null => metricsLimit(data.scrapeIntervalSeconds),
};

interface OfCycle extends Answer {
  cycle: number;
  computedAtUnixNanos?: Num;
}

/** Of one cycle of a shard: a shard that is stuck in it grows old, however often it is asked. */
export const ofCycle = {
  cycle: (data: OfCycle): number => data.cycle,
  /** `undefined` where the server does not say it: then what is known is when it was read. */
  computed: ({ computedAtUnixNanos: at }: OfCycle): number | null | undefined =>
    at === undefined ? undefined : nanosToMillis(at),
  limit: LIMIT.soft,
};

/** Asked often enough that what is scraped does not turn old between two polls. */
export function withScrapes(usual: number): (data: Sampled | null) => number {
  return (data) => {
    const interval = data?.scrapeIntervalSeconds ?? null;
    return interval === null ? usual : Math.min(usual, Math.max(10, 2 * interval));
  };
}
