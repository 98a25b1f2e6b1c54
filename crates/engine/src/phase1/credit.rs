//! Credit of bound supply (§6.1): what is bound counts, own machines first.

use std::cmp::Ordering;

use bigfleet_model::Totals;

use super::{
    Phase1,
    prepared::{Claim, Constraint, Prepared, lowers},
    spread::Spread,
};
use crate::world::RunKind;

/// Which machines of its cluster a need may be credited with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Its own only.
    Own,
    /// Its own, and what no other need of the tier owns.
    Free,
    /// All that is left.
    All,
}

impl Reach {
    /// Before every owner has chosen: a quiet need counts only on its own.
    pub(crate) fn at_first(quiet: bool) -> Self {
        if quiet { Self::Own } else { Self::Free }
    }
}

impl Phase1<'_, '_> {
    /// Walks own machines, then free ones, each bound before bought, then in keep
    /// order, until the need is covered.
    pub(super) fn credit(&mut self, need: &mut Prepared, reach: Reach) {
        if need.is_homeless() || need.residual().is_zero() {
            return;
        }
        let (own, free) = self.creditable(need, reach);
        self.walk(need, own, None);
        let before = need.credits.len();
        let mut spread = (need.constraint == Constraint::Spread).then(|| {
            let (own, all) = self.creditable(need, Reach::All);
            Spread::over(self.world, need, &[own, all].concat())
        });
        self.walk(need, free, spread.as_mut());
        if need.credits.len() > before {
            self.give_back_surplus(need);
        }
    }

    /// Usable runs with something unclaimed: own ones and free ones.
    pub(super) fn creditable(&self, need: &Prepared, reach: Reach) -> (Vec<usize>, Vec<usize>) {
        let (mut own, mut free) = (Vec::new(), Vec::new());
        for &number in &self.world.bound[need.cluster] {
            let run = &self.world.runs[number];
            if run.free() == 0 || !need.usable(self.world, run.class) {
                continue;
            }
            let key = self.world.machines[run.sample].key;
            if key.is_some_and(|key| need.own.contains(&key)) {
                own.push(number);
                continue;
            }
            // A purchase counts only for the need in its stamp.
            if run.kind != RunKind::Bound {
                continue;
            }
            let owned = key.is_some_and(|key| self.owners.contains(&(need.cluster, key)));
            match reach {
                Reach::Own => {}
                Reach::Free if owned => {}
                Reach::Free | Reach::All => free.push(number),
            }
        }
        (own, free)
    }

    /// One pass over the machines of these runs: what lowers nothing, or lies in
    /// a domain that its spread does not admit, is passed over.
    fn walk(&mut self, need: &mut Prepared, runs: Vec<usize>, mut spread: Option<&mut Spread>) {
        let mut residual = need.residual();
        // Runs with the number of their machines that were passed over.
        let mut ahead: Vec<(usize, usize)> = runs.into_iter().map(|number| (number, 0)).collect();
        while !residual.is_zero() {
            // What lowers nothing now never will: a residual only shrinks.
            ahead.retain(|&(number, skip)| {
                let run = &self.world.runs[number];
                let contribution = need.contribution(self.world.capacity(run.class));
                run.free() > skip && lowers(&residual, &contribution)
            });
            let Some(first) = ahead.iter_mut().min_by(|a, b| self.walk_order(**a, **b)) else {
                return;
            };
            let class = self.world.runs[first.0].class;
            if spread.as_ref().is_some_and(|spread| !spread.admits(class)) {
                first.1 += 1;
                continue;
            }
            let claim = self.claim(first.0, first.1);
            let contribution = need.contribution(self.world.capacity(class));
            need.covered.add_assign(contribution.as_ref());
            residual.sub_sat_assign(contribution.as_ref());
            need.credits.push(claim);
            if let Some(spread) = spread.as_deref_mut() {
                spread.add(class);
            }
        }
    }

    /// Bound before bought, then keep order of the machines at the heads.
    fn walk_order(&self, a: (usize, usize), b: (usize, usize)) -> Ordering {
        let key = |(number, skip): (usize, usize)| {
            let run = &self.world.runs[number];
            let sample = &self.world.machines[run.sample];
            let price = self.world.classes[run.class].price;
            let reclamation = sample.stamp.map_or(0.0, |stamp| stamp.reclamation);
            (run.kind, price, reclamation, run.nth_free(&self.world.members, skip))
        };
        let (a, b) = (key(a), key(b));
        a.0.cmp(&b.0)
            .then_with(|| a.1.total_cmp(&b.1))
            .then_with(|| b.2.total_cmp(&a.2))
            .then_with(|| a.3.cmp(&b.3))
    }

    /// Claims the unclaimed machine of a run with `skip` unclaimed ones before it.
    pub(super) fn claim(&mut self, number: usize, skip: usize) -> Claim {
        let run = &mut self.world.runs[number];
        let place = run.take(skip);
        Claim { run: number, place, machine: run.machine(&self.world.members, place) }
    }

    /// Walks all claims once more by (bought last, price, id) and gives back what
    /// comes after the point of coverage: that is the set which next cycle's own
    /// walk would keep.
    fn give_back_surplus(&mut self, need: &mut Prepared) {
        need.credits.sort_by(|a, b| {
            let key = |claim: &Claim| {
                let run = &self.world.runs[claim.run];
                (run.kind, self.world.classes[run.class].price, claim.machine)
            };
            let (a, b) = (key(a), key(b));
            a.0.cmp(&b.0).then_with(|| a.1.total_cmp(&b.1)).then_with(|| a.2.cmp(&b.2))
        });
        let mut covered = Totals::zero();
        let mut kept = 0;
        while kept < need.credits.len() && !covered.covers(&need.aggregate) {
            let class = self.world.runs[need.credits[kept].run].class;
            covered.add_assign(need.contribution(self.world.capacity(class)).as_ref());
            kept += 1;
        }
        for claim in need.credits.drain(kept..).rev() {
            self.world.runs[claim.run].give_back(claim.place);
        }
        need.covered = covered;
    }

    /// Gives back every credit.
    pub(super) fn uncredit(&mut self, need: &mut Prepared) {
        for claim in need.credits.drain(..).rev() {
            self.world.runs[claim.run].give_back(claim.place);
        }
        need.covered = Totals::zero();
    }
}
