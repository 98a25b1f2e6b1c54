//! The needs table: what every cluster wants (§1.6).

use std::{cmp::Ordering, sync::Arc};

use bigfleet_model::{Need, Totals};

use super::{Constraint, Few, Looked, PoolKey, Prepared, Unit, World};
use crate::{
    handle::{AccountIx, ClusterIx, KeyIx, PoolIx, PreparedIx, ProfileIx},
    input::NoAcquire,
};

/// A need with what mostly tells its turn, so that sorting rarely looks further.
pub(crate) struct Turn {
    rank: u64,
    arrival: i64,
    /// Places of its cluster and its fingerprint by name.
    names: u64,
    need: PreparedIx,
}

impl World {
    /// Replaces the whole contribution of a cluster. A need that stays keeps its
    /// arrival: stamping it anew would reshuffle equal needs and feed churn.
    pub(crate) fn replace(&mut self, cluster: ClusterIx, needs: &[Need]) {
        self.roll_ups = self.roll_ups.wrapping_add(1);
        let roll_up = self.roll_ups;
        let known = std::mem::take(&mut self.names.clusters[cluster].needs);
        let mut listed = Vec::with_capacity(needs.len());
        // Roll-ups come in the same order every time, but for what came and went.
        let mut at = 0;
        for need in needs {
            let near = (at..known.len().min(at + 2)).find(|at| self.is(known[*at], need));
            let number = match near {
                Some(near) => {
                    at = near + 1;
                    self.change(known[near], need);
                    known[near]
                }
                None => self.put(cluster, need),
            };
            self.needs[number].roll_up = roll_up;
            listed.push(number);
        }
        self.names.clusters[cluster].needs = listed;
        for number in known {
            if self.needs[number].roll_up != roll_up {
                self.drop_need(number);
            }
        }
    }

    /// Takes in one need more, or another size of a known one.
    pub(crate) fn put_one(&mut self, need: &Need) -> PreparedIx {
        let cluster = self.names.cluster(&need.cluster);
        let number = self.put(cluster, need);
        let needs = &mut self.names.clusters[cluster].needs;
        if !needs.contains(&number) {
            needs.push(number);
        }
        number
    }

    /// Whether a known need has this identity.
    fn is(&self, known: PreparedIx, need: &Need) -> bool {
        let row = &self.needs[known];
        let profile = &self.profiles[row.profile].profile;
        // Whoever sends again shares texts, as a rule.
        let group = self.group(row);
        let same_group = std::ptr::eq(group.as_str(), need.group.as_str()) || *group == need.group;
        same_group
            && (Arc::ptr_eq(profile, &need.profile)
                || profile.fingerprint() == need.profile.fingerprint())
    }

    fn put(&mut self, cluster: ClusterIx, need: &Need) -> PreparedIx {
        let key = self.names.key(need.profile.fingerprint(), &need.group);
        let account = self.names.account(cluster, key);
        if let Some(known) = self.names.accounts[account].need {
            self.change(known, need);
            return known;
        }
        let profile = self.profile(&need.profile);
        let pool = self.pool_of(profile, need.min_unit.scale(1));
        let constraint = self.profiles[profile].constraint;
        let number = self.add(Prepared {
            arrival: need.arrival,
            aggregate: need.aggregate.clone(),
            ..blank(constraint, cluster, profile, account, pool, key)
        });
        self.names.accounts[account].need = Some(number);
        self.join_gangs(number);
        // Machines may carry its stamp already, for somebody else's use so far.
        self.touch(number);
        number
    }

    /// Another size of a known need.
    fn change(&mut self, number: PreparedIx, need: &Need) {
        let row = &self.needs[number];
        let same_unit = {
            let unit = &self.pools[row.pool].key.unit;
            unit.covers(&need.min_unit) && need.min_unit.covers(unit)
        };
        if row.aggregate == need.aggregate && same_unit {
            return;
        }
        let alike = same_unit
            && row.aggregate.spans(&need.aggregate)
            && need.aggregate.spans(&row.aggregate);
        self.touch(number);
        if !alike {
            self.start_afresh(number);
        }
        self.leave_gangs(number);
        if !same_unit {
            let pool = self.pool_of(self.needs[number].profile, need.min_unit.scale(1));
            self.needs[number].pool = pool;
        }
        self.needs[number].aggregate = need.aggregate.clone();
        self.join_gangs(number);
        self.touch(number);
    }

    fn drop_need(&mut self, number: PreparedIx) {
        self.touch(number);
        self.start_afresh(number);
        self.leave_gangs(number);
        let account = self.needs[number].account;
        self.names.accounts[account].need = None;
        let row = &mut self.needs[number];
        row.removed = true;
        row.age = 0;
        self.free_needs.push(number);
        // Whoever is short looks again by itself; what it held is free now.
    }

    pub(super) fn add(&mut self, row: Prepared) -> PreparedIx {
        match self.free_needs.pop() {
            // A number that is still in a list must not get into it twice.
            Some(number) => {
                let Prepared { queued, listed_unready, .. } = self.needs[number];
                self.needs[number] = Prepared { queued, listed_unready, ..row };
                number
            }
            None => self.needs.push(row),
        }
    }

    fn pool_of(&mut self, profile: ProfileIx, unit: Totals) -> PoolIx {
        let row = &self.profiles[profile];
        let requirements = row.profile.requirements().to_vec();
        let topology = row.topology;
        self.pool(PoolKey { requirements, unit, folded: false, topology })
    }

    pub(crate) fn hold(&mut self, account: AccountIx, why: Option<NoAcquire>) {
        let Some(number) = self.names.accounts[account].need else { return };
        if self.needs[number].held != why {
            self.needs[number].held = why;
            self.touch(number);
        }
    }

    /// The total order (§5) of needs of one tier; names must be ranked.
    pub(crate) fn serving_order(&self, a: PreparedIx, b: PreparedIx) -> Ordering {
        let rank = |need: PreparedIx| {
            let need = &self.needs[need];
            let cluster = self.names.clusters[need.cluster].rank;
            (need.arrival, cluster, self.profiles[need.profile].rank)
        };
        rank(a).cmp(&rank(b)).then_with(|| self.tie_order(a, b))
    }

    /// Sorts needs by a rank of their own, then by the total order of a tier.
    pub(crate) fn sort_by_turn(
        &self,
        needs: &mut [PreparedIx],
        turns: &mut Vec<Turn>,
        rank: impl Fn(&Prepared) -> u64,
    ) {
        turns.clear();
        turns.extend(needs.iter().map(|need| {
            let row = &self.needs[*need];
            let cluster = self.names.clusters[row.cluster].rank;
            Turn {
                rank: rank(row),
                arrival: row.arrival,
                names: u64::from(cluster) << 32 | u64::from(self.profiles[row.profile].rank),
                need: *need,
            }
        }));
        turns.sort_unstable_by(|a, b| {
            let key = |turn: &Turn| (turn.rank, turn.arrival, turn.names);
            key(a).cmp(&key(b)).then_with(|| self.tie_order(a.need, b.need))
        });
        needs.iter_mut().zip(turns).for_each(|(need, turn)| *need = turn.need);
    }

    /// Sorts needs of any tiers by the total order (§5).
    pub(crate) fn sort_by_order(&self, needs: &mut [PreparedIx], turns: &mut Vec<Turn>) {
        self.sort_by_turn(needs, turns, |row| self.profiles[row.profile].precedence.descending());
    }

    /// Order of needs that differ neither in arrival nor in cluster nor in
    /// fingerprint.
    fn tie_order(&self, a: PreparedIx, b: PreparedIx) -> Ordering {
        let (a, b) = (&self.needs[a], &self.needs[b]);
        self.group(a).cmp(self.group(b)).then_with(|| a.aggregate.cmp_by_name(&b.aggregate))
    }

    /// The tier in which a unit is decided.
    pub(crate) fn tier(&self, unit: Unit) -> super::Precedence {
        match unit {
            Unit::Need(need) => self.precedence(need),
            Unit::Gangs(gangs) => self.precedence(self.gangs[gangs].fold),
        }
    }
}

/// A need that has not been decided yet.
pub(super) fn blank(
    constraint: Constraint,
    cluster: ClusterIx,
    profile: ProfileIx,
    account: AccountIx,
    pool: PoolIx,
    key: KeyIx,
) -> Prepared {
    Prepared {
        constraint,
        cluster,
        profile,
        account,
        pool,
        gangs: None,
        key,
        arrival: 0,
        aggregate: Totals::zero(),
        age: 0,
        held: None,
        folded_into: None,
        removed: false,
        stamp: None,
        roll_up: 0,
        was_parked: false,
        domain: None,
        satisfiable: false,
        rule: 0,
        covered: Totals::zero(),
        credits: Few::new(),
        picks: Vec::new(),
        plan_stands: false,
        spread_stopped: false,
        looked: Looked::AtItsOwn,
        settled: false,
        tidy: false,
        even: true,
        kept: false,
        has_gaps: false,
        queued: false,
        unready: 0,
        listed_unready: false,
        short: None,
    }
}
