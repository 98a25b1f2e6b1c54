//! Where a gang could be (§9): the buckets of its domain choice over what it
//! claims and what is left unclaimed at the end of the cycle.

use std::collections::BTreeMap;

use bigfleet_model::Totals;

use crate::{
    handle::{AccountIx, ClassIx, DomainIx, MachineIx, PreparedIx},
    input::NeedKey,
    phase1::{Judged, coverage, load},
    reader::Reader,
    rows::place_of,
    world::{Constraint, Prepared, RunKind, TopologyRow, World},
};

/// One domain as a place for a gang.
#[derive(Clone, Debug, PartialEq)]
pub struct DomainCoverage {
    /// Values of the gang's keys, by key.
    pub domain: BTreeMap<String, String>,
    /// What it claims there and what is left there cover it together.
    pub satisfiable: bool,
    /// How much of its worst dimension they cover, in thousandths.
    pub per_mille: u32,
    /// How many machines that are.
    pub machines: u32,
}

impl DomainCoverage {
    /// How many a row shows; an explanation shows all.
    pub const IN_A_ROW: usize = 8;
}

/// What one domain offers.
struct Bucket {
    domain: DomainIx,
    credited: Totals,
    own: Totals,
    /// Acquirable, and the Idle part of it.
    acquirable: Totals,
    idle: Totals,
    count: usize,
}

/// How machines count in a bucket.
#[derive(Clone, Copy)]
enum Part {
    Own,
    Credited,
    Acquirable(RunKind),
}

impl Reader<'_> {
    /// Domains of a gang, the preferred one first; at most `best`, if given. None
    /// for a need without `Same`. A quiet gang sees what it could have if it
    /// were not: that is what its reader wants to know.
    pub fn domains(&self, need: &NeedKey, best: Option<usize>) -> Vec<DomainCoverage> {
        let known = self.engine.as_sent(need);
        known.map(|need| self.domains_of(need, best)).unwrap_or_default()
    }

    pub(crate) fn domains_of(&self, need: PreparedIx, best: Option<usize>) -> Vec<DomainCoverage> {
        let world = &self.engine.world;
        let row = &world.needs[need];
        let topology = world.topology(row).filter(|_| row.constraint == Constraint::Same);
        let Some(topology) = topology else { return Vec::new() };
        let mut buckets = Buckets { world, need: row, topology, known: BTreeMap::new() };
        self.fill(need, &mut buckets);
        let mut buckets: Vec<Bucket> = buckets.known.into_values().collect();
        buckets.sort_unstable_by(|a, b| topology.order(a.domain, b.domain));
        let mut judged: Vec<Judged> =
            buckets.iter().enumerate().map(|(at, bucket)| judge(at, bucket, row)).collect();
        judged.sort_unstable_by(|a, b| a.order(b).0);
        judged.truncate(best.unwrap_or(usize::MAX));
        let keys = || topology.keys.iter().cloned();
        let coverage = |judged: Judged| {
            let bucket = &buckets[judged.place];
            let values = topology.values(bucket.domain).iter().cloned();
            DomainCoverage {
                domain: keys().zip(values).collect(),
                satisfiable: judged.satisfiable,
                per_mille: per_mille(&bucket.credited.add(&bucket.acquirable), &row.aggregate),
                machines: u32::try_from(bucket.count).unwrap_or(u32::MAX),
            }
        };
        judged.into_iter().map(coverage).collect()
    }

    fn fill(&self, need: PreparedIx, buckets: &mut Buckets<'_>) {
        let world = &self.engine.world;
        let row = &world.needs[need];
        let pool = &world.pools[row.pool];
        for &class in &pool.classes {
            let acquirable = world.classes[class].unbound.acquirable;
            for (kind, run) in RunKind::ACQUIRABLE.into_iter().zip(acquirable) {
                let run = &world.runs[run];
                let left = run.members.len() - run.claimed as usize;
                buckets.add(class, left, Part::Acquirable(kind));
            }
        }
        let bound = world.names.clusters[row.cluster].shelves.among(&pool.usable);
        let bound = bound.flat_map(|shelf| &shelf.runs);
        let bought = world.names.accounts[row.account].runs.iter();
        let bought = bought.filter(|run| world.runs[**run].kind == RunKind::Bought);
        for run in bound.chain(bought) {
            let run = &world.runs[*run];
            if pool.has(run.class) {
                let left = run.members.len() - run.claimed as usize;
                buckets.add(run.class, left, buckets.part_of(run.account));
            }
        }
        match row.folded_into {
            None => {
                row.credits.iter().for_each(|machine| buckets.add_claim(*machine, None));
                for pick in &row.picks {
                    buckets.add_claim(pick.machine, Some(world.runs[pick.run].kind));
                }
            }
            Some(fold) => {
                let deal = self.deal(fold);
                let served = place_of(world, fold, need).and_then(|place| deal.serving(place));
                if let Some(served) = served {
                    buckets.add_claim(served.machine, served.picked);
                }
            }
        }
    }
}

struct Buckets<'w> {
    world: &'w World,
    need: &'w Prepared,
    topology: &'w TopologyRow,
    known: BTreeMap<DomainIx, Bucket>,
}

impl Buckets<'_> {
    /// Machines that carry the stamp of the gang, or of its fold, are its own.
    fn part_of(&self, account: Option<AccountIx>) -> Part {
        let fold = self.need.folded_into.map(|fold| self.world.needs[fold].account);
        let own = account.is_some() && (account == Some(self.need.account) || account == fold);
        if own { Part::Own } else { Part::Credited }
    }

    fn add_claim(&mut self, machine: MachineIx, picked: Option<RunKind>) {
        let row = &self.world.machines.rows[machine];
        let account = row.run.and_then(|run| self.world.runs[run].account);
        let part = picked.map_or_else(|| self.part_of(account), Part::Acquirable);
        self.add(row.class, 1, part);
    }

    fn add(&mut self, class: ClassIx, count: usize, part: Part) {
        let Some(domain) = self.topology.of_class(class).filter(|_| count > 0) else { return };
        let amount = self.world.classes[class].capacity.scale(count as u64);
        let bucket = self.known.entry(domain).or_insert_with(|| Bucket {
            domain,
            credited: Totals::zero(),
            own: Totals::zero(),
            acquirable: Totals::zero(),
            idle: Totals::zero(),
            count: 0,
        });
        bucket.count += count;
        match part {
            Part::Own => {
                bucket.own.add_assign(&amount);
                bucket.credited.add_assign(&amount);
            }
            Part::Credited => bucket.credited.add_assign(&amount),
            Part::Acquirable(kind) => {
                bucket.acquirable.add_assign(&amount);
                if kind == RunKind::Idle {
                    bucket.idle.add_assign(&amount);
                }
            }
        }
    }
}

fn judge(place: usize, bucket: &Bucket, need: &Prepared) -> Judged {
    let wanted = &need.aggregate;
    let total = bucket.credited.add(&bucket.acquirable);
    Judged {
        place,
        satisfiable: total.covers(wanted),
        credited: coverage(&bucket.credited, wanted),
        own: coverage(&bucket.own, wanted),
        credited_or_idle: coverage(&bucket.credited.add(&bucket.idle), wanted),
        load: load(&total, wanted),
        total: coverage(&total, wanted),
        count: bucket.count,
    }
}

/// Thousandths of the worst dimension.
fn per_mille(have: &Totals, wanted: &Totals) -> u32 {
    let share = |(dimension, whole): (_, i128)| {
        let part = have.get(dimension).min(whole);
        // Past that size a thousandth of the whole is exact enough.
        part.checked_mul(1_000).map_or_else(|| part / (whole / 1_000), |scaled| scaled / whole)
    };
    let worst = wanted.iter().map(share).min().unwrap_or(1_000);
    u32::try_from(worst.clamp(0, 1_000)).unwrap_or(0)
}
