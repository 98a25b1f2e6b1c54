//! Domain choice for `Same` (§6.3).

use std::{
    cmp::{Ordering, Reverse},
    collections::{BTreeMap, BTreeSet},
};

use bigfleet_model::{MachineState, Totals};

use crate::{
    credit::Free,
    cycle::Cycle,
    need::Domain,
    share::{cov, load},
};

/// What one value of the `Same` keys offers.
#[derive(Default)]
struct Bucket {
    total: Totals,
    count: usize,
    cred: Totals,
    own: Totals,
    /// Creditable and Idle together.
    paid: Totals,
}

impl Cycle<'_> {
    /// Chooses the domain, jointly over creditable and acquirable supply, and
    /// records it; nothing if no bucket holds a machine (§6.3).
    pub(crate) fn choose_domain(
        &mut self,
        tier: &[usize],
        need: usize,
        free: Free,
        used: &BTreeSet<usize>,
    ) {
        let buckets = self.buckets(tier, need, free, used);
        let aggregate = &self.needs[need].aggregate;
        let mut ranking: Vec<(&Domain, &Bucket)> = buckets.iter().collect();
        ranking.sort_by(|a, b| compare(aggregate, *a, *b).1);
        let Some((domain, winner)) = ranking.first().copied() else { return };
        let satisfiable = winner.total.covers(aggregate);
        let rule =
            ranking.get(1).map_or(0, |second| compare(aggregate, (domain, winner), *second).0);
        let domain = domain.clone();
        let chosen = &mut self.needs[need];
        chosen.domain = Some(domain);
        chosen.satisfiable = satisfiable;
        chosen.domain_rule = rule;
    }

    /// One bucket per value, over own and free creditable machines and, unless the
    /// need is quiet, what it could acquire (§6.3, §4.1, §4.3).
    fn buckets(
        &self,
        tier: &[usize],
        need: usize,
        free: Free,
        used: &BTreeSet<usize>,
    ) -> BTreeMap<Domain, Bucket> {
        let mut buckets: BTreeMap<Domain, Bucket> = BTreeMap::new();
        let mut put = |machine: usize, own: bool, creditable: bool| {
            let Some(domain) = self.needs[need].domain_of(self.machine(machine)) else { return };
            let contribution = self.contribution(need, machine);
            let bucket = buckets.entry(domain).or_default();
            bucket.total.add_assign(&contribution);
            bucket.count += 1;
            if own {
                bucket.own.add_assign(&contribution);
            }
            if creditable {
                bucket.cred.add_assign(&contribution);
            }
            if creditable || self.machine(machine).state == MachineState::Idle {
                bucket.paid.add_assign(&contribution);
            }
        };
        for machine in self.own(need) {
            put(machine, true, true);
        }
        for machine in self.free(tier, need, free) {
            put(machine, false, true);
        }
        if !self.needs[need].quiet() {
            for machine in self.acquirable(need) {
                if !used.contains(&machine) {
                    put(machine, false, false);
                }
            }
        }
        buckets
    }
}

/// Rules 1–7 (§6.3): which one decides, and the preferred bucket first.
fn compare(aggregate: &Totals, a: (&Domain, &Bucket), b: (&Domain, &Bucket)) -> (u8, Ordering) {
    let ((domain_a, a), (domain_b, b)) = (a, b);
    let larger = |part: fn(&Bucket) -> &Totals| {
        Reverse(cov(part(a), aggregate)).cmp(&Reverse(cov(part(b), aggregate)))
    };
    let satisfiable = |bucket: &Bucket| bucket.total.covers(aggregate);
    let last = [(7, b.count.cmp(&a.count)), (7, domain_a.cmp(domain_b))];
    let rules = match (satisfiable(a), satisfiable(b)) {
        (true, true) => vec![
            (2, larger(|bucket| &bucket.cred)),
            (3, larger(|bucket| &bucket.own)),
            (4, larger(|bucket| &bucket.paid)),
            (4, load(&a.total, aggregate).cmp(&load(&b.total, aggregate))),
        ],
        (false, false) => vec![
            (5, larger(|bucket| &bucket.total)),
            (6, larger(|bucket| &bucket.cred)),
            (6, larger(|bucket| &bucket.own)),
        ],
        (satisfiable_a, satisfiable_b) => vec![(1, satisfiable_b.cmp(&satisfiable_a))],
    };
    rules
        .into_iter()
        .chain(last)
        .find(|(_, order)| *order != Ordering::Equal)
        .unwrap_or((0, Ordering::Equal))
}
