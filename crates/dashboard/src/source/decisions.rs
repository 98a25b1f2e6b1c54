//! What a shard decided, read once for all who ask.
//!
//! It is read without a filter and to where the shard said that its log ends. A stream that was
//! filtered is silent while the shard passes over records, and that must not be taken for its end.

use std::{collections::VecDeque, time::Duration};

use bigfleet_wire::v1alpha1::{
    CycleSummary, DecisionRecord, WatchDecisionsRequest, WatchSummaryRequest,
};
use tokio::time::{Instant, timeout_at};
use tonic::{Code, Request};

use super::shards::{Shard, WITHIN};
use crate::api::Refusal;

/// Records that a shard keeps at hand (shard chapter §10), and most that are read at once.
pub(crate) const KEPT: usize = 65_536;

/// What is read keeps its own time; this only guards it.
pub(super) const AT_MOST: Duration = Duration::from_secs(WITHIN.as_secs() + 1);

/// What comes this long after the end of the log that was told is taken along. A shard that does
/// not tell the end sends what it has without a pause: so long a silence probably means it.
const QUIET: Duration = Duration::from_millis(250);

/// A sequence number is an epoch and, in so many bits, a count (shard chapter §10).
const SEQUENCE_BITS: u32 = 40;

/// From the oldest record kept.
pub(crate) const OLDEST: i64 = -1;

/// Which records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stretch {
    /// So many of the newest of the shard's present process, for its audit file may hold years.
    Newest(usize),
    /// So many of the first after that one.
    After(i64, usize),
}

/// Records in the order of their numbers.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// Of all clusters.
    pub(crate) records: VecDeque<DecisionRecord>,
    /// They may go on: the end was not reached.
    pub(crate) more: bool,
    /// Some before or between them were lost.
    pub(crate) gap: bool,
    /// The process has older ones than these.
    pub(crate) cut: bool,
}

/// Where to read.
struct Bounds {
    /// Behind this one.
    after: i64,
    /// As far as the log went when the shard was asked, if that is known.
    head: Option<i64>,
    count: usize,
    /// The last so many and not the first.
    newest: bool,
    cut: bool,
}

impl Bounds {
    /// None if there is no saying what is the newest.
    fn of(stretch: Stretch, frame: Option<&CycleSummary>) -> Option<Self> {
        let head = frame.map(|frame| frame.last_decision_sequence).filter(|head| *head > 0);
        match stretch {
            Stretch::After(after, count) => {
                // 0 would mean to wait for what comes.
                let after = if after > 0 { after } else { OLDEST };
                Some(Self { after, head, count, newest: false, cut: false })
            }
            Stretch::Newest(count) => {
                let first = frame?.shard_epoch.saturating_mul(1 << SEQUENCE_BITS);
                let most = i64::try_from(count).unwrap_or(i64::MAX);
                let from = head.map_or(first, |head| head.saturating_sub(most).max(first));
                let after = if from > 0 { from } else { OLDEST };
                Some(Self { after, head, count, newest: true, cut: from > first })
            }
        }
    }

    /// How long to wait for the next one.
    fn until(&self, reached: Option<Instant>) -> Option<Instant> {
        match (self.head, reached) {
            (_, Some(reached)) => Some(reached + QUIET),
            (Some(_), None) => None,
            (None, None) => Some(Instant::now() + QUIET),
        }
    }
}

/// Reads that of a shard.
pub(super) async fn read(shard: Shard, stretch: Stretch) -> Result<Told, Refusal> {
    let deadline = Instant::now() + WITHIN;
    let frame = last_frame(&shard, Instant::now() + WITHIN / 2).await?;
    let Some(bounds) = Bounds::of(stretch, frame.as_ref()) else {
        // No cycle yet, and what it decided before that cannot be told from what others did.
        return Ok(Told { more: true, ..Told::default() });
    };
    let request =
        WatchDecisionsRequest { after_sequence: bounds.after, ..WatchDecisionsRequest::default() };
    let mut client = shard.observe();
    let answer = client.watch_decisions(Request::new(request));
    let answer = timeout_at(deadline, answer).await.map_err(|_| shard.late())?;
    let mut stream = answer.map_err(|status| shard.refused(&status))?.into_inner();
    let mut told = Told { cut: bounds.cut, ..Told::default() };
    let mut reached = bounds.head.filter(|head| bounds.after >= *head).map(|_| Instant::now());
    loop {
        let until = bounds.until(reached).map_or(deadline, |until| until.min(deadline));
        let record = match timeout_at(until, stream.message()).await {
            Ok(Ok(Some(record))) => record,
            Ok(Ok(None)) | Err(_) => break,
            // It wrote faster than was read here: what is here is good, and there is more.
            Ok(Err(status))
                if status.code() == Code::ResourceExhausted && !told.records.is_empty() =>
            {
                reached = None;
                break;
            }
            Ok(Err(status)) => return Err(shard.refused(&status)),
        };
        if reached.is_none() && bounds.head.is_some_and(|head| record.sequence >= head) {
            reached = Some(Instant::now());
        }
        told.gap |= record.gap;
        told.records.push_back(record);
        if told.records.len() > bounds.count && bounds.newest {
            told.records.pop_front();
            told.cut = true;
        }
        if told.records.len() >= bounds.count && !bounds.newest {
            break;
        }
        // What arrives without a pause is never waited for.
        if Instant::now() >= until {
            break;
        }
    }
    told.more = reached.is_none();
    Ok(told)
}

/// The shard's last frame; none before its first cycle.
async fn last_frame(shard: &Shard, deadline: Instant) -> Result<Option<CycleSummary>, Refusal> {
    let mut client = shard.observe();
    let answer = client.watch_summary(Request::new(WatchSummaryRequest {}));
    let answer = timeout_at(deadline, answer).await.map_err(|_| shard.late())?;
    let mut frames = answer.map_err(|status| shard.refused(&status))?.into_inner();
    match timeout_at(deadline, frames.message()).await {
        Ok(frame) => frame.map_err(|status| shard.refused(&status)),
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCH: i64 = 3 << SEQUENCE_BITS;

    fn bounds(stretch: Stretch, head: i64) -> (i64, bool) {
        let frame = CycleSummary {
            shard_epoch: 3,
            last_decision_sequence: head,
            ..CycleSummary::default()
        };
        let bounds = Bounds::of(stretch, Some(&frame)).unwrap();
        (bounds.after, bounds.cut)
    }

    #[test]
    fn the_newest_are_as_many_as_are_wanted_of_this_process() {
        assert_eq!(bounds(Stretch::Newest(10), EPOCH), (EPOCH, false));
        assert_eq!(bounds(Stretch::Newest(10), EPOCH + 10), (EPOCH, false));
        assert_eq!(bounds(Stretch::Newest(10), EPOCH + 11), (EPOCH + 1, true));
        // One that does not say where its log ends.
        assert_eq!(bounds(Stretch::Newest(10), 0), (EPOCH, false));
        assert!(Bounds::of(Stretch::Newest(10), None).is_none());
    }

    #[test]
    fn nobody_waits_for_what_comes_by_asking_for_0() {
        assert_eq!(bounds(Stretch::After(0, 10), EPOCH).0, OLDEST);
        assert_eq!(bounds(Stretch::After(7, 10), EPOCH).0, 7);
        let frame = CycleSummary::default();
        assert_eq!(Bounds::of(Stretch::Newest(10), Some(&frame)).unwrap().after, OLDEST);
    }
}
