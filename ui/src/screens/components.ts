// What draws each screen.

import type { Component } from 'svelte';
import type { Query } from '../route/url';
import AvailableCapacity from './AvailableCapacity.svelte';
import Cluster from './Cluster.svelte';
import Clusters from './Clusters.svelte';
import Decisions from './Decisions.svelte';
import Finops from './Finops.svelte';
import Machines from './Machines.svelte';
import Needs from './Needs.svelte';
import Overview from './Overview.svelte';
import Replay from './Replay.svelte';
import Shard from './Shard.svelte';
import ShardReports from './ShardReports.svelte';
import Shards from './Shards.svelte';
import Topology from './Topology.svelte';
import WhatIf from './WhatIf.svelte';

/** Screens of one path. */
export const PLAIN: Record<string, Component> = {
  '/': Overview,
  '/shards': Shards,
  '/shard-reports': ShardReports,
  '/topology': Topology,
  '/needs': Needs,
  '/clusters': Clusters,
  '/available-capacity': AvailableCapacity,
  '/whatif': WhatIf,
  '/machines': Machines,
  '/finops': Finops,
  '/decisions': Decisions,
  '/replay': Replay,
};

/** Screens that take parameters of their path. */
export const DETAIL: Record<string, Component<{ params: Query }>> = {
  '/shards/:pod': Shard,
  '/clusters/:id': Cluster,
};
