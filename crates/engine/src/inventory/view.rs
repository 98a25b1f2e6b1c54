//! A machine, to look at.

use std::sync::Arc;

use bigfleet_model::{Class, ClusterId, MachineState, Stamp};

use crate::{
    action::Action,
    engine::Engine,
    handle::MachineIx,
    input::{HeldBack, Time, Tracked},
};

/// A machine as it was last taken in. Looking at it copies nothing.
#[derive(Clone, Copy)]
pub struct MachineView<'e> {
    pub(super) engine: &'e Engine,
    pub(super) number: MachineIx,
}

impl<'e> MachineView<'e> {
    /// Stable for life.
    pub fn id(&self) -> &'e str {
        self.engine.world.machines.id(self.number)
    }

    /// As reported, whatever is pending.
    pub fn state(&self) -> MachineState {
        self.engine.world.machines.reported(self.number).state
    }

    /// Whom it is bound to, as reported.
    pub fn cluster(&self) -> Option<&'e ClusterId> {
        let cluster = self.engine.world.machines.reported(self.number).cluster;
        cluster.map(|cluster| &self.engine.world.names.clusters[cluster].id)
    }

    /// The cluster that it is bound to, or is being created for.
    pub fn association(&self) -> Option<&'e ClusterId> {
        let world = &self.engine.world;
        let cluster = world.association(&world.machines.reported(self.number));
        cluster.map(|cluster| &world.names.clusters[cluster].id)
    }

    /// The stamp that it carries, as reported and as cycles renewed it.
    pub fn stamp(&self) -> Option<Stamp> {
        let world = &self.engine.world;
        let stamp = world.machines.reported(self.number).stamp?;
        Some(world.names.stamp_text(stamp))
    }

    /// What it shares with others like it.
    pub fn class(&self) -> &'e Arc<Class> {
        let world = &self.engine.world;
        &world.classes[world.machines.rows[self.number].class].class
    }

    /// Provider and reference, once it has a host.
    pub fn host(&self) -> Option<(&'e str, &'e str)> {
        self.engine.world.machines.host(self.number)
    }

    /// Non-empty if failed.
    pub fn last_error(&self) -> &'e str {
        self.engine.world.machines.errors.get(&self.number).map_or("", |error| error)
    }

    /// What is queued or executing for it.
    pub fn pending(&self) -> &'e [Action] {
        self.engine.world.machines.pending.get(&self.number).map_or(&[], |actions| actions)
    }

    /// Why it cannot be acquired now, if so.
    pub fn held_back(&self) -> Option<HeldBack> {
        self.engine.world.machines.rows[self.number].held_back
    }

    /// When it last became idle.
    pub fn idle_since(&self) -> Option<Time> {
        self.engine.world.machines.idle_since.get(&self.number).copied()
    }

    /// A copy of everything.
    pub fn tracked(&self) -> Tracked {
        self.engine.tracked_at(self.number)
    }
}
