// The shards of the fleet, and the one that a view is about.

import type { Live } from './live.svelte';
import { live } from './live.svelte';
import type { Topology } from './types';
import { natural } from '../parts/sort';
import { route } from '../route/router.svelte';

export class ShardChoice {
  constructor(readonly topology: Live<Topology>) {}

  get ids(): string[] {
    return (this.topology.data?.shards ?? []).map((shard) => shard.shardId).sort(natural);
  }

  /** The one in the URL, else the first. */
  get chosen(): string | null {
    return route.query.shard ?? this.ids[0] ?? null;
  }
}

/** To be called while a component is set up. */
export function shardChoice(): ShardChoice {
  return new ShardChoice(
    live<Topology>(() => 'topology', {
      every: 30,
      topic: () => 'topology',
      onEvent: (event, into) => into.take(event as Topology),
    }),
  );
}
