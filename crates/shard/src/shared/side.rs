//! What a coordinator's client sees of a shard that shares its provider, and what it
//! changes in it.

use std::sync::Arc;

use bigfleet_model::FleetId;
use bigfleet_wire::v1alpha1::{self as wire, coordinator_instruction::Payload};

use super::{Shared, lock};
use crate::{
    holdings::{Assignment, Attempt, Event, Holdings, Malformed, Out, Refused, Selector},
    shard::Shard,
};

/// A shard that shares its provider. Clones share everything.
#[derive(Clone)]
pub struct SharedSide {
    pub(super) shard: Arc<Shard>,
    pub(super) shared: Arc<Shared>,
}

/// What a donor says to a release instruction.
#[derive(Clone, Debug, PartialEq)]
pub enum Answered {
    /// These machines of this domain are let go of.
    Released {
        /// The machines, the same every time.
        machines: Vec<String>,
        /// Where they go back to.
        home: wire::DomainAssignment,
    },
    /// None matches.
    Nothing,
    /// Some were chosen, and none was drained in time.
    Undrained,
    /// Asked for something that means nothing.
    Invalid(Malformed),
    /// Nothing yet: it is asked again.
    Later,
}

impl Answered {
    /// Of what this shard let go of; none before that is known.
    #[must_use]
    pub fn of(out: Option<Out>, shard: &str) -> Self {
        match out {
            None => Self::Later,
            Some(out) if out.machines.is_empty() => Self::Undrained,
            Some(out) => Self::Released {
                machines: out.machines.iter().map(ToString::to_string).collect(),
                home: out.home.to_wire(shard),
            },
        }
    }
}

impl SharedSide {
    pub(crate) fn of(shard: &Arc<Shard>) -> Option<Self> {
        let shared = shard.shared.clone()?;
        Some(Self { shard: shard.clone(), shared })
    }

    /// What is on disk: what reports say.
    #[must_use]
    pub fn holdings(&self) -> Arc<Holdings> {
        self.shared.holdings.load_full()
    }

    /// Whether nothing of an earlier process can reach a machine any more.
    #[must_use]
    pub fn announced(&self) -> bool {
        self.shared.announced()
    }

    /// Whether nothing is done yet, for no report was answered so far.
    #[must_use]
    pub fn waits_for_report(&self) -> bool {
        !self.shared.reported.load(std::sync::atomic::Ordering::Acquire)
    }

    /// A report came to nothing, or was answered.
    pub fn attempted(&self, attempt: Attempt) {
        self.shared.attempted(attempt);
        self.shard.wake();
    }

    /// A coordinator answered.
    pub async fn heard(&self, fleet: Option<FleetId>, term: i64) -> Result<(), Refused> {
        let event = Event::Heard { fleet, term };
        self.shard.take(&self.shared, &event).await.map(drop)
    }

    /// A coordinator said what is ours; whether that is in force now. What means nothing
    /// is refused whole.
    #[must_use]
    pub async fn assign(&self, message: wire::Assignment) -> bool {
        let version = message.version;
        let assignment = match Assignment::try_from(message) {
            Ok(assignment) => assignment,
            Err(error) => {
                tracing::error!(version, %error, "assignment refused; what was in force stays");
                return false;
            }
        };
        let taken = self.shard.take(&self.shared, &Event::Assigned(assignment)).await;
        match &taken {
            Ok(effects) => tracing::info!(version, changes = effects.len(), "assignment taken"),
            Err(refused) => tracing::error!(version, %refused, "assignment refused"),
        }
        taken.is_ok()
    }

    /// A coordinator said who has clusters whose operators are here all the same.
    pub fn bound_elsewhere(&self, clusters: Vec<wire::BoundElsewhere>) {
        let holder = |one: wire::BoundElsewhere| (one.cluster_id.into(), one.shard_id);
        *lock(&self.shared.elsewhere) = clusters.into_iter().map(holder).collect();
    }

    /// A coordinator asks for machines.
    pub async fn release(&self, payload: Payload) -> Answered {
        let (transfer, selector) = match Selector::of(payload) {
            Ok(asked) => asked,
            Err(malformed) => {
                tracing::warn!(%malformed, "asked for machines in a way that means nothing");
                return Answered::Invalid(malformed);
            }
        };
        match self.shard.release(&self.shared, transfer.clone(), &selector).await {
            Ok(answered) => {
                if answered == Answered::Nothing {
                    tracing::info!(%transfer, "asked for machines; no quiet one matches");
                }
                answered
            }
            Err(refused) => {
                tracing::info!(%refused, "not released yet");
                Answered::Later
            }
        }
    }

    /// The coordinator knows a newer process of this shard.
    pub async fn stale_epoch(&self, text: &str) {
        self.shard.latch(&format!("the coordinator: {text}")).await;
    }
}
