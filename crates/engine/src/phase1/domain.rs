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
    handle::{ClassIx, PoolIx, PreparedIx},
    world::RunKind,
};

/// What a gang could be credited with in one domain.
#[derive(Default)]
pub(crate) struct Bucket {
    credited: Totals,
    own: Totals,
    count: usize,
}

/// A domain as the rules see it.
struct Judged {
    /// Domains are in the order of their values.
    place: usize,
    satisfiable: bool,
    credited: i128,
    own: i128,
    credited_or_idle: i128,
    load: i128,
    total: i128,
    count: usize,
}

impl Judged {
    /// Less is preferred; with the number of the rule that decided.
    fn order(&self, other: &Self) -> (Ordering, u8) {
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
        let pool = self.world.needs[need].pool;
        self.count_domains(pool);
        let mut buckets = std::mem::take(&mut self.scratch.buckets);
        buckets.clear();
        buckets.resize_with(self.world.pools[pool].domains.len(), Bucket::default);
        let mut heads = std::mem::take(&mut self.scratch.heads);
        heads.clear();
        self.own_heads(need, &mut heads);
        self.fill(need, &heads, &mut buckets, true);
        let chosen = match self.own_domain(need, &buckets) {
            Some(place) => Some((place, true, 3)),
            None => {
                heads.clear();
                self.free_heads(need, reach, &mut heads);
                self.fill(need, &heads, &mut buckets, false);
                self.world.needs[need].looked_around = true;
                self.compare(need, &buckets)
            }
        };
        if let Some((place, satisfiable, rule)) = chosen {
            let domain = self.world.pools[pool].domains[place].domain;
            let row = &mut self.world.needs[need];
            row.domain = Some(domain);
            row.satisfiable = satisfiable;
            row.rule = rule;
        }
        self.scratch.heads = heads;
        self.scratch.buckets = buckets;
    }

    /// The one domain in which the gang's own machines cover it: no rule prefers
    /// another, whatever there is. So a gang that is served looks at nobody else.
    fn own_domain(&self, need: PreparedIx, buckets: &[Bucket]) -> Option<usize> {
        let wanted = &self.world.needs[need].aggregate;
        if wanted.is_zero() {
            return None;
        }
        let mut covering = (0..buckets.len()).filter(|at| buckets[*at].own.covers(wanted));
        covering.next().filter(|_| covering.next().is_none())
    }

    /// Adds what is left of these runs to their domains.
    fn fill(&self, need: PreparedIx, heads: &[Head], buckets: &mut [Bucket], own: bool) {
        let world = &*self.world;
        let row = &world.needs[need];
        let pool = &world.pools[row.pool];
        let Some(topology) = world.topology(row) else { return };
        for head in heads {
            let run = &world.runs[head.run];
            let domain = topology.of_class(run.class);
            let Some(place) = domain.and_then(|domain| pool.place(domain, topology)) else {
                continue;
            };
            let count = match head.is_taken_from() {
                true => run.members.len(),
                false => run.members.len() - run.claimed as usize,
            };
            let amount = world.classes[run.class].capacity.scale(count as u64);
            let bucket = &mut buckets[place as usize];
            bucket.credited.add_assign(&amount);
            if own {
                bucket.own.add_assign(&amount);
            }
            bucket.count += count;
        }
    }

    /// Place, satisfiability and rule of the preferred domain.
    fn compare(&self, need: PreparedIx, buckets: &[Bucket]) -> Option<(usize, bool, u8)> {
        let row = &self.world.needs[need];
        let wanted = &row.aggregate;
        let domains = &self.world.pools[row.pool].domains;
        let quiet = row.is_quiet();
        let judge = |(place, bucket): (usize, &Bucket)| {
            let acquirable = domains.get(place).filter(|_| !quiet);
            let count = bucket.count + acquirable.map_or(0, |acquirable| acquirable.count);
            if count == 0 {
                return None;
            }
            let mut total = bucket.credited.clone();
            let mut paid = bucket.credited.clone();
            if let Some(acquirable) = acquirable {
                total.add_assign(&acquirable.total);
                paid.add_assign(&acquirable.idle);
            }
            Some(Judged {
                place,
                satisfiable: total.covers(wanted),
                credited: coverage(&bucket.credited, wanted),
                own: coverage(&bucket.own, wanted),
                credited_or_idle: coverage(&paid, wanted),
                load: load(&total, wanted),
                total: coverage(&total, wanted),
                count,
            })
        };
        let mut judged = buckets.iter().enumerate().filter_map(judge);
        let mut best = judged.next()?;
        let mut rule = 0;
        for other in judged {
            let (order, decided) = other.order(&best);
            rule = decided;
            if order.is_lt() {
                best = other;
            }
        }
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
        let mut domains = std::mem::take(&mut world.pools[pool].domains);
        for domain in &mut domains {
            domain.total = Totals::zero();
            domain.idle = Totals::zero();
            domain.count = 0;
            for &rank in &domain.ranks {
                let rank = &world.pools[pool].ranks[rank as usize];
                let left: usize = rank.runs.iter().map(|run| world.left(*run)).sum();
                if left == 0 {
                    continue;
                }
                let amount = world.classes[rank.sample].capacity.scale(left as u64);
                domain.total.add_assign(&amount);
                if rank.kind == RunKind::Idle {
                    domain.idle.add_assign(&amount);
                }
                domain.count += left;
            }
        }
        let row = &mut world.pools[pool];
        row.domains = domains;
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
            let Some(place) = domain.and_then(|domain| row.place(domain, topology)) else {
                continue;
            };
            let domain = &mut row.domains[place as usize];
            let capacity = &world.classes[class].capacity;
            for totals in
                [Some(&mut domain.total), Some(&mut domain.idle).filter(|_| kind == RunKind::Idle)]
                    .into_iter()
                    .flatten()
            {
                if taken {
                    totals.sub_sat_assign(capacity);
                } else {
                    totals.add_assign(capacity);
                }
            }
            if taken {
                domain.count -= 1;
            } else {
                domain.count += 1;
            }
        }
    }
}
