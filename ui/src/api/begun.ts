// Whether a shard has computed anything yet, for answers that do not say of which cycle they are:
// nothing before the first cycle is not nothing.

import { formatQuery } from '../route/url';
import { world } from './source.svelte';
import type { Answer, Machines } from './types';

/** An answer with nothing in it, and the cycle of the shard; without it nobody knows. */
export type Begun<T> = T & { cycle?: number };

/** How to ask: the cycle is asked for only where there is nothing, for only then it matters. */
export function withCycle<T extends Answer & { shard: string }>(
  nothing: (data: T) => boolean,
): (path: string, signal: AbortSignal) => Promise<Begun<T>> {
  return async (path, signal) => {
    const data = (await world.source.get(path, signal)) as Begun<T>;
    if (data.cycle !== undefined || !nothing(data)) return data;
    try {
      const path = 'machines' + formatQuery({ shard: data.shard, limit: 1 });
      const { cycle } = (await world.source.get(path, signal)) as Machines;
      return { ...data, cycle };
    } catch (error) {
      // A recording may have nothing on it; of a shard that does not answer nothing is known.
      if (world.source.live) throw error;
      return data;
    }
  };
}

export const rebuilding = (data: { cycle?: number }): boolean => data.cycle === 0;
