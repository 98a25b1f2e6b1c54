// What a need asks for, as a vector, and how much of it is covered.

import type { Demand, NeedView, Vector } from '../api/types';
import { ceilDiv, parse, perMille } from '../format/quantity';

export interface Chunks {
  /** `null` where no resource has both an aggregate and a unit. */
  machines: number | null;
  /** The resource that decides. */
  binding: string | null;
}

/**
 * Estimate: the most, over resources, of aggregate over smallest unit, rounded up. These are
 * machines of exactly one unit, not pods.
 */
export function chunks(demand: Pick<Demand, 'aggregateResources' | 'minUnit'>): Chunks {
  let most: bigint | null = null;
  let binding: string | null = null;
  for (const [name, text] of Object.entries(demand.aggregateResources).sort()) {
    const aggregate = parse(text);
    const unit = parse(demand.minUnit[name] ?? '');
    if (aggregate === null || unit === null || unit <= 0n || aggregate < 0n) continue;
    const needed = ceilDiv(aggregate, unit);
    if (most === null || needed > most) {
      most = needed;
      binding = name;
    }
  }
  return { machines: most === null ? null : Number(most), binding };
}

export interface Coverage {
  name: string;
  wanted: string;
  /** What is missing, as a quantity; `null` where nothing is. */
  missing: string | null;
  perMille: number | null;
}

/** Per resource, in the order of names; the deficit is the engine's. */
export function coverage(view: Pick<NeedView, 'need' | 'residualDeficit' | 'satisfied'>): Coverage[] {
  const deficit: Vector = view.satisfied ? {} : (view.residualDeficit ?? {});
  return Object.entries(view.need.aggregateResources)
    .sort()
    .map(([name, wanted]) => {
      const missing = deficit[name] ?? null;
      return { name, wanted, missing, perMille: covered(view, wanted, missing) };
    });
}

function covered(
  view: Pick<NeedView, 'residualDeficit' | 'satisfied'>,
  wanted: string,
  missing: string | null,
): number | null {
  if (view.satisfied) return 1000;
  // Unmet without a deficit says nothing of how much is covered.
  if (view.residualDeficit === null) return null;
  const whole = parse(wanted);
  const short = missing === null ? 0n : parse(missing);
  if (whole === null || short === null) return null;
  const kept = whole - short;
  return perMille(kept < 0n ? 0n : kept, whole);
}

/** The least covered resource says how the need stands. */
export function worst(parts: readonly Coverage[]): Coverage | null {
  let least: Coverage | null = null;
  for (const part of parts) {
    if (part.perMille === null) continue;
    const by = part.perMille - (least?.perMille ?? 1001);
    // Of equal ones the rare resource says more than cpu and memory.
    if (by < 0 || (by === 0 && least !== null && part.name.includes('/') && !least.name.includes('/'))) least = part;
  }
  return least;
}

/** What a group is called: the selector of its pods, and their namespace. Its text is `topology key NUL selector NUL
 * namespace`; any other text is shown as it is. */
export function groupParts(group: string): { name: string; namespace: string | null } {
  const parts = group.split('\0');
  if (parts.length < 3) return { name: parts[0] ?? '', namespace: parts[1] ?? null };
  const [labels = '', ...expressions] = parts.slice(1, -1).join(' ').split(';');
  const pairs = labels.split(',').filter((pair) => pair !== '');
  const name = [pairs.join(', '), ...expressions].filter((part) => part !== '').join('; ');
  return { name: name || `same ${keyName(parts[0] ?? '')}`, namespace: parts.at(-1) || null };
}

/** `cpu`, `memory`, `gpu` of `nvidia.com/gpu`. */
export function resourceName(name: string): string {
  return name.slice(name.lastIndexOf('/') + 1);
}

/** `zone` of `topology.kubernetes.io/zone`: for chips; the title has the whole key. */
export function keyName(key: string): string {
  return key.slice(key.lastIndexOf('/') + 1);
}
