//! What a shard decided.
//!
//! The shard is asked without a filter, to where it said that its log ends. A stream that was
//! filtered is silent while the shard passes over records, and that must not be taken for its end.
//! The newest are read once for all who ask, whatever they look for. A page after some record is
//! its asker's alone, so no more of it is kept than is wanted.

use std::{
    collections::{BTreeSet, VecDeque},
    hash::{Hash, Hasher},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use bigfleet_wire::v1alpha1::{
    CycleSummary, DecisionRecord, WatchDecisionsRequest, WatchSummaryRequest,
};
use futures_util::{Stream, StreamExt as _};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout_at},
};
use tonic::{Code, Request, Status};

use super::shards::{Shard, WITHIN};
use crate::{
    api::{Refusal, Source},
    auth::Viewer,
};

/// Records that a shard keeps at hand (shard chapter §10), and most that are read at once.
pub(crate) const KEPT: usize = 65_536;

/// What is read keeps its own time; this only guards it.
pub(super) const AT_MOST: Duration = Duration::from_secs(WITHIN.as_secs() + 1);

/// A shard that does not tell where its log ends sends what it has without a pause: so long a
/// silence probably means the end.
const QUIET: Duration = Duration::from_millis(250);

/// What comes this long after the end that was told is taken along: outcomes since the last cycle
/// follow at once, and everybody waits for them.
const SETTLED: Duration = Duration::from_millis(20);

/// So many of the newest are read, or so many, or all that are kept: who wants about as many
/// shares them.
const STEPS: [usize; 2] = [1_024, 8_192];

/// A sequence number is an epoch and, in so many bits, a count (shard chapter §10).
const SEQUENCE_BITS: u32 = 40;

/// From the oldest record kept.
pub(crate) const OLDEST: i64 = -1;

/// Which records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stretch {
    /// So many of the newest of the shard's present process, for its audit file may hold years.
    Newest(usize),
    /// The first after that one, until so many are wanted ones.
    After(i64, usize),
}

impl Stretch {
    /// At least so many of the newest, if so many are kept.
    #[must_use]
    pub(crate) fn newest(count: usize) -> Self {
        Self::Newest(STEPS.into_iter().find(|step| *step >= count).unwrap_or(KEPT))
    }

    /// Whether much may have to be kept of it.
    const fn is_long(self) -> bool {
        matches!(self, Self::Newest(count) if count > STEPS[1])
    }
}

/// Which records are kept; empty fields want all, as in the shard's own filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) kinds: BTreeSet<String>,
    pub(crate) cluster: String,
    pub(crate) machine: String,
    pub(crate) outcome: String,
    pub(crate) min_priority: i32,
    /// Whoever it is, for those who see the same share it.
    pub(crate) scope: Viewer,
}

impl Wanted {
    /// No more than this viewer sees.
    #[must_use]
    pub(crate) fn seen_by(self, viewer: &Viewer) -> Self {
        Self { scope: Viewer { clusters: viewer.clusters.clone(), ..Viewer::default() }, ..self }
    }

    /// Whether every record is wanted.
    #[must_use]
    pub(crate) fn all(&self) -> bool {
        *self == Self::default()
    }

    /// Whether this one is.
    #[must_use]
    pub(crate) fn takes(&self, record: &DecisionRecord) -> bool {
        let is = |wanted: &str, value: &str| wanted.is_empty() || wanted == value;
        (self.kinds.is_empty() || self.kinds.contains(&record.kind))
            && is(&self.cluster, &record.cluster_id)
            && is(&self.machine, &record.machine_id)
            && is(&self.outcome, &record.outcome)
            && (self.min_priority == 0 || record.priority >= self.min_priority)
            && self.scope.sees(&record.cluster_id)
    }
}

impl Hash for Wanted {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.kinds, &self.cluster, &self.machine, &self.outcome).hash(state);
        (self.min_priority, &self.scope.clusters).hash(state);
    }
}

/// Records in the order of their numbers.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// Those that are wanted.
    pub(crate) records: VecDeque<DecisionRecord>,
    /// The number of the last that was looked at.
    pub(crate) last: Option<i64>,
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
            (_, Some(reached)) => Some(reached + SETTLED),
            (Some(_), None) => None,
            (None, None) => Some(Instant::now() + QUIET),
        }
    }
}

/// Reads that of a shard.
pub(super) async fn read(
    shard: Shard,
    long: Arc<Semaphore>,
    stretch: Stretch,
    wanted: Wanted,
) -> Result<Told, Refusal> {
    let deadline = Instant::now() + WITHIN;
    let busy = |_| {
        let problem = format!("{}: too many read its decisions", shard.id);
        Refusal::failed(Source::Shard, problem)
    };
    let _place = timeout_at(deadline, shard.places.decisions.acquire()).await.map_err(busy)?;
    let _long = match stretch.is_long() {
        true => Some(timeout_at(deadline, long.acquire()).await.map_err(busy)?),
        false => None,
    };
    let frame = last_frame(&shard, deadline.min(Instant::now() + WITHIN / 2)).await?;
    let Some(bounds) = Bounds::of(stretch, frame.as_ref()) else {
        // No cycle yet, and what it decided before that cannot be told from what others did.
        return Ok(Told { more: true, ..Told::default() });
    };
    let request =
        WatchDecisionsRequest { after_sequence: bounds.after, ..WatchDecisionsRequest::default() };
    let mut client = shard.observe();
    let answer = client.watch_decisions(Request::new(request));
    let answer = timeout_at(deadline, answer).await.map_err(|_| shard.late())?;
    let records = answer.map_err(|status| shard.refused(&status))?.into_inner();
    take(records, &bounds, &wanted, deadline).await.map_err(|status| shard.refused(&status))
}

/// What is wanted of these records.
async fn take(
    records: impl Stream<Item = Result<DecisionRecord, Status>>,
    bounds: &Bounds,
    wanted: &Wanted,
    deadline: Instant,
) -> Result<Told, Status> {
    let mut stream = pin!(records);
    let mut told = Told { cut: bounds.cut, ..Told::default() };
    let mut looked = 0;
    let mut reached = bounds.head.filter(|head| bounds.after >= *head).map(|_| Instant::now());
    loop {
        let until = bounds.until(reached).map_or(deadline, |until| until.min(deadline));
        let record = match timeout_at(until, stream.next()).await {
            Ok(Some(Ok(record))) => record,
            Ok(None) | Err(_) => break,
            // It wrote faster than was read here: what is here is good, and there is more.
            Ok(Some(Err(status))) if status.code() == Code::ResourceExhausted && looked > 0 => {
                reached = None;
                break;
            }
            Ok(Some(Err(status))) => return Err(status),
        };
        if reached.is_none() && bounds.head.is_some_and(|head| record.sequence >= head) {
            reached = Some(Instant::now());
        }
        told.gap |= record.gap;
        told.last = Some(record.sequence);
        looked += 1;
        if wanted.takes(&record) {
            told.records.push_back(record);
        }
        if told.records.len() > bounds.count && bounds.newest {
            told.records.pop_front();
            told.cut = true;
        }
        if !bounds.newest && (told.records.len() >= bounds.count || looked >= KEPT) {
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
    use futures_util::stream;

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

    #[test]
    fn who_wants_about_as_many_of_the_newest_shares_them() {
        for (count, read) in [(1, 1_024), (500, 1_024), (1_025, 8_192), (8_193, KEPT)] {
            assert_eq!(Stretch::newest(count), Stretch::Newest(read));
        }
        assert!(Stretch::newest(KEPT).is_long() && !Stretch::newest(8_000).is_long());
    }

    /// A log of clusters that take turns, which is silent behind these.
    async fn take_of(stretch: Stretch, head: i64, written: i64, wanted: &Wanted) -> Told {
        let frame = CycleSummary { last_decision_sequence: head, ..CycleSummary::default() };
        let record = |sequence| {
            let cluster_id = ["even", "odd"][usize::from(sequence % 2 == 1)].to_owned();
            Ok(DecisionRecord { sequence, cluster_id, ..DecisionRecord::default() })
        };
        let bounds = Bounds::of(stretch, Some(&frame)).unwrap();
        let first = bounds.after.max(0) + 1;
        let log = stream::iter((first..=written).map(record)).chain(stream::pending());
        take(log, &bounds, wanted, Instant::now() + WITHIN).await.unwrap()
    }

    fn sequences(told: &Told) -> Vec<i64> {
        told.records.iter().map(|record| record.sequence).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn an_end_that_was_told_is_hardly_waited_at() {
        let all = Wanted::default();
        // What the shard decided since it told is taken along.
        for (head, waited) in [(3, SETTLED), (5, SETTLED), (0, QUIET)] {
            for stretch in [Stretch::newest(10), Stretch::After(-1, 10)] {
                let begun = Instant::now();
                let told = take_of(stretch, head, 5, &all).await;
                assert_eq!(sequences(&told), [1, 2, 3, 4, 5]);
                assert_eq!((begun.elapsed(), told.more), (waited, head == 0), "{head}");
            }
        }
        // The dashboard's own share of an answer (experience chapter §3.6).
        assert!(SETTLED < Duration::from_millis(50));
        // One that does not get there is waited for.
        let begun = Instant::now();
        let told = take_of(Stretch::After(2, 10), 9, 5, &all).await;
        assert_eq!((sequences(&told), told.more), (vec![3, 4, 5], true));
        assert_eq!(begun.elapsed(), WITHIN);
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_of_a_page_is_kept_than_is_wanted() {
        let odd = Wanted { cluster: "odd".to_owned(), ..Wanted::default() };
        let page = take_of(Stretch::After(-1, 2), 100, 100, &odd).await;
        assert_eq!((sequences(&page), page.last, page.more), (vec![1, 3], Some(3), true));
        // Nobody looks through a log without an end.
        let kept = i64::try_from(KEPT).unwrap();
        let none = Wanted { cluster: "none".to_owned(), ..Wanted::default() };
        let page = take_of(Stretch::After(-1, 2), kept * 2, kept * 2, &none).await;
        assert_eq!((page.records.len(), page.last, page.more), (0, Some(kept), true));
    }

    #[test]
    fn who_sees_the_same_and_looks_for_the_same_shares_it() {
        let of = |name: &str, cluster: &str| {
            let clusters = Some(Arc::new([cluster.to_owned()].into()));
            let viewer = Viewer { name: name.to_owned(), clusters, until: Some(1) };
            Wanted::default().seen_by(&viewer)
        };
        assert_eq!(of("jane", "a"), of("joe", "a"));
        assert_ne!(of("jane", "a"), of("jane", "b"));
        let record = |cluster: &str| DecisionRecord {
            cluster_id: cluster.to_owned(),
            ..DecisionRecord::default()
        };
        let wanted = of("jane", "a");
        assert!(wanted.takes(&record("a")) && wanted.takes(&record("")));
        assert!(!wanted.takes(&record("b")) && !wanted.all() && Wanted::default().all());
    }
}
