// The shards of the fleet, and the one that a view is about.

import { untrack } from 'svelte';
import type { Live } from './live.svelte';
import { live } from './live.svelte';
import { world } from './source.svelte';
import type { Sessions, Topology } from './types';
import { natural } from '../parts/sort';
import { route } from '../route/router.svelte';

/** Shards that are asked at once. */
const ABREAST = 8;

export class ShardChoice {
  /** Of a link that names a cluster and no shard: the shard that it belongs to, once it is found. */
  home = $state<string | null>(null);
  seeking = $state(false);

  constructor(readonly topology: Live<Topology>) {}

  get ids(): string[] {
    return (this.topology.data?.shards ?? []).map((shard) => shard.shardId).sort(natural);
  }

  /** The one in the URL, else that of the cluster in the URL, else the first. */
  get chosen(): string | null {
    return route.query.shard ?? (this.seeking ? null : (this.home ?? this.ids[0] ?? null));
  }

  async seek(cluster: string): Promise<void> {
    const ids = this.ids;
    for (let at = 0; at < ids.length && this.home === null; at += ABREAST) {
      const found = await Promise.all(ids.slice(at, at + ABREAST).map((id) => serves(id, cluster)));
      this.home = found.find((id) => id !== null) ?? null;
    }
    this.seeking = false;
  }
}

/** The shard, if it knows the cluster. */
async function serves(shard: string, cluster: string): Promise<string | null> {
  try {
    const path = `sessions?shard=${encodeURIComponent(shard)}`;
    const { sessions } = (await world.source.get(path, AbortSignal.timeout(10_000))) as Sessions;
    return sessions.some((one) => one.clusterId === cluster) ? shard : null;
  } catch {
    // One that does not answer may be the one; its own screen will say that it does not.
    return null;
  }
}

/** To be called while a component is set up. */
export function shardChoice(): ShardChoice {
  const topology = live<Topology>(() => 'topology', {
    every: 30,
    topic: () => 'topology',
    onEvent: (event, into) => into.take(event as Topology),
  });
  const choice = new ShardChoice(topology);
  const cluster = route.query.cluster;
  if (cluster !== undefined && cluster !== '*' && route.query.shard === undefined) {
    choice.seeking = true;
    let begun = false;
    $effect(() => {
      const [known, failed] = [topology.data !== null, topology.error !== null];
      untrack(() => {
        if (begun || !(known || failed)) return;
        begun = true;
        if (known) void choice.seek(cluster);
        else choice.seeking = false;
      });
    });
  }
  return choice;
}
