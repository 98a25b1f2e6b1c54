//! What a need keeps once it has acquired: the set that the next cycle's own walk
//! will keep, so that nothing is taken back that was only just decided (§6.1).

use bigfleet_model::Totals;

use super::{Phase1, Spread};
use crate::{
    handle::{ClassIx, MachineIx, PreparedIx},
    world::{Constraint, Looked, RunKind, lowers},
};

impl Phase1<'_> {
    /// Walks all claims of a need that acquired as the next cycle will, and gives
    /// back bound ones that this walk does not keep and that the bound ones it keeps
    /// do not miss. All others stay until their replacements serve.
    pub(super) fn shed(&mut self, need: PreparedIx) {
        let world = &*self.world;
        let row = &world.needs[need];
        if row.picks.is_empty()
            || row.credits.is_empty()
            || !row.is_covered()
            || self.needs_all(need)
        {
            return;
        }
        let class = |machine: MachineIx| &world.classes[world.machines.rows[machine].class];
        let contribution =
            |machine: MachineIx| world.pools[row.pool].contribution(&class(machine).capacity);
        let mut claims: Vec<MachineIx> = row.claims().collect();
        let kind =
            |machine: MachineIx| world.machines.rows[machine].run.map(|run| world.runs[run].kind);
        let late =
            |machine: MachineIx| !matches!(kind(machine), Some(RunKind::Bound | RunKind::Idle));
        claims.sort_unstable_by(|&a, &b| {
            late(a)
                .cmp(&late(b))
                .then_with(|| class(a).price.total_cmp(&class(b).price))
                .then_with(|| world.machines.rows[a].label.cmp(&world.machines.rows[b].label))
        });
        let (mut residual, mut missing) = (row.aggregate.clone(), row.aggregate.clone());
        let mut passed = Vec::new();
        claims.retain(|&machine| {
            let given = contribution(machine);
            let keeps = lowers(&residual, given.as_ref());
            if keeps {
                residual.sub_sat_assign(given.as_ref());
            }
            match (keeps, kind(machine) == Some(RunKind::Bound)) {
                (true, true) => missing.sub_sat_assign(given.as_ref()),
                (false, true) => passed.push(machine),
                _ => {}
            }
            keeps
        });
        passed.retain(|&machine| !lowers(&missing, contribution(machine).as_ref()));
        if row.constraint == Constraint::Spread && !passed.is_empty() {
            let kept = Spread::among(world, need, claims.iter().copied());
            let domain = |machine: MachineIx| world.domain(row, world.machines.rows[machine].class);
            passed.retain(|&machine| !kept.lacks(domain(machine)));
        }
        if !passed.is_empty() {
            self.give_back(need, &passed);
        }
    }

    /// Whether all its machines contribute to all that it wants, and none can be
    /// spared. Then a walk reaches every bound machine before the need is covered, and
    /// so keeps it: the rule, and quick to see, for mostly it looks at runs.
    fn needs_all(&self, need: PreparedIx) -> bool {
        let world = &*self.world;
        let row = &world.needs[need];
        let is_needed = |class: ClassIx| {
            let capacity = &world.classes[class].capacity;
            let contribution = world.pools[row.pool].contribution(capacity);
            capacity.spans(&row.aggregate)
                && !row.covered.sub_sat(contribution.as_ref()).covers(&row.aggregate)
        };
        let mut needed = true;
        if row.looked != Looked::AtItsOwn {
            // Some may be others', so each has its own say.
            let mut last = None;
            for machine in &row.credits {
                let class = Some(world.machines.rows[*machine].class);
                needed = needed && (class == last || class.is_some_and(is_needed));
                last = class;
            }
        } else {
            self.own_accounts(need, |account| {
                let account = &world.names.accounts[account];
                needed = needed
                    && match account.uniform {
                        Some(class) => is_needed(class),
                        None => account.runs.iter().all(|run| is_needed(world.runs[*run].class)),
                    };
            });
        }
        needed && row.picks.iter().all(|pick| is_needed(world.runs[pick.run].class))
    }

    fn give_back(&mut self, need: PreparedIx, given_back: &[MachineIx]) {
        let world = &mut *self.world;
        given_back.iter().for_each(|machine| world.unclaim(*machine));
        world.needs[need].credits.retain(|machine| !given_back.contains(machine));
        // What is left are no longer the first of its machines.
        world.needs[need].even = false;
        let row = &world.needs[need];
        let pool = &world.pools[row.pool];
        let mut covered = Totals::zero();
        for machine in row.claims() {
            let class = &world.classes[world.machines.rows[machine].class];
            covered.add_assign(pool.contribution(&class.capacity).as_ref());
        }
        world.needs[need].covered = covered;
    }

    /// At the end of its tier a covered need with a hard spread claims what of its
    /// own bound machines nobody claimed and keeps it in balance: what was acquired
    /// for the sake of balance alone would else be reclaimed once all the others are
    /// there.
    pub(super) fn balance(&mut self, need: PreparedIx) {
        let world = &*self.world;
        let row = &world.needs[need];
        if row.constraint != Constraint::Spread || !row.is_covered() || row.credits.is_empty() {
            return;
        }
        let mut spread = Spread::among(world, need, row.claims());
        let mut together = spread.clone();
        let mut left = Vec::new();
        for &run in &world.names.accounts[row.account].runs {
            let of_run = &world.runs[run];
            if of_run.kind != RunKind::Bound || !world.usable(row, of_run.class) {
                continue;
            }
            let domain = world.domain(row, of_run.class);
            let lacks = spread.lacks(domain);
            let unclaimed =
                |machine: &&MachineIx| world.machines.rows[**machine].claimant.is_none();
            for &machine in of_run.members.iter().filter(unclaimed) {
                together.add(domain);
                if lacks {
                    let level = world.keep_level(run);
                    left.push((level, world.machines.rows[machine].label, machine, domain));
                }
            }
        }
        if left.is_empty() {
            return;
        }
        // Whether it takes them depends on what others left of its own.
        self.world.needs[need].looked = Looked::Borrowed;
        if together.skew() > together.max_skew() {
            return;
        }
        left.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
        for (_, _, machine, domain) in left {
            if spread.lacks(domain) {
                spread.add(domain);
                let class = self.world.machines.rows[machine].class;
                let pool = &self.world.pools[self.world.needs[need].pool];
                let given = pool.contribution(&self.world.classes[class].capacity).into_owned();
                self.world.claim(machine, need);
                let row = &mut self.world.needs[need];
                row.credits.push(machine);
                row.covered.add_assign(&given);
            }
        }
    }
}
