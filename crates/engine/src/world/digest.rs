//! A digest of who claims what, kept as claims come and go, and the same from the
//! machines themselves: if the two differ, what is remembered has drifted from
//! what is there (§11).

use super::{RunKind, World};
use crate::handle::{Handle, MachineIx, PreparedIx};

/// Machines are checked by slices, one per cycle: looking at all of them at once
/// would cost a tenth of a cycle's budget. So drift is found within as many
/// cycles, well before the next full pass is due.
const SLICES: usize = 32;
/// Neighbours lie in one slice, for they share memory pages.
const BLOCK: usize = 64;

/// Sums over the claims on the machines of each slice.
#[derive(Default)]
pub(crate) struct ClaimDigests {
    slices: [u64; SLICES],
    /// The slice whose turn it is.
    turn: usize,
}

impl ClaimDigests {
    pub(super) fn add(&mut self, machine: MachineIx, need: PreparedIx) {
        let sum = &mut self.slices[slice(machine)];
        *sum = sum.wrapping_add(mix(machine, need));
    }

    pub(super) fn take(&mut self, machine: MachineIx, need: PreparedIx) {
        let sum = &mut self.slices[slice(machine)];
        *sum = sum.wrapping_sub(mix(machine, need));
    }
}

fn slice(machine: MachineIx) -> usize {
    machine.index() / BLOCK % SLICES
}

/// Not linear: two needs that swap machines must not go unseen.
fn mix(machine: MachineIx, need: PreparedIx) -> u64 {
    let pair = (machine.index() as u64) << 32 | (need.index() as u64 + 1);
    let mixed = pair.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 32)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

impl World {
    /// Whether the claims on the next slice of machines are other than those that
    /// were made. To be asked at the end of a cycle, when all changes are in.
    pub(crate) fn has_drifted(&mut self) -> bool {
        let turn = self.claim_digests.turn;
        self.claim_digests.turn = (turn + 1) % SLICES;
        self.digest_of(turn) != self.claim_digests.slices[turn]
    }

    /// Digest of a slice from its machines. A claim that the machine's own state
    /// contradicts does not count.
    fn digest_of(&self, slice: usize) -> u64 {
        let len = self.machines.rows.len();
        let blocks = (slice * BLOCK..len).step_by(SLICES * BLOCK);
        let machines = blocks.flat_map(|start| start..(start + BLOCK).min(len)).map(MachineIx::at);
        let mix_of = |machine: MachineIx| {
            let need = self.machines.rows[machine].claimant?;
            self.may_stand(machine, need).then(|| mix(machine, need))
        };
        machines.filter_map(mix_of).fold(0, u64::wrapping_add)
    }

    /// Whether a machine is such that the need may claim it.
    fn may_stand(&self, machine: MachineIx, need: PreparedIx) -> bool {
        let row = &self.machines.rows[machine];
        let by = &self.needs[need];
        let Some(run) = row.run.map(|run| &self.runs[run]).filter(|_| !row.removed) else {
            return false;
        };
        let kind = match run.kind {
            RunKind::Bound | RunKind::Bought => run.cluster == Some(by.cluster),
            RunKind::Idle | RunKind::Creating | RunKind::Speculative => true,
            RunKind::Draining | RunKind::ProviderFailing | RunKind::Quota => false,
        };
        kind && !by.removed && self.pools[by.pool].has(row.class)
    }

    /// Forgets every claim: after drift none can be trusted, nor given back one by
    /// one.
    pub(crate) fn forget_claims(&mut self) {
        self.machines.rows.rows_mut().iter_mut().for_each(|row| row.claimant = None);
        self.names.clusters.rows_mut().iter_mut().for_each(|cluster| cluster.open.clear());
        for run in self.runs.rows_mut() {
            (run.claimed, run.next, run.cursor, run.planned, run.view) = (0, 0, 0, 0, 0);
            run.open_at = None;
        }
        for run in self.runs.handles() {
            self.open_or_close(run);
        }
        for need in self.needs.rows_mut() {
            need.credits.clear();
            need.picks.clear();
            need.covered = bigfleet_model::Totals::zero();
            (need.unready, need.listed_unready, need.settled) = (0, false, false);
        }
        self.gangs.rows_mut().iter_mut().for_each(|gangs| gangs.settled = false);
        self.unready.clear();
        self.claim_digests.slices = [0; SLICES];
    }
}

#[cfg(test)]
impl World {
    /// The first slice is looked at next: small worlds have no other.
    pub(crate) fn start_checks_over(&mut self) {
        self.claim_digests.turn = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::{Handle, MachineIx, PreparedIx, mix};

    #[test]
    fn needs_that_swap_machines_do_not_go_unseen() {
        let sum = |pairs: [(usize, usize); 2]| {
            let mixed = |(machine, need)| mix(MachineIx::at(machine), PreparedIx::at(need));
            pairs.map(mixed).into_iter().fold(0, u64::wrapping_add)
        };
        for (machine, need) in (0..50).flat_map(|machine| (0..50).map(move |need| (machine, need)))
        {
            let kept = sum([(machine, need), (machine + 1, need + 7)]);
            assert_ne!(kept, sum([(machine, need + 7), (machine + 1, need)]));
        }
    }
}
