//! Folding sub-machine gangs into plain needs (§4.2).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bigfleet_engine::NoAcquire;
use bigfleet_model::{ClusterId, Fingerprint, Operator, Profile, Requirement, Totals};

use crate::{
    credit::Free,
    cycle::Cycle,
    need::{Domain, Prepared},
    order,
};

/// The folded classes of a tier, and what they plan to acquire.
pub(crate) struct Folded {
    /// Needs that stand for several gangs, in the order they were planned.
    pub(crate) folds: Vec<usize>,
    /// Gangs that are no needs of their own this cycle.
    pub(crate) members: BTreeSet<usize>,
    pub(crate) used: BTreeSet<usize>,
}

/// Every `Same` replaced by `Exists`, or by `In` if it lists values (§4.2).
pub(crate) fn folded_profile(profile: &Profile) -> Profile {
    let requirements = profile
        .requirements()
        .iter()
        .map(|requirement| {
            let operator = match requirement.operator {
                Operator::Same if requirement.values.is_empty() => Operator::Exists,
                Operator::Same => Operator::In,
                other => other,
            };
            Requirement { operator, ..requirement.clone() }
        })
        .collect();
    Profile::new(
        requirements,
        profile.spread().to_vec(),
        profile.priority(),
        profile.interruption(),
        profile.reclamation(),
    )
}

/// `fold:` + `dim=milli` pairs joined by `,`, dims sorted (§4.2).
pub(crate) fn folded_group(unit: &Totals) -> String {
    let pairs: Vec<String> =
        unit.by_name().iter().map(|(name, milli)| format!("{name}={milli}")).collect();
    format!("fold:{}", pairs.join(","))
}

type ClassKey = (ClusterId, Fingerprint, Vec<(&'static str, i128)>);

impl Cycle<'_> {
    /// Folds the tier, the claims of higher tiers standing (§4.2). Folds are
    /// appended to `tier`.
    pub(crate) fn fold(&mut self, tier: &mut Vec<usize>) -> Folded {
        let mut planned: Vec<(usize, Vec<usize>)> = Vec::new();
        for gangs in self.classes(tier) {
            let gangs = self.class_order(gangs);
            let fold = self.class_need(&gangs);
            self.needs.push(fold);
            planned.push((self.needs.len() - 1, gangs));
        }
        planned.sort_by(|a, b| order::total(&self.needs[a.0], &self.needs[b.0]));
        tier.extend(planned.iter().map(|(fold, _)| *fold));

        let mut folded =
            Folded { folds: Vec::new(), members: BTreeSet::new(), used: BTreeSet::new() };
        for (fold, gangs) in planned {
            let gangs = self.place(tier, fold, gangs, &mut folded.used);
            if gangs.is_empty() {
                tier.retain(|need| *need != fold);
            } else {
                folded.folds.push(fold);
                folded.members.extend(gangs);
            }
        }
        folded
    }

    /// The tier's gangs that may fold, by (cluster, folded profile, aggregate).
    /// Of a mixed class the held ones stay out (§4.2, §4.3).
    fn classes(&self, tier: &[usize]) -> Vec<Vec<usize>> {
        let mut classes: BTreeMap<ClassKey, Vec<usize>> = BTreeMap::new();
        for gang in tier {
            let need = &self.needs[*gang];
            if need.same() && !need.aggregate.is_zero() && !self.served_by_parts(*gang) {
                let key = (
                    need.cluster.clone(),
                    folded_profile(&need.profile).fingerprint().clone(),
                    need.aggregate.by_name().to_vec(),
                );
                classes.entry(key).or_default().push(*gang);
            }
        }
        let held = |gang: &usize| self.needs[*gang].held.is_some();
        for gangs in classes.values_mut() {
            if !gangs.iter().all(held) {
                gangs.retain(|gang| !held(gang));
            }
        }
        classes.into_values().collect()
    }

    /// Own machines of one domain cover the gang together while none covers it
    /// alone (§4.2, who folds).
    fn served_by_parts(&self, gang: usize) -> bool {
        let need = &self.needs[gang];
        let mut domains: BTreeMap<Domain, (Totals, bool)> = BTreeMap::new();
        for machine in self.own(gang) {
            let machine = self.machine(machine);
            let Some(domain) = need.domain_of(machine) else { continue };
            let (together, alone) = domains.entry(domain).or_default();
            together.add_assign(machine.class.capacity());
            *alone |= machine.class.capacity().covers(&need.aggregate);
        }
        domains.values().any(|(together, alone)| together.covers(&need.aggregate) && !alone)
    }

    /// Single-unit gangs, then gangs owning a machine they fit whole, then gangs
    /// owning nothing, then gangs owning parts; each by §5 (§4.2).
    fn class_order(&self, mut gangs: Vec<usize>) -> Vec<usize> {
        let place = |gang: usize| {
            let need = &self.needs[gang];
            let own = self.own(gang);
            let fits =
                |machine: &usize| self.machine(*machine).class.capacity().covers(&need.aggregate);
            if !need.spanning() {
                0
            } else if own.iter().any(fits) {
                1
            } else if own.is_empty() {
                2
            } else {
                3
            }
        };
        gangs.sort_by(|a, b| {
            place(*a).cmp(&place(*b)).then_with(|| order::total(&self.needs[*a], &self.needs[*b]))
        });
        gangs
    }

    /// The plain need that stands for the gangs (§4.2).
    fn class_need(&self, gangs: &[usize]) -> Prepared {
        let of = |gang: &usize| &self.needs[*gang];
        let first = of(&gangs[0]);
        let arrivals = gangs.iter().map(|gang| of(gang).arrival).filter(|arrival| *arrival != 0);
        let held: Vec<NoAcquire> = gangs.iter().filter_map(|gang| of(gang).held).collect();
        Prepared {
            profile: Arc::new(folded_profile(&first.profile)),
            group: folded_group(&first.aggregate).into(),
            aggregate: first.aggregate.scale(gangs.len() as u64),
            min_unit: first.aggregate.clone(),
            arrival: arrivals.min().unwrap_or(0),
            members: gangs.iter().map(|gang| of(gang).key()).collect(),
            held: if held.len() < gangs.len() {
                None
            } else if held.contains(&NoAcquire::NoSession) {
                Some(NoAcquire::NoSession)
            } else {
                Some(NoAcquire::BootstrapRefused)
            },
            parked: false,
            age: 0,
            ..first.clone()
        }
    }

    /// Credits bound supply and plans the acquisition of one class; while it falls
    /// short its last spanning gang leaves. Returns who stays (§4.2).
    fn place(
        &mut self,
        tier: &[usize],
        fold: usize,
        mut gangs: Vec<usize>,
        used: &mut BTreeSet<usize>,
    ) -> Vec<usize> {
        while !gangs.is_empty() {
            self.needs[fold] = self.class_need(&gangs);
            let quiet = self.needs[fold].quiet();
            self.credit(tier, fold, Free::at_first(quiet));
            let plan = if quiet { Vec::new() } else { self.picks(fold, used).machines() };
            let mut machines = self.claims(fold);
            machines.extend(&plan);
            let short = !self.residual_with(fold, &machines).is_zero();
            let last = gangs.last().is_some_and(|gang| self.needs[*gang].spanning());
            if !(short && last) {
                used.extend(plan);
                return gangs;
            }
            for machine in self.claims(fold) {
                self.claimed_by[machine] = None;
            }
            gangs.pop();
        }
        gangs
    }
}
