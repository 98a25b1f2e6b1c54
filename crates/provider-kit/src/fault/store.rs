//! A store that fails when a cluster's name asks for it.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bigfleet_model::{MachineId, MachineState};
use tokio::time::Instant;

use crate::store::{Batch, State, Store, StoreError};

/// See the module's table.
const CLUSTER: &str = "fault-store";
const FAILS_FOR: Duration = Duration::from_secs(3);

/// Another store, and a way to make it fail.
pub struct FaultStore {
    inner: Arc<dyn Store>,
    asked: Mutex<Asked>,
}

#[derive(Default)]
struct Asked {
    fails_until: Option<Instant>,
    /// Bindings that have had their failure: a record may be written again.
    by: HashSet<(MachineId, Duration)>,
}

impl FaultStore {
    /// Over this one.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self { inner, asked: Mutex::default() }
    }
}

impl std::fmt::Debug for FaultStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FaultStore").finish_non_exhaustive()
    }
}

impl Store for FaultStore {
    fn load(&self) -> Result<State, StoreError> {
        self.inner.load()
    }

    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.fails_until.is_some_and(|until| Instant::now() < until) {
            return Err(StoreError::Other("it was asked to fail".to_owned()));
        }
        self.inner.commit(batch)?;
        for record in batch.records.iter().filter_map(|(_, record)| record.as_ref()) {
            let machine = &record.machine;
            let asks = machine.state == MachineState::Configured
                && machine.cluster.as_deref() == Some(CLUSTER);
            if asks && asked.by.insert((machine.id.clone(), record.since)) {
                asked.fails_until = Some(Instant::now() + FAILS_FOR);
            }
        }
        Ok(())
    }

    fn checkpoint(&self) -> Result<(), StoreError> {
        self.inner.checkpoint()
    }

    fn blocks(&self) -> bool {
        self.inner.blocks()
    }
}
