// Needs with an equal profile compete for the same machines: they stand together, and where
// machines ran out among them a line is drawn.

import type { NeedView } from '../api/types';

export type TableRow =
  | { kind: 'cohort'; cohort: Cohort }
  | { kind: 'need'; need: NeedView; cohort: Cohort | null }
  | { kind: 'cut'; cohort: Cohort; left: number };

export interface Cohort {
  fingerprint: string;
  members: NeedView[];
  unmet: number;
  machines: number;
  /** Somebody in it is unmet. */
  contested: boolean;
  /** Index of the last member that got machines; −1 where none did. */
  lastServed: number;
}

/** Cohorts in the order of their first members, members in the order given. */
export function cohorts(needs: readonly NeedView[]): Cohort[] {
  const byFingerprint = new Map<string, Cohort>();
  for (const need of needs) {
    let cohort = byFingerprint.get(need.profileFingerprint);
    if (!cohort) {
      cohort = {
        fingerprint: need.profileFingerprint,
        members: [],
        unmet: 0,
        machines: 0,
        contested: false,
        lastServed: -1,
      };
      byFingerprint.set(need.profileFingerprint, cohort);
    }
    if (gotMachines(need)) cohort.lastServed = cohort.members.length;
    cohort.members.push(need);
    cohort.machines += need.claimedMachineCount;
    if (!need.satisfied) {
      cohort.unmet += 1;
      cohort.contested = true;
    }
  }
  return [...byFingerprint.values()];
}

/** Satisfied needs without machines of their own share somebody's: they were served. */
function gotMachines(need: NeedView): boolean {
  return need.claimedMachineCount > 0 || need.satisfied;
}

/**
 * Rows of the table. Cohorts are those of all needs of the view, so that a filter on status
 * changes what is listed and never where a line falls; a lone need has no header.
 */
export function tableRows(all: readonly Cohort[], keep: (need: NeedView) => boolean): TableRow[] {
  const rows: TableRow[] = [];
  for (const cohort of all) {
    const alone = cohort.members.length === 1;
    const kept: [NeedView, number][] = [];
    cohort.members.forEach((need, index) => {
      if (keep(need)) kept.push([need, index]);
    });
    if (kept.length === 0) continue;
    if (!alone) rows.push({ kind: 'cohort', cohort });
    let cut = !cohort.contested || alone;
    for (const [need, index] of kept) {
      if (!cut && index > cohort.lastServed) {
        rows.push({ kind: 'cut', cohort, left: cohort.members.length - cohort.lastServed - 1 });
        cut = true;
      }
      rows.push({ kind: 'need', need, cohort: alone ? null : cohort });
    }
    if (!cut) rows.push({ kind: 'cut', cohort, left: cohort.members.length - cohort.lastServed - 1 });
  }
  return rows;
}

/** Identity of a need within a shard. */
export function needKey(need: { clusterId: string; profileFingerprint: string; need: { group: string } }): string {
  return `${need.clusterId}\n${need.profileFingerprint}\n${need.need.group}`;
}
