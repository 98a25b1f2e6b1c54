//! Streams that follow the shard.

use std::sync::Arc;

use bigfleet_wire::v1alpha1::{CycleSummary, DecisionRecord};
use tokio::sync::broadcast::{Receiver, error::RecvError};
use tonic::Status;

use crate::{
    audit::Cursor,
    publish::MAX_BEHIND,
    readers::{Place, Source},
    shard::Shard,
};

/// A frame per cycle, the newest at once.
pub(super) struct Summaries {
    latest: Option<Arc<CycleSummary>>,
    following: Receiver<Arc<CycleSummary>>,
}

impl Summaries {
    pub(super) fn of(shard: &Shard) -> Self {
        let (latest, following) = shard.summaries.follow();
        Self { latest, following }
    }
}

impl Source for Summaries {
    type Item = CycleSummary;

    async fn next(&mut self, place: &Place) -> Option<Result<CycleSummary, Status>> {
        let too_slow = || {
            place.too_slow(format!(
                "more than {MAX_BEHIND} frames behind; read faster, or less often"
            ))
        };
        if self.following.len() > MAX_BEHIND {
            return Some(Err(too_slow()));
        }
        if let Some(latest) = self.latest.take() {
            return Some(Ok(CycleSummary::clone(&latest)));
        }
        match self.following.recv().await {
            Ok(frame) => Some(Ok(CycleSummary::clone(&frame))),
            Err(RecvError::Lagged(_)) => Some(Err(too_slow())),
            Err(RecvError::Closed) => None,
        }
    }
}

/// Decisions and what became of them.
pub(super) struct Decisions(pub(super) Cursor);

impl Source for Decisions {
    type Item = DecisionRecord;

    async fn next(&mut self, place: &Place) -> Option<Result<DecisionRecord, Status>> {
        Some(match self.0.next().await {
            Ok(item) => Ok(item.record.to_wire(item.gap)),
            Err(lagging) => Err(place.too_slow(lagging.to_string())),
        })
    }
}
