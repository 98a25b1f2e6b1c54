// The bar above the table, and what is looked at first.

import type { NeedView } from '../api/types';
import { shown, type Reason } from './reasons';

export interface ReasonCount {
  reason: Reason;
  count: number;
}

export interface NeedsSummary {
  total: number;
  satisfied: number;
  unmet: ReasonCount[];
}

/** Satisfied needs and unmet ones by the reason shown, most first. */
export function summarise(needs: readonly NeedView[]): NeedsSummary {
  const byName = new Map<string, ReasonCount>();
  let satisfied = 0;
  for (const need of needs) {
    if (need.satisfied) {
      satisfied += 1;
      continue;
    }
    const reason = shown(need.unmetReason ?? need.reason, need.unmetDetail);
    const entry = byName.get(reason.name);
    if (entry) entry.count += 1;
    else byName.set(reason.name, { reason, count: 1 });
  }
  const unmet = [...byName.values()].sort((a, b) => b.count - a.count || a.reason.name.localeCompare(b.reason.name));
  return { total: needs.length, satisfied, unmet };
}

export interface ClusterCount {
  cluster: string;
  needs: number;
  unmet: number;
}

/** Clusters by name. */
export function byCluster(needs: readonly NeedView[]): ClusterCount[] {
  const counts = new Map<string, ClusterCount>();
  for (const need of needs) {
    let entry = counts.get(need.clusterId);
    if (!entry) counts.set(need.clusterId, (entry = { cluster: need.clusterId, needs: 0, unmet: 0 }));
    entry.needs += 1;
    if (!need.satisfied) entry.unmet += 1;
  }
  return [...counts.values()].sort((a, b) => (a.cluster < b.cluster ? -1 : 1));
}

/** The cluster with the most unmet needs, the first by name among equals; `null` where none has any. */
export function mostUnmet(clusters: readonly ClusterCount[]): string | null {
  let most: ClusterCount | null = null;
  for (const entry of clusters) {
    if (entry.unmet > 0 && (most === null || entry.unmet > most.unmet)) most = entry;
  }
  return most?.cluster ?? null;
}
