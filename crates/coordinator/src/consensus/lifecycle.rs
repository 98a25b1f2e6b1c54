//! How a replica begins, enters a fleet, forgets it, and is done with it.

use std::sync::{Arc, PoisonError};

use bigfleet_model::FleetId;

use super::{
    handle::{Shared, StartError},
    lease::Lease,
    log_store::LogStore,
    message::{CallError, Envelope, Request, Response},
    network::Speaker,
    peers::Phase,
    running::{Parts, Running},
    state_store::StateStore,
    types::MemberId,
};
use crate::log::Writer;

impl Shared {
    /// Reads the data directory and runs as the member it holds.
    pub(super) async fn open(&self) -> Result<(), StartError> {
        let contents = self.dir.open(self.world.entropy.next())?;
        let stored = contents.snapshot.as_ref().map(|snapshot| snapshot.meta.fleet_id.clone());
        let fleet = stored.filter(|fleet| !fleet.is_empty()).or_else(|| contents.fleet.clone());
        self.fleet.set(fleet);
        *self.superseded.write().unwrap_or_else(PoisonError::into_inner) = contents.superseded;
        let (disk, path) = (self.dir.disk().clone(), self.dir.hard_state_path());
        let writer = if self.world.log_thread {
            Writer::threaded(contents.wal, disk, path, self.world.observe_fsync.clone())
                .map_err(|error| StartError::Consensus(error.to_string()))?
        } else if disk.latency().is_some() {
            Writer::paced(contents.wal, disk, path)
        } else {
            Writer::inline(contents.wal, disk, path)
        };
        let state = StateStore::new(contents.snapshots, contents.snapshot.as_ref())?;
        let log = LogStore::new(
            contents.recovered,
            contents.hard_state.as_ref(),
            writer,
            state.reach(),
            &self.world.root.join("wal"),
        )?;
        let timers = self.config.timers;
        let speaker = Speaker {
            me: MemberId::new(&self.config.node_id, contents.incarnation),
            fleet: self.fleet.clone(),
            transport: self.world.transport.clone(),
            lease: Arc::new(Lease::new(&timers, log.term())),
            pause: timers.heartbeat / 2,
        };
        let trailing = self.config.compaction.trailing;
        let entropy = self.world.entropy.clone();
        let parts = Parts { log, state, speaker, timers, trailing, entropy };
        let running = Running::start(parts).await.map_err(StartError::Consensus)?;
        if self.superseded_by().is_some() {
            // It has nothing more to say in this fleet.
            let _ = running.raft.shutdown().await;
        }
        self.set_running(Some(Arc::new(running)));
        Ok(())
    }

    /// Forgets everything and begins as a new member. Only while forming.
    pub(super) async fn wipe(&self) {
        let _entering = self.entering.lock().await;
        if self.phase() != Phase::Forming {
            return;
        }
        if let Some(running) = self.running() {
            let _ = running.raft.shutdown().await;
        }
        self.set_running(None);
        self.fleet.set(None);
        let reopened = match self.dir.wipe() {
            Ok(()) => self.open().await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = reopened {
            self.fail(error);
        }
    }

    /// Begins a fleet with this replica alone in it.
    pub(super) async fn form(&self) {
        let _entering = self.entering.lock().await;
        let Some(running) = self.running().filter(|_| self.phase() == Phase::Empty) else { return };
        let fleet = FleetId::new(&self.world.entropy.uuid(), 0).to_string();
        tracing::info!(fleet_id = fleet, "forming a fleet");
        // The fleet before the log: a log without one would look empty.
        if let Err(error) = self.dir.set_fleet(&fleet) {
            return self.fail(error.to_string());
        }
        self.fleet.set(Some(fleet));
        let alone = std::collections::BTreeMap::from([(running.me, self.config.member())]);
        if let Err(error) = running.raft.initialize(alone).await {
            self.fail(error.to_string());
        }
    }

    pub(super) async fn answer(&self, envelope: Envelope) -> Result<Response, CallError> {
        let refused = |why: String| Err(CallError::Refused(why));
        if let Some(by) = self.superseded_by() {
            return refused(format!("superseded by {by}"));
        }
        let running = self.running();
        let Some(running) = running.filter(|running| running.me == envelope.to) else {
            return refused(format!("member {} is not here", envelope.to));
        };
        match self.fleet.get() {
            Some(mine) if mine == envelope.fleet_id => {}
            Some(mine) => return refused(format!("this is fleet {mine}")),
            None if matches!(envelope.request, Request::Append(_) | Request::Snapshot(_)) => {
                self.enter(&envelope.fleet_id).await?;
            }
            None => return refused("this replica is in no fleet".to_owned()),
        }
        running.answer(envelope.request).await
    }

    /// The leader of the fleet that this replica asked to join has spoken: it
    /// is in that fleet, and in no other, from now on.
    async fn enter(&self, fleet_id: &str) -> Result<(), CallError> {
        let _entering = self.entering.lock().await;
        let refused = |why: String| CallError::Refused(why);
        fleet_id.parse::<FleetId>().map_err(|error| refused(error.to_string()))?;
        match self.fleet.get() {
            Some(mine) if mine == fleet_id => Ok(()),
            Some(mine) => Err(refused(format!("this is fleet {mine}"))),
            None => {
                self.dir.set_fleet(fleet_id).map_err(|error| {
                    self.fail(error.to_string());
                    refused(error.to_string())
                })?;
                self.fleet.set(Some(fleet_id.to_owned()));
                Ok(())
            }
        }
    }

    /// A newer history of this fleet exists: stop voting and serving.
    pub(super) async fn supersede(&self, by: &FleetId) {
        tracing::error!(by = %by, "superseded: empty this replica's data directory");
        if let Err(error) = self.dir.set_superseded(&by.to_string()) {
            return self.fail(error.to_string());
        }
        *self.superseded.write().unwrap_or_else(PoisonError::into_inner) = Some(by.to_string());
        if let Some(running) = self.running() {
            let _ = running.raft.shutdown().await;
        }
    }
}
