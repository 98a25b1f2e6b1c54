//! Domain choice for gangs (§6.3): once per need and cycle, jointly over what is
//! bound and what could be acquired.

use std::{cmp::Ordering, collections::BTreeMap};

use bigfleet_model::Totals;

use super::{
    Phase1, Reach,
    acquire::Used,
    prepared::Prepared,
    share::{coverage, load},
};
use crate::world::{DomainId, RunKind};

/// Supply of one domain.
#[derive(Default)]
struct Bucket {
    total: Totals,
    credited: Totals,
    own: Totals,
    idle: Totals,
    count: usize,
}

/// A bucket as the rules see it.
struct Judged {
    domain: DomainId,
    satisfiable: bool,
    credited: i128,
    own: i128,
    credited_or_idle: i128,
    load: i128,
    total: i128,
    count: usize,
}

impl Judged {
    fn of(domain: DomainId, bucket: &Bucket, wanted: &Totals) -> Self {
        Self {
            domain,
            satisfiable: bucket.total.covers(wanted),
            credited: coverage(&bucket.credited, wanted),
            own: coverage(&bucket.own, wanted),
            credited_or_idle: coverage(&bucket.credited.add(&bucket.idle), wanted),
            load: load(&bucket.total, wanted),
            total: coverage(&bucket.total, wanted),
            count: bucket.count,
        }
    }

    /// Less is preferred; with the number of the rule that decided.
    fn order(&self, other: &Self) -> (Ordering, u8) {
        let more = |mine: &i128, theirs: &i128| theirs.cmp(mine);
        let steps: [(u8, Ordering); 8] = if self.satisfiable && other.satisfiable {
            [
                (1, Ordering::Equal),
                (2, more(&self.credited, &other.credited)),
                (3, more(&self.own, &other.own)),
                (4, more(&self.credited_or_idle, &other.credited_or_idle)),
                (4, self.load.cmp(&other.load)),
                (7, other.count.cmp(&self.count)),
                (7, self.domain.cmp(&other.domain)),
                (7, Ordering::Equal),
            ]
        } else {
            [
                (1, other.satisfiable.cmp(&self.satisfiable)),
                (5, more(&self.total, &other.total)),
                (6, more(&self.credited, &other.credited)),
                (6, more(&self.own, &other.own)),
                (7, other.count.cmp(&self.count)),
                (7, self.domain.cmp(&other.domain)),
                (7, Ordering::Equal),
                (7, Ordering::Equal),
            ]
        };
        let decided = steps.into_iter().find(|(_, order)| order.is_ne());
        decided.map_or((Ordering::Equal, 7), |(rule, order)| (order, rule))
    }
}

impl Phase1<'_, '_> {
    /// Chooses and records the domain; none if no domain has any supply.
    pub(super) fn choose_domain(&self, need: &mut Prepared, reach: Reach, used: &Used) {
        let buckets = self.buckets(need, reach, used);
        let mut judged =
            buckets.iter().map(|(domain, bucket)| Judged::of(*domain, bucket, &need.aggregate));
        let Some(mut best) = judged.next() else { return };
        let mut rule = 0;
        for other in judged {
            let (order, decided) = other.order(&best);
            rule = decided;
            if order.is_lt() {
                best = other;
            }
        }
        need.domain = Some(best.domain);
        need.satisfiable = best.satisfiable;
        need.rule = rule;
    }

    fn buckets(&self, need: &Prepared, reach: Reach, used: &Used) -> BTreeMap<DomainId, Bucket> {
        let world = &self.world;
        let profile = world.profiles.row(need.profile);
        let mut buckets: BTreeMap<DomainId, Bucket> = BTreeMap::new();
        let mut add = |number: usize, count: usize, credited: bool, own: bool| {
            let run = &world.runs[number];
            let Some(domain) = profile.same[run.class].filter(|_| count > 0) else { return };
            let bucket = buckets.entry(domain).or_default();
            let amount = world.capacity(run.class).scale(count as u64);
            bucket.total.add_assign(&amount);
            bucket.count += count;
            if credited {
                bucket.credited.add_assign(&amount);
            }
            if own {
                bucket.own.add_assign(&amount);
            }
            if run.kind == RunKind::Idle {
                bucket.idle.add_assign(&amount);
            }
        };
        let (own, free) = self.creditable(need, reach);
        own.iter().for_each(|&number| add(number, world.runs[number].free(), true, true));
        free.iter().for_each(|&number| add(number, world.runs[number].free(), true, false));
        if !need.is_quiet() {
            for &number in profile.classes.iter().flat_map(|class| &world.acquirable_of[*class]) {
                let run = &world.runs[number];
                if need.usable(world, run.class) {
                    let consumed = used.get(&number).copied().unwrap_or(0);
                    add(number, run.free().saturating_sub(consumed), false, false);
                }
            }
        }
        buckets
    }
}
