// Links from the guide into the dashboard, which is another server.

import { formatQuery } from '../route/url';

/** A view of the dashboard; its address may or may not end with a slash. */
export function inDashboard(base: string, screen: string, query: Record<string, string> = {}): string {
  return `${base.replace(/\/?$/, '/')}${screen}${formatQuery(query)}`;
}

/** The drawer of one need. */
export function whyLink(
  base: string,
  need: { shard: string; cluster: string; fingerprint: string; group: string },
): string {
  const { shard, cluster, fingerprint, group } = need;
  return inDashboard(base, 'needs', { shard, cluster, need: fingerprint, group, of: cluster });
}
