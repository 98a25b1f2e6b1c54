//! Everything that a cycle decides from, in dense form: numbers instead of text,
//! machines that differ only in id as one, and what follows from both kept up to
//! date as things change.

mod alike;
mod association;
mod claim;
mod class;
mod copy;
mod demand;
mod digest;
mod gangs;
mod machine;
mod names;
mod outgrown;
mod pool;
mod prepared;
mod profile;
mod run;
mod seat;
mod shelf;
mod supply;
mod texts;
mod topology;
mod wait;

use std::sync::Arc;

use bigfleet_model::{Class, Fingerprint, Group, Profile, Totals};
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashTable};
use smallvec::SmallVec;

pub(crate) use alike::Supply;
pub(crate) use class::{ClassIndex, ClassRow, UnboundRuns};
pub(crate) use demand::Turn;
pub(crate) use machine::{DrainEnd, DrainRow, Hidden, MachineRow, Machines};
pub(crate) use names::{ClusterRow, Names};
pub(crate) use pool::{PoolKey, PoolRow, RankRow};
pub(crate) use prepared::{GangRow, Looked, Pick, Prepared, lowers};
pub(crate) use profile::{Constraint, Precedence, ProfileRow};
pub(crate) use run::{Few, KeepLevel, Place, RunKind, RunRow};
pub(crate) use topology::{Topologies, TopologyRow};

use crate::{
    handle::{
        AccountIx, ClassIx, ClusterIx, Column, DomainIx, GroupIx, MachineIx, PoolIx, PreparedIx,
        ProfileIx, RunIx, StampIx,
    },
    input::Time,
};

/// See the module's head.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) names: Names,
    pub(crate) classes: Column<ClassIx, ClassRow>,
    class_index: ClassIndex,
    pub(crate) topologies: Topologies,
    pub(crate) profiles: Column<ProfileIx, ProfileRow>,
    profile_numbers: HashMap<Fingerprint, ProfileIx, FixedState>,
    unranked_profiles: bool,
    pub(crate) pools: Column<PoolIx, PoolRow>,
    pool_numbers: HashMap<PoolKey, PoolIx, FixedState>,
    pub(crate) machines: Machines,
    pub(crate) runs: Column<RunIx, RunRow>,
    run_numbers: HashTable<RunIx>,
    free_runs: Vec<RunIx>,
    /// The run that was found last.
    last_run: Option<RunIx>,
    pub(crate) needs: Column<PreparedIx, Prepared>,
    free_needs: Vec<PreparedIx>,
    pub(crate) gangs: Column<GroupIx, GangRow>,
    gang_numbers: HashMap<gangs::GangId, GroupIx, FixedState>,
    /// Gangs that cannot fold, of sizes of which none can.
    loose_gangs: HashMap<gangs::GangId, SmallVec<[PreparedIx; 2]>, FixedState>,
    free_gangs: Vec<GroupIx>,
    /// Gangs stay what they are even where they fit a machine.
    unfolded: bool,
    /// Per dimension the largest unit of a fold that a machine was stamped for.
    largest_fold: Totals,
    /// Gangs that did not fold may now.
    folding_changed: bool,
    /// Roll-ups taken in so far.
    roll_ups: u32,
    /// Machines whose run may no longer be right.
    moved: Vec<MachineIx>,
    /// What has to be decided in the next cycle.
    pub(crate) queue: Vec<Unit>,
    /// Needs that may count on machines that are not Configured yet.
    pub(crate) unready: Vec<PreparedIx>,
    /// Drains by machine, in numbers.
    pub(crate) drains: HashMap<MachineIx, DrainRow, FixedState>,
    /// Machines that drain for a need, by whom it is.
    pub(crate) drains_for: HashMap<AccountIx, Vec<MachineIx>, FixedState>,
    /// Idle machines that may be given back, by the time since when they idle.
    pub(crate) idle: std::collections::BTreeSet<(Time, MachineIx)>,
    /// Runs of bound machines of which some are unclaimed, of all clusters.
    pub(crate) open_runs: u32,
    /// Machines of clusters that are in none of their runs.
    elsewhere: association::Elsewhere,
    /// Machines that are held back.
    pub(crate) withheld: u32,
    /// Machines that needs outgrew and still run on, as the last cycle saw it; by
    /// machine once it has ended.
    pub(crate) outgrown: Vec<(MachineIx, PreparedIx)>,
    /// How often a plan gave something back.
    pub(crate) returns: u32,
    /// Digests of who claims what.
    claim_digests: digest::ClaimDigests,
    /// Changes whenever cursors of acquirable runs start anew.
    pub(crate) view: u32,
}

/// What makes machines one run: kind, class, cluster, stamp.
type RunId = (RunKind, ClassIx, Option<ClusterIx>, Option<StampIx>);

/// What is decided at once: a need, or gangs that may fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Need(PreparedIx),
    Gangs(GroupIx),
}

impl World {
    pub(crate) fn class(&mut self, class: &Arc<Class>) -> ClassIx {
        if let Some(known) = self.class_index.find(class, &self.classes) {
            return known;
        }
        let number = crate::handle::Handle::at(self.classes.len());
        let mut run = |kind| self.runs.push(RunRow::new(kind, number, None, None, None));
        let unbound = UnboundRuns {
            acquirable: RunKind::ACQUIRABLE.map(&mut run),
            draining: run(RunKind::Draining),
            withheld: [run(RunKind::ProviderFailing), run(RunKind::Quota)],
        };
        self.classes.push(ClassRow::new(class.clone(), unbound));
        self.class_index.insert(number, &self.classes);
        self.topologies.learn(class);
        for pool in self.pools.rows_mut() {
            self.folding_changed |= pool.learn(&self.classes);
        }
        number
    }

    /// The number of a profile that was met before.
    pub(crate) fn profile_number(&self, fingerprint: &Fingerprint) -> Option<ProfileIx> {
        self.profile_numbers.get(fingerprint).copied()
    }

    pub(crate) fn profile(&mut self, profile: &Arc<Profile>) -> ProfileIx {
        if let Some(known) = self.profile_numbers.get(profile.fingerprint()) {
            return *known;
        }
        let keys = profile::topology_keys(profile);
        let classes = self.classes.iter().map(|(_, row)| &*row.class);
        let topology = (!keys.is_empty()).then(|| self.topologies.intern(keys, classes));
        let number = self.profiles.push(ProfileRow::new(profile.clone(), topology));
        self.profile_numbers.insert(profile.fingerprint().clone(), number);
        self.unranked_profiles = true;
        number
    }

    /// The profile that a gang's profile folds into.
    fn folded_profile(&mut self, gang: ProfileIx) -> ProfileIx {
        if let Some(known) = self.profiles[gang].folded {
            return known;
        }
        let folded = Arc::new(self.profiles[gang].profile.folded());
        let number = self.profile(&folded);
        self.profiles[gang].folded = Some(number);
        number
    }

    fn pool(&mut self, key: PoolKey) -> PoolIx {
        if let Some(known) = self.pool_numbers.get(&key) {
            return *known;
        }
        let mut row = PoolRow::new(key.clone());
        row.learn(&self.classes);
        let number = self.pools.push(row);
        self.pool_numbers.insert(key, number);
        number
    }

    /// Places of clusters and fingerprints in the order of their texts.
    pub(crate) fn rank_names(&mut self) {
        self.names.rank();
        if std::mem::take(&mut self.unranked_profiles) {
            let mut order: Vec<ProfileIx> = self.profiles.handles().collect();
            order.sort_unstable_by(|a, b| self.fingerprint(*a).cmp(self.fingerprint(*b)));
            for (rank, profile) in order.into_iter().enumerate() {
                self.profiles[profile].rank = rank as u32;
            }
        }
    }

    pub(crate) fn fingerprint(&self, profile: ProfileIx) -> &Fingerprint {
        self.profiles[profile].profile.fingerprint()
    }

    pub(crate) fn precedence(&self, need: PreparedIx) -> Precedence {
        self.profiles[self.needs[need].profile].precedence
    }

    pub(crate) fn priority(&self, need: PreparedIx) -> i32 {
        self.profiles[self.needs[need].profile].profile.priority()
    }

    /// Topology of a need's domains.
    pub(crate) fn topology(&self, need: &Prepared) -> Option<&TopologyRow> {
        self.pools[need.pool].key.topology.map(|topology| self.topologies.row(topology))
    }

    /// Domain of a class as a need sees it.
    pub(crate) fn domain(&self, need: &Prepared, class: ClassIx) -> Option<DomainIx> {
        self.topology(need)?.of_class(class)
    }

    /// Requirements hold and the unit fits; a gang looks only into its domain.
    pub(crate) fn usable(&self, need: &Prepared, class: ClassIx) -> bool {
        self.pools[need.pool].has(class)
            && (need.constraint != Constraint::Same
                || need.domain.is_none()
                || self.domain(need, class) == need.domain)
    }

    /// Gangs that a fold serves, in serving order; none of what is no fold.
    pub(crate) fn folded(&self, need: &Prepared) -> &[PreparedIx] {
        match need.gangs.filter(|_| need.is_fold() && !need.removed) {
            Some(gangs) => &self.gangs[gangs].folded,
            None => &[],
        }
    }

    pub(crate) fn group(&self, need: &Prepared) -> &Group {
        self.names.group(need.key)
    }

    /// Whether a need holds nothing but its own machines, and has not been decided
    /// in this pass.
    pub(crate) fn is_settled(&self, need: PreparedIx) -> bool {
        let row = &self.needs[need];
        row.gangs.map_or(row.settled || row.kept, |gangs| self.gangs[gangs].settled)
    }

    /// The need or fold that owns an account's machines in the eyes of its tier.
    pub(crate) fn owner(&self, account: AccountIx) -> Option<PreparedIx> {
        let row = &self.names.accounts[account];
        row.need.filter(|need| !self.needs[*need].aggregate.is_zero()).or(row.fold)
    }
}
