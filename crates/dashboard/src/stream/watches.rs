//! Which watches begin, go on and end. Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use tokio::time::Instant;

use super::event::Topic;

/// What is watched, and where.
pub(super) type Watched = (Topic, Option<String>);

/// Watching goes on for this long after nobody wants it any more: tabs are hidden and screens
/// change, and who is back by then has missed nothing.
const LINGER: Duration = Duration::from_secs(30);

/// Whether these shards have to be known for that.
pub(super) fn of_shards<'a>(mut wanted: impl Iterator<Item = &'a Topic>) -> bool {
    wanted.any(|topic| *topic != Topic::Topology)
}

/// What should be watched so that everything of this can be told.
pub(super) fn desired<'a, 'b>(
    wanted: impl Iterator<Item = &'a Topic>,
    shards: impl Iterator<Item = &'b str>,
) -> BTreeSet<Watched> {
    let wanted: BTreeSet<&Topic> = wanted.collect();
    let mut desired = BTreeSet::new();
    if wanted.contains(&Topic::Topology) {
        desired.insert((Topic::Topology, None));
    }
    let decisions = wanted.contains(&Topic::Decisions);
    for shard in shards {
        // Its frames say as well from where on decisions are followed.
        let summary = wanted.contains(&Topic::Summary)
            || wanted.contains(&Topic::Needs(shard.to_owned()))
            || decisions;
        if summary {
            desired.insert((Topic::Summary, Some(shard.to_owned())));
        }
        if decisions {
            desired.insert((Topic::Decisions, Some(shard.to_owned())));
        }
    }
    desired
}

/// Watches that are under way, and since when each is wanted by nobody.
#[derive(Debug, Default)]
pub(super) struct Watches(BTreeMap<Watched, Option<Instant>>);

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) begin: Vec<Watched>,
    pub(super) end: Vec<Watched>,
}

impl Watches {
    /// What begins and what ends now that this is desired.
    pub(super) fn settle(&mut self, desired: BTreeSet<Watched>, now: Instant) -> Changes {
        let mut end = Vec::new();
        self.0.retain(|watched, unwanted| {
            if desired.contains(watched) {
                *unwanted = None;
                return true;
            }
            let stays = now.duration_since(*unwanted.get_or_insert(now)) < LINGER;
            if !stays {
                end.push(watched.clone());
            }
            stays
        });
        let begin: Vec<Watched> =
            desired.into_iter().filter(|watched| !self.0.contains_key(watched)).collect();
        self.0.extend(begin.iter().map(|watched| (watched.clone(), None)));
        Changes { begin, end }
    }

    /// When the first of them ends if nobody comes back for it.
    pub(super) fn next_end(&self) -> Option<Instant> {
        self.0.values().flatten().min().map(|since| *since + LINGER)
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(topic: Topic, shard: &str) -> Watched {
        (topic, Some(shard.to_owned()))
    }

    #[test]
    fn what_is_watched_follows_from_topics_and_shards() {
        let all = |topics: &[Topic]| desired(topics.iter(), ["a", "b"].into_iter());
        let (summary, decisions) = (|shard| of(Topic::Summary, shard), of(Topic::Decisions, "a"));
        assert_eq!(all(&[Topic::Summary]), [summary("a"), summary("b")].into());
        assert_eq!(all(&[Topic::Needs("b".to_owned())]), [summary("b")].into());
        assert_eq!(all(&[Topic::Topology]), [(Topic::Topology, None)].into());
        let of_decisions = all(&[Topic::Decisions]);
        assert!(of_decisions.len() == 4 && of_decisions.contains(&decisions));
        assert!(of_decisions.contains(&summary("a")));
        let topology = [Topic::Topology];
        assert!(!of_shards(topology.iter()) && of_shards([Topic::Decisions].iter()));
    }

    #[test]
    fn a_watch_outlives_who_wanted_it_for_a_while() {
        let (begun, second) = (Instant::now(), Duration::from_secs(1));
        let (summary, decisions) = (of(Topic::Summary, "a"), of(Topic::Decisions, "a"));
        let both = || BTreeSet::from([summary.clone(), decisions.clone()]);
        let changes = |begin: &[&Watched], end: &[&Watched]| Changes {
            begin: begin.iter().copied().cloned().collect(),
            end: end.iter().copied().cloned().collect(),
        };
        let mut watches = Watches::default();
        assert_eq!(watches.settle(both(), begun), changes(&[&summary, &decisions], &[]));
        assert_eq!(watches.next_end(), None);
        // Another's topic neither keeps it nor ends it.
        let one = || BTreeSet::from([summary.clone()]);
        assert_eq!(watches.settle(one(), begun + second), changes(&[], &[]));
        assert_eq!(watches.settle(one(), begun + LINGER), changes(&[], &[]));
        assert_eq!(watches.next_end(), Some(begun + second + LINGER));
        // Somebody comes back in time.
        assert_eq!(watches.settle(both(), begun + LINGER), changes(&[], &[]));
        let left = begun + 2 * LINGER;
        assert_eq!(watches.settle(one(), left), changes(&[], &[]));
        assert_eq!(watches.settle(one(), left + LINGER), changes(&[], &[&decisions]));
        assert_eq!(watches.settle(both(), left + LINGER), changes(&[&decisions], &[]));
        // And nobody does.
        watches.settle(BTreeSet::new(), left);
        assert_eq!(
            watches.settle(BTreeSet::new(), left + LINGER),
            changes(&[], &[&summary, &decisions])
        );
        assert!(watches.is_empty());
    }
}
