//! Writes of CapacityRequests' status: acknowledgements, whether a request is
//! understood, whether the fleet covers it.
//!
//! One at a time per request, each over what the last one left: the cache may be
//! older than our own last write, and a patch replaces the whole list of conditions.

mod plan;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bigfleet_crds::CapacityRequest;
use bigfleet_in_cluster::{Lane, ObjectKey, Paced, Store, refusal};
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use jiff::Timestamp;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use plan::Known;
pub use plan::Say;

use crate::rollup::{Projector, Request, Uid};

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Written.
    Written,
    /// Said already.
    Unchanged,
    /// The request has gone.
    Gone,
}

/// Writes status. Share it in an `Arc`.
#[derive(Debug)]
pub struct StatusWriter {
    paced: Paced,
    requests: Store<Request>,
    projector: Arc<Projector>,
    written: Mutex<HashMap<ObjectKey, Arc<Entry>, RandomState>>,
}

/// The writes of one request.
#[derive(Debug, Default)]
struct Entry {
    last: tokio::sync::Mutex<Option<Written>>,
}

/// What our last write left, until the cache shows it.
#[derive(Debug)]
struct Written {
    uid: Uid,
    known: Known,
}

impl StatusWriter {
    /// Nothing written yet.
    #[must_use]
    pub fn new(paced: Paced, requests: Store<Request>, projector: Arc<Projector>) -> Self {
        Self { paced, requests, projector, written: Mutex::default() }
    }

    /// The cache it writes over.
    #[must_use]
    pub const fn requests(&self) -> &Store<Request> {
        &self.requests
    }

    /// Says something of the request of this name and identity.
    pub async fn say(
        &self,
        key: &ObjectKey,
        uid: Uid,
        say: &Say,
        lane: Lane,
    ) -> Result<Outcome, kube::Error> {
        let entry = self.entries().entry_ref(key).or_default().clone();
        let mut last = entry.last.lock().await;
        let Some(known) = self.known(key, uid, last.as_ref()) else { return Ok(Outcome::Gone) };
        let Some(patch) = plan::plan(&known, say, Timestamp::now(), self.projector.texts()) else {
            return Ok(Outcome::Unchanged);
        };
        let namespace = key.namespace.as_deref().unwrap_or_default();
        let answer = self
            .paced
            .call(lane, |client| async move {
                Api::<CapacityRequest>::namespaced(client, namespace)
                    .patch_status(&key.name, &PatchParams::default(), &Patch::Merge(&patch))
                    .await
            })
            .await;
        match answer {
            Ok(object) => {
                let after = self.projector.project(&object);
                *last = Some(Written { uid: after.uid, known: Known::from(&after) });
                Ok(Outcome::Written)
            }
            Err(error) if refusal::code(&error) == Some(404) => Ok(Outcome::Gone),
            Err(error) => Err(error),
        }
    }

    /// The newer of what the cache shows and what we wrote.
    fn known(&self, key: &ObjectKey, uid: Uid, last: Option<&Written>) -> Option<Known> {
        let cached = self.requests.get(key).filter(|request| request.uid == uid)?;
        let written = last.filter(|last| last.uid == uid && last.known.version > cached.version);
        Some(written.map_or_else(|| Known::from(&*cached), |written| written.known.clone()))
    }

    /// Forgets writes that the cache shows by now.
    pub fn prune(&self) {
        let mut written = self.entries();
        written.retain(|key, entry| {
            // Whoever writes holds a clone.
            if Arc::strong_count(entry) > 1 {
                return true;
            }
            let Ok(last) = entry.last.try_lock() else { return true };
            let cached = self.requests.get(key);
            match (last.as_ref(), cached) {
                (Some(last), Some(cached)) => last.known.version > cached.version,
                _ => false,
            }
        });
    }

    /// Writes that the cache does not show yet.
    #[must_use]
    pub fn unseen(&self) -> usize {
        self.entries().len()
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<ObjectKey, Arc<Entry>, RandomState>> {
        // Every change is complete, so a poisoned lock guards good data.
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
