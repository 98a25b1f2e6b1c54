//! Provider truth: what it lists is what there is (§9). The reconciler reads and
//! decodes beside the cycle and leaves out what is known; the cycle merges the
//! rest.

mod merge;
mod pace;
mod read;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bigfleet_model::{Machine, MachineId};
use bigfleet_provider::RefusedRecord;
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

#[cfg(feature = "bench")]
pub(crate) use pace::Reader;
pub(crate) use pace::run;

use crate::{
    live::Begun,
    shared::{InForce, Neighbours},
};

/// What one read of the provider told, without what was known already.
#[derive(Debug)]
pub(crate) struct Batch {
    begun: Begun,
    records: Vec<Machine>,
    refused: Vec<RefusedRecord>,
    /// Of a full List: machines that it lacks, and of how many.
    missing: Option<Missing>,
    /// Records left out are not told again: read them one by one.
    incremental: bool,
    /// Machines that a `Get` did not find.
    not_found: Vec<MachineId>,
    /// It was a List, so that the inventory is as old as it.
    list: bool,
    /// More of the same read follows.
    more: bool,
    /// What was ours when it began, of a shared provider.
    owned: Option<Arc<InForce>>,
    /// Of a List that ends with this: what it told of machines that are not.
    neighbours: Option<Neighbours>,
}

/// Machines that a full List lacks.
#[derive(Debug, Default)]
pub(crate) struct Missing {
    ids: Vec<MachineId>,
    known: usize,
}

/// The reconciler's side of what it shares with the cycle.
pub(crate) struct Reconciler {
    /// Read, not yet merged, oldest first.
    ready: Mutex<Vec<Batch>>,
    /// A List is under way.
    listing: watch::Sender<bool>,
    soon: Notify,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// When the last merged List began.
    last_good: Option<Instant>,
    /// When it was merged, in unix nanoseconds.
    last_good_wall: i64,
    /// Machines that full Lists lacked, and how many of these in a row.
    suspects: Vec<MachineId>,
    agreeing: u32,
    /// When the cycle fires next.
    next_tick: Option<Instant>,
}

impl Reconciler {
    pub(crate) fn new() -> Self {
        Self {
            ready: Mutex::default(),
            listing: watch::Sender::new(false),
            soon: Notify::new(),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ready(&self) -> MutexGuard<'_, Vec<Batch>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something is under way: look before the next cycle is due.
    pub(crate) fn look_soon(&self) {
        self.soon.notify_one();
    }

    /// The cycle says when it fires next, so that a List ends by then.
    pub(crate) fn expect_tick(&self, at: Instant) {
        self.state().next_tick = Some(at);
    }

    /// Waits until no List is under way; the caller sets the bound.
    pub(crate) async fn idle(&self) {
        let mut listing = self.listing.subscribe();
        // The sender lives as long as we do.
        drop(listing.wait_for(|listing| !listing).await);
    }

    /// When the last List that was taken in began.
    pub(crate) fn last_good(&self) -> Option<Instant> {
        self.state().last_good
    }

    /// When the last List was taken in, in unix nanoseconds; 0 if none was.
    pub(crate) fn last_good_wall(&self) -> i64 {
        self.state().last_good_wall
    }

    /// Machines whose removal waits for more Lists to agree.
    pub(crate) fn removals_held(&self) -> usize {
        self.state().suspects.len()
    }
}
