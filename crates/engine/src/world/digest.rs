//! A digest of who claims what, kept as claims come and go, and the same from the
//! machines themselves: if the two differ, what is remembered has drifted from
//! what is there (§11).

use super::{RunKind, World};
use crate::handle::{Handle, MachineIx, PreparedIx};

/// Machines are checked by slices of neighbours, one per cycle, so that a cycle in
/// which nothing happens costs the same at any size; all of them before a full
/// pass, which looks at every machine anyway.
const SLICE: usize = 1024;

/// Sums over the claims on the machines of each slice.
#[derive(Clone, Default)]
pub(crate) struct ClaimDigests {
    slices: Vec<u64>,
    /// The slice whose turn it is.
    turn: usize,
}

impl ClaimDigests {
    pub(super) fn add(&mut self, machine: MachineIx, need: PreparedIx) {
        let at = machine.index() / SLICE;
        if at >= self.slices.len() {
            self.slices.resize(at + 1, 0);
        }
        self.slices[at] = self.slices[at].wrapping_add(mix(machine, need));
    }

    pub(super) fn take(&mut self, machine: MachineIx, need: PreparedIx) {
        // Whoever claims it was added.
        if let Some(sum) = self.slices.get_mut(machine.index() / SLICE) {
            *sum = sum.wrapping_sub(mix(machine, need));
        }
    }
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
        let Some(kept) = self.claim_digests.slices.get(turn) else {
            self.claim_digests.turn = 0;
            return false;
        };
        self.claim_digests.turn = turn + 1;
        self.digest_of(turn) != *kept
    }

    /// The same of all slices.
    pub(crate) fn has_drifted_anywhere(&self) -> bool {
        let mut slices = self.claim_digests.slices.iter().enumerate();
        slices.any(|(at, kept)| self.digest_of(at) != *kept)
    }

    /// Digest of a slice from its machines. A claim that the machine's own state
    /// contradicts does not count.
    fn digest_of(&self, slice: usize) -> u64 {
        let end = ((slice + 1) * SLICE).min(self.machines.rows.len());
        let machines = (slice * SLICE..end).map(MachineIx::at);
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
        for cluster in self.names.clusters.rows_mut() {
            cluster.open.clear();
            cluster.forget_rest();
        }
        self.open_runs = 0;
        self.names.accounts.rows_mut().iter_mut().for_each(|account| account.claimed = 0);
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
            (need.tidy, need.kept, need.has_gaps, need.even) = (false, false, false, true);
        }
        self.gangs.rows_mut().iter_mut().for_each(|gangs| gangs.settled = false);
        self.unready.clear();
        self.claim_digests.slices.clear();
    }
}

#[cfg(test)]
impl World {
    /// The first slice is looked at next: small worlds have no other.
    pub(crate) fn start_checks_over(&mut self) {
        self.claim_digests.turn = 0;
    }

    /// What is kept of the claims is wrong, the claims are not.
    pub(crate) fn spoil_digests(&mut self) {
        self.claim_digests.slices.iter_mut().for_each(|sum| *sum = sum.wrapping_add(1));
    }
}

#[cfg(test)]
mod tests {
    use super::{Handle, MachineIx, PreparedIx, RunKind, World, mix};
    use crate::{testing, world::MachineRow};

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

    #[test]
    fn a_claim_that_its_machine_or_need_contradicts_is_drift() {
        type Contradict = fn(&mut World, MachineIx, PreparedIx);
        let contradictions: [(&str, Contradict); 4] = [
            ("the machine is gone", |world, one, _| world.machines.rows[one].removed = true),
            ("the machine is in no run", |world, one, _| world.machines.rows[one].run = None),
            ("the machine drains", |world, one, _| {
                let run = world.machines.rows[one].run.unwrap();
                world.runs[run].kind = RunKind::Draining;
            }),
            ("the need is gone", |world, _, need| world.needs[need].removed = true),
        ];
        for (what, contradict) in contradictions {
            let claim = |(one, row): (_, &MachineRow)| Some((one, row.claimant?));
            let claimed = |seed| {
                let engine = testing::settled(seed);
                let claim = engine.world.machines.rows.iter().find_map(claim)?;
                Some((engine, claim))
            };
            let (mut engine, (one, need)) = (0..100).find_map(claimed).unwrap();
            let world = &mut engine.world;
            world.start_checks_over();
            assert!(!world.has_drifted());
            contradict(world, one, need);
            world.start_checks_over();
            assert!(world.has_drifted(), "{what}");
            assert!(world.has_drifted_anywhere(), "{what}");
        }
    }
}
