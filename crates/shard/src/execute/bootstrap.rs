//! Idle → Configuring → Configured: the operator's blob, then `Configure`.

use std::sync::Arc;

use bigfleet_engine::{Tracked, action::Acquisition};
use bigfleet_model::{ClusterId, MachineId, MachineState, Profile};
use bigfleet_provider::{Configure, Secret};
use tokio::time::{Instant, timeout};

use super::{Ended, Queue, call::Mutation, limit::Permit};
use crate::{
    live::Cause,
    outcome::Outcome,
    session::{Blob, BlobError},
    shard::Shard,
};

/// A worker's turn to wait for a cluster's blob.
pub(super) struct Turn<'a> {
    queue: &'a Queue,
    cluster: ClusterId,
}

impl<'a> Turn<'a> {
    pub(super) const fn new(queue: &'a Queue, cluster: ClusterId) -> Self {
        Self { queue, cluster }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.queue.blob_done(&self.cluster);
    }
}

/// How often a blob is asked for before its time to live is given up.
const PULLS: usize = 2;

impl Shard {
    pub(super) async fn bootstrap(
        &self,
        machine: &MachineId,
        bound: &Acquisition,
        decision: i64,
        turn: Option<Turn<'_>>,
    ) -> Ended {
        if let Err(outcome) = self.begin_bootstrap(machine, bound, decision).await {
            return outcome.into();
        }
        let started = Instant::now();
        for _ in 0..PULLS {
            let blob = match self.pull(machine, &bound.cluster).await {
                Ok(blob) => blob,
                Err((outcome, error)) => {
                    self.roll_back(machine, MachineState::Idle, decision).await;
                    return Ended::with_error(outcome, error);
                }
            };
            self.metrics.request_bootstrap.observe(started.elapsed().as_secs_f64());
            // The wait for a place at the provider counts against the blob.
            let permit = self.limit.acquire().await;
            if blob.ttl.is_some_and(|ttl| blob.received.elapsed() >= ttl) {
                continue;
            }
            drop(turn);
            let request = self.request(machine, &bound.cluster, blob).await;
            return self.configure(&permit, machine, request, decision).await;
        }
        self.roll_back(machine, MachineState::Idle, decision).await;
        Ended::with_error(Outcome::BlobTimeout, "two blobs expired before they could be sent")
    }

    /// Idle → Configuring; an outcome if there is nothing to do.
    async fn begin_bootstrap(
        &self,
        machine: &MachineId,
        bound: &Acquisition,
        decision: i64,
    ) -> Result<(), Outcome> {
        let mut desk = self.desk().await;
        let known = desk.tracked(machine).ok_or(Outcome::InventoryMiss)?.machine;
        let stamp = known.stamp.as_ref();
        if known.state == MachineState::Configured
            && known.cluster.as_ref() == Some(&bound.cluster)
            && stamp.is_some_and(|stamp| stamp.fingerprint == bound.stamp.fingerprint)
        {
            return Err(Outcome::Success);
        }
        if known.state != MachineState::Idle {
            return Err(Outcome::StaleState);
        }
        if desk.decider.engine.profile(&bound.stamp.fingerprint).is_none() {
            return Err(Outcome::MissingProfile);
        }
        desk.write(machine, Cause::Decision, decision, |tracked: &mut Tracked| {
            tracked.machine.state = MachineState::Configuring;
            tracked.machine.cluster = Some(bound.cluster.clone());
            tracked.machine.stamp = Some(bound.stamp.clone());
            tracked.idle_since = None;
        });
        Ok(())
    }

    /// Asks the operator for a blob, for the profile that the machine is stamped
    /// with now.
    async fn pull(
        &self,
        machine: &MachineId,
        cluster: &ClusterId,
    ) -> Result<Blob, (Outcome, String)> {
        if self.options.local_bootstrap {
            return Ok(Blob { data: Secret::from(vec![]), ttl: None, received: Instant::now() });
        }
        let none = |error: BlobError| (Outcome::NoSession, error.to_string());
        let (profile, fingerprint) = {
            let desk = self.desk().await;
            let stamp = desk.tracked(machine).and_then(|tracked| tracked.machine.stamp);
            let stamp = stamp.ok_or((Outcome::StaleState, String::new()))?;
            let profile: Option<Arc<Profile>> =
                desk.decider.engine.profile(&stamp.fingerprint).cloned();
            let profile = profile.ok_or((Outcome::MissingProfile, String::new()))?;
            (profile, stamp.fingerprint.clone())
        };
        let requirements = profile.requirements().iter().map(Into::into).collect();
        let wait = self
            .sessions
            .request_blob(cluster, requirements, machine)
            .map_err(|_| none(BlobError::NoSession))?;
        match timeout(self.options.bootstrap_timeout, wait).await {
            Ok(Ok(blob)) => {
                self.refusals().delivered(cluster, &fingerprint);
                Ok(blob)
            }
            Ok(Err(BlobError::Refused(text))) => {
                self.refusals().refused(cluster, &fingerprint, &text);
                Err((Outcome::BlobError, text))
            }
            Ok(Err(error)) => Err(none(error)),
            Err(_) => Err((Outcome::BlobTimeout, "the operator did not answer in time".into())),
        }
    }

    /// What `Configure` says, with the stamp as it stands now.
    async fn request(&self, machine: &MachineId, cluster: &ClusterId, blob: Blob) -> Configure {
        let stamp = self.desk().await.tracked(machine).and_then(|known| known.machine.stamp);
        let metadata = stamp.map(|stamp| stamp.to_metadata()).unwrap_or_default();
        Configure { cluster: cluster.clone(), blob: blob.data, metadata }
    }

    async fn configure(
        &self,
        permit: &Permit<'_>,
        machine: &MachineId,
        request: Configure,
        decision: i64,
    ) -> Ended {
        let ack = match self.mutate_now(permit, machine, Mutation::Configure(request)).await {
            Ok(ack) => ack,
            Err(failed) => {
                return self.settle(machine, MachineState::Idle, failed, decision).await;
            }
        };
        match self.apply_ack(machine, &ack, decision).await {
            Ok(MachineState::Idle) => Outcome::TransitionRacedToIdle.into(),
            Ok(_) => Ended::success(ack.operation_id),
            Err(error) => self.settle_rejected(machine, error, decision).await,
        }
    }
}
