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
  /** The cluster of a link that names no shard, and the shard that it belongs to, if one says so. */
  private found = $state.raw<{ cluster: string; shard: string | null } | null>(null);

  constructor(
    readonly topology: Live<Topology>,
    private readonly linked: () => string | null,
  ) {}

  get ids(): string[] {
    return (this.topology.data?.shards ?? []).map((shard) => shard.shardId).sort(natural);
  }

  /** Whose shard is not known yet. */
  get sought(): string | null {
    const cluster = route.query.shard === undefined ? this.linked() : null;
    return cluster === this.found?.cluster ? null : cluster;
  }

  /** The one in the URL, else that of the cluster in the URL, else the first. */
  get chosen(): string | null {
    return route.query.shard ?? (this.sought === null ? (this.found?.shard ?? this.ids[0] ?? null) : null);
  }

  async seek(cluster: string): Promise<void> {
    const ids = this.ids;
    let home: string | null = null;
    for (let at = 0; at < ids.length && home === null && this.sought === cluster; at += ABREAST) {
      const found = await Promise.all(ids.slice(at, at + ABREAST).map((id) => serves(id, cluster)));
      home = found.find((id) => id !== null) ?? null;
    }
    if (this.sought === cluster) this.found = { cluster, shard: home };
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

/**
 * To be called while a component is set up. A cluster in the URL without a shard is that of the
 * link that led here; with `follow` also of links that are taken later, where nobody types it.
 */
export function shardChoice({ follow = false } = {}): ShardChoice {
  const topology = live<Topology>(() => 'topology', {
    every: 30,
    topic: () => 'topology',
    onEvent: (event, into) => into.take(event as Topology),
  });
  const named = (): string | null => {
    const cluster = route.query.cluster;
    return cluster === undefined || cluster === '*' ? null : cluster;
  };
  const first = route.query.shard === undefined ? named() : null;
  const choice = new ShardChoice(topology, follow ? named : () => first);
  let begun: string | null = null;
  $effect(() => {
    const cluster = choice.sought;
    const answered = topology.data !== null || topology.error !== null;
    untrack(() => {
      if (cluster === null || cluster === begun || !answered) return;
      begun = cluster;
      void choice.seek(cluster);
    });
  });
  return choice;
}
