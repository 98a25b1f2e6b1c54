// Age and limit of answers from metrics, and of soft state, as panels take them.

import { nanosToMillis } from '../format/text';
import { metricsLimit } from './age';
import type { Sampled } from './types';

export const sampled = {
  computed: (data: Sampled): number | null => nanosToMillis(data.sampledAtUnixNanos),
  limit: (data: Sampled): number | null => metricsLimit(data.scrapeIntervalSeconds),
};
