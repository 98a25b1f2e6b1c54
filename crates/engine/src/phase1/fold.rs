//! Folding of gangs that fit a machine (§4.2): many of them share machines, and
//! one that fits a machine is co-located for free.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_model::Totals;

use super::{
    Phase1, Reach,
    acquire::{Used, plan},
    prepared::{Constraint, Prepared},
};
use crate::{
    input::NoAcquire,
    world::{DomainId, Key},
};

/// Gangs of one tier that may become one need.
struct Group {
    cluster: usize,
    /// The folded one.
    profile: usize,
    text: String,
    unit: Totals,
    /// Needs, in the order in which they get a place; the last leave first.
    members: Vec<usize>,
    held: bool,
}

/// How a gang stands in its group: singles never leave it, and who owns parts
/// leaves first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Single,
    OwnsWhole,
    OwnsNothing,
    OwnsParts,
}

impl Phase1<'_, '_> {
    /// Folds what can be folded among `needs`, the rows of one tier. Returns the
    /// folds, credited, and what they plan to acquire.
    pub(super) fn fold(&mut self, needs: &[usize]) -> (Vec<Prepared>, Used) {
        let mut groups = self.groups(needs);
        for group in &groups {
            self.own_fold_key(group, true);
        }
        groups.sort_by(|a, b| self.group_order(a, b));
        let (mut folds, mut used) = (Vec::new(), Used::new());
        for mut group in groups {
            match self.settle(&mut group, &mut used) {
                Some(fold) => folds.push(Prepared { turn: folds.len(), ..fold }),
                None => self.own_fold_key(&group, false),
            }
        }
        (folds, used)
    }

    /// A fold owns what carries its own stamp, as any need of the tier.
    fn own_fold_key(&mut self, group: &Group, owns: bool) {
        if let Some(key) = self.fold_key(group) {
            if owns {
                self.owners.insert((group.cluster, key));
            } else {
                self.owners.remove(&(group.cluster, key));
            }
        }
    }

    fn fold_key(&self, group: &Group) -> Option<Key> {
        self.world.names.known_key(self.world.fingerprint(group.profile), &group.text)
    }

    fn groups(&mut self, needs: &[usize]) -> Vec<Group> {
        let mut groups: BTreeMap<(usize, usize, String), Vec<usize>> = BTreeMap::new();
        for &number in needs {
            let row = &self.world.needs[number];
            let (cluster, profile) = (row.cluster, row.profile);
            let aggregate = &self.world.need(number).aggregate;
            let gang = self.world.profiles.row(profile).is_gang();
            if !gang || aggregate.is_zero() || self.is_served_across_machines(number) {
                continue;
            }
            let folded = self.world.profiles.folded(profile, &self.world.classes);
            groups.entry((cluster, folded, unit_text(aggregate))).or_default().push(number);
        }
        let group = |((cluster, profile, text), mut members): ((_, _, _), Vec<usize>)| {
            let is_held = |number: &usize| self.world.needs[*number].held.is_some();
            let held = members.iter().all(is_held);
            if !held {
                // Held gangs of a mixed group stay ordinary needs.
                members.retain(|number| !is_held(number));
            }
            members.sort_by_key(|number| (self.standing(*number), *number));
            let unit = self.world.need(members[0]).aggregate.clone();
            Group { cluster, profile, text, unit, members, held }
        };
        groups.into_iter().map(group).collect()
    }

    /// The serving order of the folds.
    fn group_order(&self, a: &Group, b: &Group) -> std::cmp::Ordering {
        let world = &self.world;
        self.earliest(&a.members)
            .cmp(&self.earliest(&b.members))
            .then_with(|| a.cluster.cmp(&b.cluster))
            .then_with(|| world.fingerprint(a.profile).cmp(world.fingerprint(b.profile)))
            .then_with(|| a.text.cmp(&b.text))
    }

    /// Earliest known arrival of several needs.
    fn earliest(&self, members: &[usize]) -> i64 {
        let arrival =
            |number: &usize| Some(self.world.need(*number).arrival).filter(|arrival| *arrival != 0);
        members.iter().filter_map(arrival).min().unwrap_or(0)
    }

    /// Credits and plans; while the group falls short its last spanning gang
    /// leaves it and stays an ordinary need.
    fn settle(&mut self, group: &mut Group, used: &mut Used) -> Option<Prepared> {
        loop {
            if group.members.is_empty() {
                return None;
            }
            let mut fold = self.prepare_fold(group);
            self.credit(&mut fold, Reach::at_first(group.held));
            let plan = if group.held { Default::default() } else { plan(self.world, &fold, used) };
            let mut covered = fold.covered.clone();
            for pick in &plan.picks {
                let class = self.world.runs[pick.run].class;
                covered.add_assign(fold.contribution(self.world.capacity(class)).as_ref());
            }
            let leaver = group
                .members
                .iter()
                .rposition(|number| self.is_spanning(*number))
                .filter(|_| !covered.covers(&fold.aggregate));
            match leaver {
                Some(at) => {
                    self.uncredit(&mut fold);
                    group.members.remove(at);
                }
                None => {
                    plan.use_up(used);
                    return Some(fold);
                }
            }
        }
    }

    fn prepare_fold(&self, group: &Group) -> Prepared {
        let mut members = group.members.clone();
        members.sort_unstable();
        let keys: BTreeSet<Key> =
            members.iter().map(|number| self.world.needs[*number].key).collect();
        Prepared {
            constraint: Constraint::Folded,
            cluster: group.cluster,
            profile: group.profile,
            identity: self.fold_key(group),
            own: keys.into_iter().chain(self.fold_key(group)).collect(),
            fold_group: group.text.clone(),
            arrival: self.earliest(&members),
            aggregate: group.unit.scale(members.len() as u64),
            unit: group.unit.clone(),
            held: if group.held { self.hold_of(&members) } else { None },
            members,
            ..Prepared::default()
        }
    }

    /// Why a held fold is held: no session comes before a refusal, as in the order
    /// of details.
    fn hold_of(&self, members: &[usize]) -> Option<NoAcquire> {
        let holds = || members.iter().filter_map(|number| self.world.needs[*number].held);
        holds().find(|why| *why == NoAcquire::NoSession).or_else(|| holds().next())
    }

    /// `min_unit` does not cover the aggregate.
    fn is_spanning(&self, number: usize) -> bool {
        let need = self.world.need(number);
        !need.min_unit.covers(&need.aggregate)
    }

    fn standing(&self, number: usize) -> Standing {
        if !self.is_spanning(number) {
            return Standing::Single;
        }
        let aggregate = &self.world.need(number).aggregate;
        let own = self.own_classes(number);
        if own.is_empty() {
            Standing::OwnsNothing
        } else if own.iter().any(|(class, _)| self.world.capacity(*class).covers(aggregate)) {
            Standing::OwnsWhole
        } else {
            Standing::OwnsParts
        }
    }

    /// Its own machines of one domain cover it together while none covers it
    /// alone: folding would evict it.
    fn is_served_across_machines(&self, number: usize) -> bool {
        let row = &self.world.needs[number];
        let aggregate = &self.world.need(number).aggregate;
        let profile = self.world.profiles.row(row.profile);
        let mut domains: BTreeMap<DomainId, (Totals, bool)> = BTreeMap::new();
        for (class, count) in self.own_classes(number) {
            let Some(domain) = profile.same[class] else { continue };
            let (sum, alone) = domains.entry(domain).or_default();
            sum.add_assign(&self.world.capacity(class).scale(count as u64));
            *alone |= self.world.capacity(class).covers(aggregate);
        }
        domains.values().any(|(sum, alone)| !alone && sum.covers(aggregate))
    }

    /// Classes and numbers of the unclaimed machines that a gang owns and can use.
    fn own_classes(&self, number: usize) -> Vec<(usize, usize)> {
        let row = &self.world.needs[number];
        let min_unit = &self.world.need(number).min_unit;
        let profile = self.world.profiles.row(row.profile);
        let own = |number: &&usize| {
            let run = &self.world.runs[**number];
            run.free() > 0
                && self.world.machines[run.sample].key == Some(row.key)
                && profile.matches[run.class]
                && self.world.capacity(run.class).covers(min_unit)
        };
        self.world.bound[row.cluster]
            .iter()
            .filter(own)
            .map(|number| (self.world.runs[*number].class, self.world.runs[*number].free()))
            .collect()
    }
}

/// `fold:` and `dimension=milli` pairs by name.
fn unit_text(unit: &Totals) -> String {
    let pairs: Vec<String> =
        unit.by_name().iter().map(|(name, millis)| format!("{name}={millis}")).collect();
    format!("fold:{}", pairs.join(","))
}
