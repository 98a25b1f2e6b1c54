// Without the shard's explanation, who may be ahead is guessed and labelled so.

import type { NeedView, Requirement } from '../api/types';

/** At most this many are worth reading. */
const MOST = 50;

/** Higher needs that hold machines of an overlapping shape, in the order given. Approximate. */
export function roughlyAhead(of: NeedView, all: readonly NeedView[]): NeedView[] {
  const found: NeedView[] = [];
  for (const other of all) {
    if (found.length === MOST) break;
    if (other === of || other.claimedMachineCount === 0 || !before(other, of)) continue;
    if (overlaps(other.need.requirements, of.need.requirements)) found.push(other);
  }
  return found;
}

function before(a: NeedView, b: NeedView): boolean {
  if (a.need.priority !== b.need.priority) return a.need.priority > b.need.priority;
  return a.profileFingerprint === b.profileFingerprint && (a.arrivalUnixNanos ?? 0) < (b.arrivalUnixNanos ?? 0);
}

/** Whether one machine could satisfy both: no key on which their values exclude each other. */
export function overlaps(a: readonly Requirement[], b: readonly Requirement[]): boolean {
  return a.every((left) => b.every((right) => left.key !== right.key || agree(left, right)));
}

function agree(left: Requirement, right: Requirement): boolean {
  const [a, b] = [left.operator, right.operator];
  if (a === 'DoesNotExist' || b === 'DoesNotExist') {
    const other = a === 'DoesNotExist' ? b : a;
    return other === 'DoesNotExist' || other === 'NotIn';
  }
  if (a === 'In' && b === 'In') return left.values.some((value) => right.values.includes(value));
  if (a === 'In' && b === 'NotIn') return left.values.some((value) => !right.values.includes(value));
  if (a === 'NotIn' && b === 'In') return right.values.some((value) => !left.values.includes(value));
  return true;
}
