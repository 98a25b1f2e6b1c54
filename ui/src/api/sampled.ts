// Age and limit of answers from metrics, and of soft state, as panels take them.

import { nanosToMillis } from '../format/text';
import { metricsLimit } from './age';
import type { Sampled } from './types';

export const sampled = {
  computed: (data: Sampled): number | null => nanosToMillis(data.sampledAtUnixNanos),
  limit: (data: Sampled): number | null => metricsLimit(data.scrapeIntervalSeconds),
};

/** Asked often enough that what is scraped does not turn old between two polls. */
export function withScrapes(usual: number): (data: Sampled | null) => number {
  return (data) => {
    const interval = data?.scrapeIntervalSeconds ?? null;
    return interval === null ? usual : Math.min(usual, Math.max(10, 2 * interval));
  };
}
