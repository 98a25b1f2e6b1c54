//! A world to try something on.

use std::collections::BTreeSet;

use super::World;

impl World {
    /// All that decides how needs fare: ids, hosts, what is reported behind pending
    /// actions, and what lies idle for how long are left out. Rows keep their numbers.
    pub(crate) fn for_a_cycle(&self) -> Self {
        Self {
            names: self.names.clone(),
            classes: self.classes.clone(),
            class_index: self.class_index.clone(),
            topologies: self.topologies.clone(),
            profiles: self.profiles.clone(),
            profile_numbers: self.profile_numbers.clone(),
            unranked_profiles: self.unranked_profiles,
            pools: self.pools.clone(),
            pool_numbers: self.pool_numbers.clone(),
            machines: self.machines.for_a_cycle(),
            runs: self.runs.clone(),
            run_numbers: self.run_numbers.clone(),
            free_runs: self.free_runs.clone(),
            last_run: self.last_run,
            needs: self.needs.clone(),
            free_needs: self.free_needs.clone(),
            gangs: self.gangs.clone(),
            gang_numbers: self.gang_numbers.clone(),
            loose_gangs: self.loose_gangs.clone(),
            free_gangs: self.free_gangs.clone(),
            unfolded: self.unfolded,
            largest_fold: self.largest_fold.clone(),
            folding_changed: self.folding_changed,
            roll_ups: self.roll_ups,
            moved: self.moved.clone(),
            queue: self.queue.clone(),
            unready: self.unready.clone(),
            drains: self.drains.clone(),
            drains_for: self.drains_for.clone(),
            idle: BTreeSet::new(),
            open_runs: self.open_runs,
            elsewhere: super::association::Elsewhere::default(),
            withheld: self.withheld,
            outgrown: self.outgrown.clone(),
            returns: self.returns,
            claim_digests: self.claim_digests.clone(),
            view: self.view,
        }
    }
}
