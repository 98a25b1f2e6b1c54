//! Whether the server takes our writes.
//!
//! A controller that sees every pod and can write nothing is as good as none: in a rollout the
//! requests of old pods go with them, and new pods have none.

use std::{collections::HashSet, time::Duration};

use bigfleet_in_cluster::ObjectKey;
use tokio::time::Instant;

/// Writes that failed for so long, and not one that was taken meanwhile.
const TOO_LONG: Duration = Duration::from_secs(30);

/// How our last writes went.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    /// Pods whose requests are not as they should be.
    lacking: HashSet<ObjectKey>,
    /// Since when every write has failed.
    failing: Option<Instant>,
}

impl Writes {
    /// One was taken.
    pub(crate) fn taken(&mut self) {
        self.failing = None;
    }

    /// One failed that may be taken later.
    pub(crate) fn failed(&mut self, pod: &ObjectKey, now: Instant) {
        self.lacking.insert(pod.clone());
        self.failing.get_or_insert(now);
    }

    /// The pod lacks nothing, or is gone.
    pub(crate) fn settled(&mut self, pod: &ObjectKey) {
        if self.lacking.remove(pod) && self.lacking.is_empty() {
            self.failing = None;
        }
    }

    /// Whether requests can no longer be relied on. Not because of one that fails among others
    /// that do not.
    #[must_use]
    pub(crate) fn are_refused(&self, now: Instant) -> bool {
        self.failing.is_some_and(|since| now >= since + TOO_LONG)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_taken_speaks_for_all_and_none_is_missed_that_is_gone() {
        let (mut writes, begin) = (Writes::default(), Instant::now());
        let at = |seconds| begin + Duration::from_secs(seconds);
        let [a, b] = ["a", "b"].map(|name| ObjectKey::namespaced("apps", name));
        assert!(!writes.are_refused(at(600)), "nothing was written");
        writes.failed(&a, at(0));
        writes.failed(&b, at(29));
        assert!(!writes.are_refused(at(29)));
        assert!(writes.are_refused(at(30)));
        writes.taken();
        assert!(!writes.are_refused(at(31)));
        writes.failed(&a, at(40));
        assert!(!writes.are_refused(at(69)) && writes.are_refused(at(70)));
        writes.settled(&a);
        assert!(writes.are_refused(at(70)), "the other is there");
        writes.settled(&b);
        assert!(!writes.are_refused(at(600)));
    }
}
