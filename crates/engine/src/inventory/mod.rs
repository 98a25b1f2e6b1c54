//! The engine as its shard's inventory: machines as they were last taken in, with
//! the stamps that cycles gave them. Nothing here changes anything, and what came in
//! since the last cycle shows.

mod census;
mod compare;
mod view;

use std::{cmp::Ordering, sync::Arc};

use bigfleet_model::{ClusterId, MachineId, Stamp};

pub use census::{Census, Count};
pub use compare::{Comparer, Comparison, Seen};
pub use view::MachineView;

use crate::{
    engine::Engine,
    handle::MachineIx,
    input::{NeedKey, Tracked},
};

impl Engine {
    /// A machine as it was last taken in, with its stamp as cycles renewed it.
    /// Whatever is pending for it does not show.
    pub fn tracked(&self, id: &str) -> Option<Tracked> {
        self.world.machines.find(id).map(|number| self.tracked_at(number))
    }

    /// A machine, to look at without a copy.
    pub fn view(&self, id: &str) -> Option<MachineView<'_>> {
        self.world.machines.find(id).map(|number| MachineView { engine: self, number })
    }

    /// The stamp that a machine carries, or will once what is pending for it is done:
    /// as the last cycle renewed it.
    pub fn stamp_on(&self, id: &str) -> Option<Arc<Stamp>> {
        let number = self.world.machines.find(id)?;
        let stamp = self.world.machines.rows[number].stamp?;
        Some(Arc::new(self.world.names.stamp_text(stamp)))
    }

    /// The need, as sent, that the last cycle counts a machine for. Where several
    /// gangs share it, the first of them. Ask a [`crate::Reader`] about many.
    pub fn claimant(&self, id: &str) -> Option<NeedKey> {
        self.reader().claimant(id)
    }

    /// Machines that are bound to a cluster, in whatever state, and those that are
    /// being created for it, by id. Looks at no other machine but those that changed
    /// since the last cycle.
    pub fn machines_of(&self, cluster: &ClusterId) -> Vec<MachineId> {
        let Some(cluster) = self.world.names.known_cluster(cluster) else { return Vec::new() };
        let mut found = Vec::new();
        self.world.each_of(cluster, |number| found.push(self.world.machines.id(number).into()));
        found.sort_unstable();
        found
    }

    /// How many machines of a cluster are reported as Configured. Counted already.
    pub fn configured_in(&self, cluster: &ClusterId) -> usize {
        let known = self.world.names.known_cluster(cluster);
        known.map_or(0, |cluster| self.world.names.clusters[cluster].configured as usize)
    }

    /// Whether a cluster has reported a roll-up that the engine was given.
    pub fn is_ready(&self, cluster: &ClusterId) -> bool {
        let known = self.world.names.known_cluster(cluster);
        known.is_some_and(|cluster| self.world.names.clusters[cluster].ready)
    }

    /// Ids of all machines after one, or from the first, in order. Takes a search to
    /// begin with, and sorts those that came since the last cycle.
    pub fn ids_after<'e>(&'e self, after: Option<&str>) -> impl Iterator<Item = &'e str> + use<'e> {
        self.views_after(after).map(|view| view.id())
    }

    /// Machines by id, like [`Self::ids_after`].
    pub fn views_after<'e>(
        &'e self,
        after: Option<&str>,
    ) -> impl Iterator<Item = MachineView<'e>> + use<'e> {
        let machines = &self.world.machines;
        let is_after = |number: &MachineIx| after.is_none_or(|after| machines.id(*number) > after);
        let is_live = |number: &MachineIx| !machines.rows[*number].removed;
        let first = machines.sorted.partition_point(|number| !is_after(number));
        let mut old = machines.sorted[first..].iter().copied().filter(is_live).peekable();
        // They have no place in the order yet.
        let fresh = machines.fresh.iter().copied().filter(|one| is_live(one) && is_after(one));
        let mut fresh: Vec<MachineIx> = fresh.collect();
        fresh.sort_unstable_by(|a, b| machines.id(*a).cmp(machines.id(*b)));
        let mut fresh = fresh.into_iter().peekable();
        std::iter::from_fn(move || {
            let order = match (old.peek(), fresh.peek()) {
                (Some(old), Some(fresh)) => machines.id(*old).cmp(machines.id(*fresh)),
                (_, None) => Ordering::Less,
                (None, _) => Ordering::Greater,
            };
            if order.is_lt() { old.next() } else { fresh.next() }
        })
        .map(move |number| MachineView { engine: self, number })
    }
}
