//! Gangs that may fold (§4.2), by what makes them alike.

use bigfleet_model::{Dimension, Group, Totals};

use super::{Constraint, GangRow, PoolKey, Prepared, World, demand::blank};
use crate::handle::{ClusterIx, GroupIx, PreparedIx, ProfileIx};

/// Cluster, folded profile and size.
pub(super) type GangId = (ClusterIx, ProfileIx, Totals);

impl World {
    /// Lets gangs fold, or keeps them from it.
    pub(crate) fn set_folding(&mut self, folding: bool) {
        let unfolded = !folding;
        if std::mem::replace(&mut self.unfolded, unfolded) == unfolded {
            return;
        }
        let needs: Vec<PreparedIx> = self.needs.handles().collect();
        for need in needs {
            let row = &self.needs[need];
            if !row.removed && row.constraint == Constraint::Same {
                self.touch(need);
                self.leave_gangs(need);
                self.join_gangs(need);
                self.touch(need);
            }
        }
    }

    /// Lets gangs that fitted no machine fold if they fit one that has come.
    pub(crate) fn reconsider_gangs(&mut self) {
        for key in std::mem::take(&mut self.names.fold_stamps) {
            if let Some(unit) = unit_of(self.names.group(key)) {
                self.folding_changed |= !self.largest_fold.covers(&unit);
                self.largest_fold = self.largest_fold.max(&unit);
            }
        }
        if !std::mem::take(&mut self.folding_changed) || self.unfolded {
            return;
        }
        let needs: Vec<PreparedIx> = self.needs.handles().collect();
        for need in needs {
            let row = &self.needs[need];
            if !row.removed && row.gangs.is_none() && self.may_fold(row) {
                self.touch(need);
                self.leave_gangs(need);
                self.join_gangs(need);
                self.touch(need);
            }
        }
    }

    /// Whether a gang may fold. One that is larger than what its units fit never does,
    /// for its fold would find and own nothing; but a single unit always folds.
    fn may_fold(&self, gang: &Prepared) -> bool {
        let (wanted, pool) = (&gang.aggregate, &self.pools[gang.pool]);
        gang.constraint == Constraint::Same
            && !wanted.is_zero()
            && (pool.largest.covers(wanted)
                || self.largest_fold.covers(wanted)
                || pool.key.unit.covers(wanted)
                || !wanted.covers(&pool.key.unit))
    }

    /// What makes gangs alike; none of what is no gang, or wants nothing.
    fn gang_id(&mut self, number: PreparedIx) -> Option<GangId> {
        let row = &self.needs[number];
        if row.constraint != Constraint::Same || row.aggregate.is_zero() {
            return None;
        }
        let (cluster, gang, unit) = (row.cluster, row.profile, row.aggregate.clone());
        Some((cluster, self.folded_profile(gang), unit))
    }

    /// Gangs that want something may fold with their like (§4.2). As long as none of
    /// them may, each is decided by itself.
    pub(super) fn join_gangs(&mut self, number: PreparedIx) {
        let Some(id) = self.gang_id(number).filter(|_| !self.unfolded) else { return };
        if let Some(known) = self.gang_numbers.get(&id) {
            return self.enter(number, *known);
        }
        if !self.may_fold(&self.needs[number]) {
            self.loose_gangs.entry(id).or_default().push(number);
            return;
        }
        let loose = self.loose_gangs.remove(&id).unwrap_or_default();
        let gangs = self.form_gangs(id);
        self.enter(number, gangs);
        for other in loose {
            self.touch(other);
            self.enter(other, gangs);
            self.touch(other);
        }
    }

    /// Those who may fold are decided as one, and keep nothing meanwhile.
    fn enter(&mut self, number: PreparedIx, gangs: GroupIx) {
        self.start_afresh(number);
        self.gangs[gangs].members.push(number);
        self.needs[number].gangs = Some(gangs);
    }

    fn form_gangs(&mut self, id: GangId) -> GroupIx {
        let (cluster, profile, unit) = id.clone();
        let group = Group::from(unit_text(&unit));
        let fingerprint = self.fingerprint(profile).clone();
        let key = self.names.key(&fingerprint, &group);
        let account = self.names.account(cluster, key);
        let requirements = self.profiles[profile].profile.requirements().to_vec();
        let pool = self.pool(PoolKey { requirements, unit, folded: true, topology: None });
        let fold = self.add(blank(Constraint::Folded, cluster, profile, account, pool, key));
        let row = GangRow {
            members: Vec::new(),
            fold,
            folded: Vec::new(),
            settled: false,
            queued: false,
        };
        let gangs = match self.free_gangs.pop() {
            Some(number) => {
                let queued = self.gangs[number].queued;
                self.gangs[number] = GangRow { queued, ..row };
                number
            }
            None => self.gangs.push(row),
        };
        self.needs[fold].gangs = Some(gangs);
        self.gang_numbers.insert(id, gangs);
        gangs
    }

    pub(super) fn leave_gangs(&mut self, number: PreparedIx) {
        self.needs[number].folded_into = None;
        let Some(gangs) = self.needs[number].gangs.take() else {
            return self.leave_loose(number);
        };
        self.gangs[gangs].members.retain(|known| *known != number);
        if self.gangs[gangs].members.is_empty() {
            let fold = self.gangs[gangs].fold;
            self.release(fold);
            self.gangs[gangs].folded.clear();
            let row = &mut self.needs[fold];
            row.removed = true;
            let account = row.account;
            let id = (row.cluster, row.profile, self.pools[row.pool].key.unit.clone());
            self.names.accounts[account].fold = None;
            self.gang_numbers.remove(&id);
            self.free_gangs.push(gangs);
            self.free_needs.push(fold);
        }
    }

    fn leave_loose(&mut self, number: PreparedIx) {
        let Some(id) = self.gang_id(number) else { return };
        if let Some(alike) = self.loose_gangs.get_mut(&id) {
            alike.retain(|known| *known != number);
            if alike.is_empty() {
                self.loose_gangs.remove(&id);
            }
        }
    }
}

/// What the group of a fold begins with.
pub(super) const FOLD: &str = "fold:";

/// `fold:` and `dimension=milli` pairs by name.
fn unit_text(unit: &Totals) -> String {
    let pairs: Vec<String> =
        unit.by_name().iter().map(|(name, millis)| format!("{name}={millis}")).collect();
    format!("{FOLD}{}", pairs.join(","))
}

/// What [`unit_text`] was made of; none of any other text.
fn unit_of(group: &Group) -> Option<Totals> {
    let pairs = group.as_str().strip_prefix(FOLD)?.split(',');
    pairs
        .map(|pair| {
            let (name, millis) = pair.rsplit_once('=')?;
            Some((Dimension::intern(name).ok()?, millis.parse().ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_a_fold_tells_its_unit() {
        let unit: Totals = [(Dimension::CPU, 1500), (Dimension::MEMORY, 3)].into_iter().collect();
        assert_eq!(unit_of(&Group::from(unit_text(&unit))), Some(unit));
        for foreign in ["", "fold:", "fold:cpu", "fold:cpu=x", "cpu=1"] {
            assert_eq!(unit_of(&Group::from(foreign)), None, "{foreign:?}");
        }
    }
}
