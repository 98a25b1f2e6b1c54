// Sums over the metrics of the FinOps screen. Unknown stays unknown.

import type { Finops, Known, Num } from '../api/types';
import { bucketRank } from '../format/penalty';
import { sumKnown } from '../format/text';

const TYPES = ['bare_metal', 'reserved', 'on_demand', 'spot', 'unspecified'];

/** Machines that exist, by type: what could be created is not part of the mix. */
export function mixOf(byTypeAndState: Record<string, Known>): [string, Num][] {
  return TYPES.filter((type) => type in byTypeAndState)
    .map((type): [string, Num] => {
      const here = Object.entries(byTypeAndState[type] ?? {}).filter(([state]) => state !== 'speculative');
      return [type, sumKnown([0, ...here.map(([, n]) => n)])];
    })
    .filter(([type, n]) => n !== 0 || type !== 'unspecified');
}

export function moneyByType(money: Record<string, Known>): [string, Num][] {
  return TYPES.filter((type) => type in money).map((type): [string, Num] => {
    return [type, sumKnown(Object.values(money[type] ?? {}))];
  });
}

export interface DemandBar {
  bucket: string;
  demand: Num;
  supply: Num;
}

/** Buckets that somebody uses, in their order. */
export function demandBars(data: Pick<Finops, 'buckets' | 'demandByBucket' | 'supplyByBucket'>): DemandBar[] {
  return (
    data.buckets
      .map((bucket, index) => ({
        bucket,
        demand: data.demandByBucket?.[index] ?? null,
        supply: data.supplyByBucket?.[index] ?? null,
      }))
      .filter((row) => row.demand !== 0 || row.supply !== 0)
      // Where one side is not known at all, the other says which buckets are in use.
      .filter((row) => data.demandByBucket !== null || (row.supply !== null && row.supply !== 0))
      .filter((row) => data.supplyByBucket !== null || (row.demand !== null && row.demand !== 0))
      .sort((a, b) => bucketRank(a.bucket) - bucketRank(b.bucket))
  );
}

/** Shade of a cell from 0 to 5, by order of magnitude: one large cell must not hide the others. */
export function shade(value: Num, most: number): number {
  if (value === null || value <= 0 || most <= 0) return 0;
  return 1 + Math.min(4, Math.floor((4 * Math.log1p(value)) / Math.log1p(most)));
}

export interface MoneyRow {
  name: string;
  machines: number;
  dollarsPerHour: Num;
}

/** Rows of one shard summed by a name of theirs, most money first. */
export function sumBy<R extends { machines: number; dollarsPerHour: Num }>(
  rows: readonly R[],
  name: (row: R) => string,
): MoneyRow[] {
  const sums = new Map<string, MoneyRow>();
  for (const row of rows) {
    const key = name(row);
    const sum = sums.get(key) ?? { name: key, machines: 0, dollarsPerHour: 0 };
    sum.machines += row.machines;
    // A sum with an unknown part is unknown.
    sum.dollarsPerHour = sumKnown([sum.dollarsPerHour, row.dollarsPerHour]);
    sums.set(key, sum);
  }
  return [...sums.values()].sort(
    (a, b) => (b.dollarsPerHour ?? -1) - (a.dollarsPerHour ?? -1) || (a.name < b.name ? -1 : 1),
  );
}
