//! Decisions that a shard keeps, read without a filter and to where its log ends: one that
//! filters is silent while it passes over records, and silence is not the end.

use std::{collections::VecDeque, time::Duration};

use bigfleet_wire::v1alpha1::{DecisionRecord, WatchDecisionsRequest, WatchSummaryRequest};
use tokio::time::timeout;
use tonic::Status;

use crate::{Error, shards::Shard};

/// From the oldest.
pub(crate) const OLDEST: i64 = -1;

/// A sequence number is an epoch and, in so many bits, a count (shard chapter §10).
const SEQUENCE_BITS: u32 = 40;
/// Where the end is not known, so long a silence means it.
const QUIET: Duration = Duration::from_millis(500);

/// What was kept.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// The wanted ones, oldest first.
    pub(crate) records: VecDeque<DecisionRecord>,
    /// The last that was read, wanted or not: where whoever follows goes on.
    pub(crate) last: i64,
}

/// Those after a number, and of these the `most` newest that are `wanted`; without a
/// question what is wanted, all are.
pub(crate) async fn read(
    shard: &Shard,
    after: i64,
    most: Option<usize>,
    wanted: Option<&WatchDecisionsRequest>,
) -> Result<Kept, Error> {
    let what = "decisions";
    let refused = |status: Status| shard.refused(what, &status);
    let head = head(shard).await.map_err(refused)?;
    let from = match (most, wanted) {
        (Some(most), None) => after.max(newest(head, most)),
        _ => after,
    };
    let mut kept = Kept { records: VecDeque::new(), last: from };
    if head > 0 && from >= head {
        return Ok(kept);
    }
    let request = WatchDecisionsRequest { after_sequence: from, ..Default::default() };
    let mut rpc = shard.observe();
    let mut stream = shard.answer(what, rpc.watch_decisions(request)).await?;
    // A process that has decided nothing yet does not know where the one before it ended.
    let known = count(head) > 0;
    while !known || kept.last < head {
        let next = match timeout(if known { shard.timeout } else { QUIET }, stream.message()).await
        {
            Ok(next) => next,
            Err(_) if known => Err(Status::deadline_exceeded("the rest did not come in time")),
            Err(_) => break,
        };
        let Some(record) = next.map_err(refused)? else { break };
        kept.last = record.sequence;
        if wanted.is_none_or(|wanted| wants(wanted, &record)) {
            kept.records.push_back(record);
        }
        if most.is_some_and(|most| kept.records.len() > most) {
            kept.records.pop_front();
        }
    }
    Ok(kept)
}

/// The number of the newest record; 0 if the shard has not said it in time: before its
/// first cycle it says nothing.
pub(crate) async fn head(shard: &Shard) -> Result<i64, Status> {
    let mut rpc = shard.observe();
    let asked = async {
        let mut frames = rpc.watch_summary(WatchSummaryRequest {}).await?.into_inner();
        frames.message().await
    };
    let frame = timeout(shard.timeout, asked).await.unwrap_or(Ok(None))?;
    Ok(frame.map_or(0, |frame| frame.last_decision_sequence))
}

/// Records that a process has written up to this one.
const fn count(head: i64) -> i64 {
    head & ((1 << SEQUENCE_BITS) - 1)
}

/// What the `most` newest come after, if they are all of this process.
fn newest(head: i64, most: usize) -> i64 {
    match i64::try_from(most) {
        Ok(most) if most <= count(head) => head - most,
        _ => OLDEST,
    }
}

/// As the shard's own filter reads it.
fn wants(wanted: &WatchDecisionsRequest, record: &DecisionRecord) -> bool {
    let is = |wanted: &str, value: &str| wanted.is_empty() || wanted == value;
    (wanted.kinds.is_empty() || wanted.kinds.contains(&record.kind))
        && is(&wanted.cluster_id, &record.cluster_id)
        && is(&wanted.machine_id, &record.machine_id)
        && is(&wanted.outcome, &record.outcome)
        && (wanted.min_priority == 0 || record.priority >= wanted.min_priority)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_counted_back_within_one_process_alone() {
        let epoch = 3 << SEQUENCE_BITS;
        assert_eq!(newest(epoch + 10, 10), epoch);
        assert_eq!(newest(epoch + 11, 10), epoch + 1);
        assert_eq!(newest(epoch + 9, 10), OLDEST);
        assert_eq!(newest(0, 10), OLDEST);
    }
}
