// The shards of the fleet, and the one that a view is about.

import { untrack } from 'svelte';
import { ApiError } from './error';
import type { Live } from './live.svelte';
import { live } from './live.svelte';
import { world } from './source.svelte';
import type { Sessions, Topology } from './types';
import { natural } from '../parts/sort';
import { route } from '../route/router.svelte';
import { formatQuery, parseQuery } from '../route/url';

/** Shards that are asked at once. */
const ABREAST = 8;

export class ShardChoice {
  /** What a link names in place of a shard, and the shard that has it, if one says so. */
  private found = $state.raw<{ named: string; shard: string | null } | null>(null);

  constructor(
    readonly topology: Live<Topology>,
    private readonly linked: () => string | null,
  ) {}

  get ids(): string[] {
    return (this.topology.data?.shards ?? []).map((shard) => shard.shardId).sort(natural);
  }

  private get named(): string | null {
    return route.query.shard === undefined ? this.linked() : null;
  }

  /** That of which the shard is not known yet. */
  get sought(): string | null {
    return this.named === this.found?.named ? null : this.named;
  }

  /** The one in the URL, else that of the machine or cluster in the URL, else the first. */
  get chosen(): string | null {
    if (route.query.shard !== undefined) return route.query.shard;
    if (this.sought !== null) return null;
    const home = this.named === null ? null : this.found?.shard;
    return home ?? this.ids[0] ?? null;
  }

  async seek(named: string): Promise<void> {
    const { machine, cluster } = parseQuery(named);
    let home: string | null = null;
    if (machine !== undefined) home = await this.first(named, (shard) => holds(shard, machine));
    if (home === null && cluster !== undefined) home = await this.first(named, (shard) => serves(shard, cluster));
    if (this.sought === named) this.found = { named, shard: home };
  }

  /** The first of which it is true, as long as that is still sought. */
  private async first(named: string, has: (shard: string) => Promise<boolean>): Promise<string | null> {
    const ids = this.ids;
    for (let at = 0; at < ids.length && this.sought === named; at += ABREAST) {
      const few = ids.slice(at, at + ABREAST);
      const answers = await Promise.all(few.map(has));
      const home = few.find((_, index) => answers[index]);
      if (home !== undefined) return home;
    }
    return null;
  }
}

// A shard that does not answer may be the one; its own screen will say that it does not.

async function serves(shard: string, cluster: string): Promise<boolean> {
  try {
    const path = `sessions?shard=${encodeURIComponent(shard)}`;
    const { sessions } = (await world.source.get(path, AbortSignal.timeout(10_000))) as Sessions;
    return sessions.some((one) => one.clusterId === cluster);
  } catch {
    return false;
  }
}

async function holds(shard: string, machine: string): Promise<boolean> {
  try {
    const path = `machines/${encodeURIComponent(shard)}/${encodeURIComponent(machine)}`;
    await world.source.get(path, AbortSignal.timeout(10_000));
    return true;
  } catch (error) {
    // One that may not be seen is there.
    return error instanceof ApiError && error.status === 403;
  }
}

/** What the link that led here names; what is typed or chosen since is not followed. */
function link(): string | null {
  const { shard, machine, cluster } = route.query;
  if (shard !== undefined) return null;
  return formatQuery({ machine, cluster: cluster === '*' ? undefined : cluster }) || null;
}

/** To be called while a component is set up. */
export function shardChoice(): ShardChoice {
  const topology = live<Topology>(() => 'topology', {
    every: 30,
    topic: () => 'topology',
    onEvent: (event, into) => into.take(event as Topology),
  });
  const linked = $derived((void route.arrivals, untrack(link)));
  const choice = new ShardChoice(topology, () => linked);
  let begun: string | null = null;
  $effect(() => {
    const { sought } = choice;
    const answered = topology.data !== null || topology.error !== null;
    untrack(() => {
      if (sought === null) begun = null;
      if (sought === null || sought === begun || !answered) return;
      begun = sought;
      void choice.seek(sought);
    });
  });
  return choice;
}
