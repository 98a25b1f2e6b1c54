// Ages of what an answer tells of.

import { ageSeconds } from './age';
import type { Live } from './live.svelte';
import { now } from './now.svelte';
import { world } from './source.svelte';
import type { Answer } from './types';

/** Seconds since an instant in milliseconds. A moment of a recording stands still, and so do ages in it. */
export function ageIn(live: Live<Answer>, milliseconds: number | null): number | null {
  const { data, receivedAt } = live;
  if (data === null) return null;
  const until = world.source.live ? now.steady : receivedAt;
  return ageSeconds(milliseconds, { queriedAt: data.queriedAt, receivedAt }, until);
}
