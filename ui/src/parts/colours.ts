// Colours of series by what they are, so that a state looks alike on every screen. Each series
// also has its label and a dash of its own.

const BY_NAME: Record<string, string> = {
  configured: '--c4',
  configuring: '--c1',
  creating: '--c6',
  idle: '--c2',
  draining: '--c3',
  deleting: '--c7',
  failed: '--c5',
  speculative: '--c8',
  Bootstrap: '--c4',
  Provision: '--c1',
  Preempt: '--c5',
  Reclaim: '--c2',
  Delete: '--c7',
  bare_metal: '--c6',
  reserved: '--c4',
  on_demand: '--c2',
  spot: '--c3',
  unspecified: '--c8',
  Pending: '--c2',
  Acknowledged: '--c4',
  Provisioning: '--c6',
  Launched: '--c2',
  Registered: '--c1',
  Ready: '--c4',
  Draining: '--c3',
  Drained: '--c8',
  Failed: '--c5',
};

const ORDER = ['--c1', '--c2', '--c3', '--c4', '--c5', '--c6', '--c7', '--c8'];
const DASHES = [[], [6, 3], [2, 3], [8, 3, 2, 3], [12, 4], [4, 2], [1, 3], [10, 3, 1, 3]];

/** A custom property; what is not known by name takes its place in the order. */
export function colourOf(name: string, index = 0): string {
  return BY_NAME[name] ?? ORDER[index % ORDER.length] ?? '--c8';
}

export function dashOf(index: number): number[] {
  return DASHES[index % DASHES.length] ?? [];
}

export const STATES = [
  'configured',
  'configuring',
  'idle',
  'creating',
  'draining',
  'deleting',
  'failed',
  'speculative',
];

export const TYPES = ['bare_metal', 'reserved', 'on_demand', 'spot', 'unspecified'];

/** Entries of a count by name, known names first in their order. */
export function inOrder<V>(counts: Record<string, V>, order: readonly string[]): [string, V][] {
  const rank = (name: string): number => {
    const place = order.indexOf(name);
    return place < 0 ? order.length : place;
  };
  return Object.entries(counts).sort(([a], [b]) => rank(a) - rank(b) || (a < b ? -1 : 1));
}
