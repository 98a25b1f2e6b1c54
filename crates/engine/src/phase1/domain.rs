//! Domain choice for gangs (§6.3): once per need and cycle, jointly over what is
//! bound and what could be acquired.

use std::cmp::Ordering;

use bigfleet_model::Totals;

use super::{
    Phase1, Reach,
    credit::Head,
    share::{coverage, load},
};
use crate::{
    handle::{ClassIx, DomainIx, PoolIx, PreparedIx},
    world::{Looked, RunKind, Supply},
};

/// What a gang could be credited with in one domain.
#[derive(Default)]
pub(crate) struct Bucket {
    credited: Totals,
    own: Totals,
    count: usize,
}

/// Buckets by the places of their domains, most of them empty.
#[derive(Default)]
pub(crate) struct Buckets {
    rows: Vec<Bucket>,
    /// Places of those that are not.
    filled: Vec<u32>,
}

impl Buckets {
    fn start_over(&mut self, domains: usize) {
        for place in self.filled.drain(..) {
            self.rows[place as usize] = Bucket::default();
        }
        if self.rows.len() < domains {
            self.rows.resize_with(domains, Bucket::default);
        }
    }

    fn at(&mut self, place: u32) -> &mut Bucket {
        let bucket = &mut self.rows[place as usize];
        if bucket.count == 0 {
            self.filled.push(place);
        }
        bucket
    }

    fn is_filled(&self, place: u32) -> bool {
        self.rows[place as usize].count > 0
    }

    fn filled(&self) -> impl Iterator<Item = (u32, &Bucket)> {
        self.filled.iter().map(|place| (*place, &self.rows[*place as usize]))
    }
}

/// A domain as the rules see it.
pub(crate) struct Judged {
    /// Domains are in the order of their values.
    pub(crate) place: usize,
    pub(crate) satisfiable: bool,
    pub(crate) credited: i128,
    pub(crate) own: i128,
    pub(crate) credited_or_idle: i128,
    pub(crate) load: i128,
    pub(crate) total: i128,
    pub(crate) count: usize,
}

impl Judged {
    /// Less is preferred; with the number of the rule that decided.
    pub(crate) fn order(&self, other: &Self) -> (Ordering, u8) {
        let more = |mine: &i128, theirs: &i128| theirs.cmp(mine);
        let steps: [(u8, Ordering); 7] = if self.satisfiable && other.satisfiable {
            [
                (1, Ordering::Equal),
                (2, more(&self.credited, &other.credited)),
                (3, more(&self.own, &other.own)),
                (4, more(&self.credited_or_idle, &other.credited_or_idle)),
                (4, self.load.cmp(&other.load)),
                (7, other.count.cmp(&self.count)),
                (7, self.place.cmp(&other.place)),
            ]
        } else {
            [
                (1, other.satisfiable.cmp(&self.satisfiable)),
                (5, more(&self.total, &other.total)),
                (6, more(&self.credited, &other.credited)),
                (6, more(&self.own, &other.own)),
                (7, other.count.cmp(&self.count)),
                (7, self.place.cmp(&other.place)),
                (7, Ordering::Equal),
            ]
        };
        let decided = steps.into_iter().find(|(_, order)| order.is_ne());
        decided.map_or((Ordering::Equal, 7), |(rule, order)| (order, rule))
    }
}

impl Phase1<'_> {
    /// Chooses and records the domain; none if no domain has any supply.
    pub(super) fn choose_domain(&mut self, need: PreparedIx, reach: Reach) {
        let row = &self.world.needs[need];
        let pool = row.pool;
        // One that wants nothing owns nothing, and others took of its machines freely.
        if row.kept && (row.has_gaps || self.owned_claims(need) != row.credits.len()) {
            self.world.start_afresh(need);
        }
        self.count_domains(pool);
        let mut buckets = std::mem::take(&mut self.scratch.buckets);
        buckets.start_over(self.world.pools[pool].domains.len());
        let mut heads = std::mem::take(&mut self.scratch.heads);
        heads.clear();
        self.own_heads(need, &mut heads);
        self.fill(need, &heads, &mut buckets, true);
        let own = self.own_domain(need, &buckets).map(|place| (place, true, 3));
        let chosen = own.or_else(|| {
            heads.clear();
            self.free_heads(need, reach, &mut heads);
            self.fill(need, &heads, &mut buckets, false);
            self.compare(need, &buckets)
        });
        let domain = chosen.map(|(place, ..)| self.world.pools[pool].domains[place].domain);
        if self.world.needs[need].kept && (domain.is_none() || self.kept_in(need) != domain) {
            self.world.start_afresh(need);
        }
        if own.is_none() {
            self.world.needs[need].looked = Looked::Around;
        }
        if let Some((_, satisfiable, rule)) = chosen {
            let row = &mut self.world.needs[need];
            row.domain = domain;
            row.satisfiable = satisfiable;
            row.rule = rule;
        }
        self.scratch.heads = heads;
        self.scratch.buckets = buckets;
    }

    /// Where the machines are that a gang keeps, all of them in one place.
    fn kept_in(&self, need: PreparedIx) -> Option<DomainIx> {
        let row = &self.world.needs[need];
        let first = row.credits.first()?;
        self.world.domain(row, self.world.machines.rows[*first].class)
    }

    /// The one domain in which the gang's own machines cover it: no rule prefers
    /// another, whatever there is. So a gang that is served looks at nobody else.
    fn own_domain(&self, need: PreparedIx, buckets: &Buckets) -> Option<usize> {
        let wanted = &self.world.needs[need].aggregate;
        if wanted.is_zero() {
            return None;
        }
        let covers = |(_, bucket): &(u32, &Bucket)| bucket.own.covers(wanted);
        let mut covering = buckets.filled().filter(covers).map(|(place, _)| place as usize);
        covering.next().filter(|_| covering.next().is_none())
    }

    /// Adds what is left of these runs to their domains.
    fn fill(&self, need: PreparedIx, heads: &[Head], buckets: &mut Buckets, own: bool) {
        let world = &*self.world;
        let row = &world.needs[need];
        let pool = &world.pools[row.pool];
        let Some(topology) = world.topology(row) else { return };
        for head in heads {
            let run = &world.runs[head.run];
            let domain = topology.of_class(run.class);
            let Some(place) = domain.and_then(|domain| pool.place(domain)) else {
                continue;
            };
            let count = match head.is_taken_from() {
                true => run.members.len(),
                false => run.members.len() - run.claimed as usize,
            };
            if count == 0 {
                continue;
            }
            let amount = world.classes[run.class].capacity.scale(count as u64);
            let bucket = buckets.at(place);
            bucket.credited.add_assign(&amount);
            if own {
                bucket.own.add_assign(&amount);
            }
            bucket.count += count;
        }
    }

    /// Place, satisfiability and rule of the preferred domain.
    fn compare(&self, need: PreparedIx, buckets: &Buckets) -> Option<(usize, bool, u8)> {
        let row = &self.world.needs[need];
        let wanted = &row.aggregate;
        let pool = &self.world.pools[row.pool];
        let quiet = row.is_quiet();
        let judge = |place: u32, bucket: &Bucket, acquirable: Option<&Supply>| {
            let count = bucket.count + acquirable.map_or(0, |acquirable| acquirable.count);
            let mut total = bucket.credited.clone();
            let mut paid = bucket.credited.clone();
            if let Some(acquirable) = acquirable {
                total.add_assign(&acquirable.total);
                paid.add_assign(&acquirable.idle);
            }
            Judged {
                place: place as usize,
                satisfiable: total.covers(wanted),
                credited: coverage(&bucket.credited, wanted),
                own: coverage(&bucket.own, wanted),
                credited_or_idle: coverage(&paid, wanted),
                load: load(&total, wanted),
                total: coverage(&total, wanted),
                count,
            }
        };
        let empty = Bucket::default();
        let filled = buckets.filled().map(|(place, bucket)| {
            let acquirable = &pool.domains[place as usize].supply;
            judge(place, bucket, Some(acquirable).filter(|_| !quiet))
        });
        let many = pool.has_many_domains() && !quiet;
        let kinds = many.then(|| pool.alike.firsts(|place| buckets.is_filled(place)));
        let few = (!many && !quiet).then(|| {
            let all = (0..).zip(&pool.domains).map(|(place, row)| (place, &row.supply));
            all.filter(|(place, supply)| supply.count > 0 && !buckets.is_filled(*place))
        });
        let others = kinds.into_iter().flatten().chain(few.into_iter().flatten());
        let others = others.map(|(place, supply)| judge(place, &empty, Some(supply)));
        let mut judged = filled.chain(others);
        let mut best = judged.next()?;
        let mut second: Option<Judged> = None;
        for other in judged {
            if other.order(&best).0.is_lt() {
                second = Some(std::mem::replace(&mut best, other));
            } else if second.as_ref().is_none_or(|second| other.order(second).0.is_lt()) {
                second = Some(other);
            }
        }
        // The rule that tells the best from the second best.
        let rule = second.map_or(0, |second| best.order(&second).1);
        Some((best.place, best.satisfiable, rule))
    }

    /// Brings the pool's count of what is acquirable in each domain up to date
    /// with the present view; plans keep it so.
    fn count_domains(&mut self, pool: PoolIx) {
        let world = &mut *self.world;
        let topology =
            world.pools[pool].key.topology.map(|topology| world.topologies.row(topology));
        world.pools[pool].rank(&world.classes, topology);
        if world.pools[pool].counted_in == world.view {
            return;
        }
        if world.pools[pool].counted_in == 0 {
            for &class in &world.pools[pool].classes {
                let pools = &mut world.classes[class].gang_pools;
                if !pools.contains(&pool) {
                    pools.push(pool);
                }
            }
        }
        let many_domains = world.pools[pool].has_many_domains();
        let mut domains = std::mem::take(&mut world.pools[pool].domains);
        let mut alike = std::mem::take(&mut world.pools[pool].alike);
        alike.clear();
        for (place, domain) in domains.iter_mut().enumerate() {
            let supply = &mut domain.supply;
            *supply = Supply::default();
            for &rank in &domain.ranks {
                let rank = &world.pools[pool].ranks[rank as usize];
                let left: usize = rank.runs.iter().map(|run| world.left(*run)).sum();
                if left == 0 {
                    continue;
                }
                let amount = world.classes[rank.sample].capacity.scale(left as u64);
                supply.total.add_assign(&amount);
                if rank.kind == RunKind::Idle {
                    supply.idle.add_assign(&amount);
                }
                supply.count += left;
            }
            if many_domains && supply.count > 0 {
                alike.insert(place as u32, supply);
            }
        }
        let row = &mut world.pools[pool];
        (row.domains, row.alike) = (domains, alike);
        row.counted_in = world.view;
    }

    /// A plan took a machine of a class, or gave it back.
    pub(super) fn recount(&mut self, class: ClassIx, kind: RunKind, taken: bool) {
        let world = &mut *self.world;
        for &pool in &world.classes[class].gang_pools {
            let row = &mut world.pools[pool];
            if row.counted_in != world.view {
                continue;
            }
            let Some(topology) = row.key.topology.map(|topology| world.topologies.row(topology))
            else {
                continue;
            };
            let domain = topology.of_class(class);
            let Some(place) = domain.and_then(|domain| row.place(domain)) else {
                continue;
            };
            let many = row.has_many_domains();
            let supply = &mut row.domains[place as usize].supply;
            if many && supply.count > 0 {
                row.alike.remove(place, supply);
            }
            let capacity = &world.classes[class].capacity;
            let idle = Some(&mut supply.idle).filter(|_| kind == RunKind::Idle);
            for totals in [Some(&mut supply.total), idle].into_iter().flatten() {
                if taken {
                    totals.sub_sat_assign(capacity);
                } else {
                    totals.add_assign(capacity);
                }
            }
            supply.count = if taken { supply.count - 1 } else { supply.count + 1 };
            if many && supply.count > 0 {
                row.alike.insert(place, supply);
            }
        }
    }
}
