//! Who is told what in one round. Pure: pods and needs in, writes and events out.

use bigfleet_crds::conditions;
use bigfleet_in_cluster::ObjectKey;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use jiff::Timestamp;
use tokio::time::Instant;

use super::{
    limits::{Limits, Permit},
    words::Words,
};
use crate::rollup::{Request, Uid};

/// A pod that waits for a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Waiting {
    /// Oldest first.
    pub(super) created: Timestamp,
    pub(super) key: ObjectKey,
    pub(super) uid: Uid,
}

/// A request of a need that somebody is to be told about.
#[derive(Clone, Debug)]
pub(super) struct Concerned<'a> {
    pub(super) key: ObjectKey,
    pub(super) uid: Uid,
    pub(super) pod: Option<Uid>,
    /// Whether it says so already.
    pub(super) said: bool,
    /// Whether it says that it is not covered.
    pub(super) denies: bool,
    pub(super) words: &'a Words,
}

impl<'a> Concerned<'a> {
    pub(super) fn new(key: &ObjectKey, request: &Request, words: &'a Words) -> Self {
        let told = request.condition(conditions::SATISFIED);
        Self {
            key: key.clone(),
            uid: request.uid,
            pod: request.pod,
            said: told.is_some_and(|told| {
                told.is_true() == words.met
                    && *told.reason == *words.reason
                    && *told.message == *words.message
            }),
            denies: request.denies(),
            words,
        }
    }
}

/// What one round does.
#[derive(Debug, Default)]
pub(super) struct Plan<'a> {
    pub(super) conditions: Vec<Concerned<'a>>,
    pub(super) events: Vec<(Waiting, &'a Words)>,
    /// Left out by the limits of a minute.
    pub(super) skipped: u64,
}

/// Oldest pods first, as far as the limits go.
pub(super) fn plan<'a>(
    mut waiting: Vec<Waiting>,
    concerned: Vec<Concerned<'a>>,
    limits: &mut Limits,
    now: Instant,
) -> Plan<'a> {
    waiting.sort_unstable();
    let (of_pods, others): (Vec<_>, Vec<_>) =
        concerned.into_iter().partition(|one| one.pod.is_some());
    let mut of_pods: HashMap<Uid, Concerned<'a>, RandomState> =
        of_pods.into_iter().filter_map(|one| Some((one.pod?, one))).collect();
    let mut plan = Plan::default();
    for pod in waiting {
        let Some(one) = of_pods.remove(&pod.uid) else { continue };
        if one.words.event {
            match limits.event(pod.uid, &one.words.reason, now) {
                Permit::Granted => plan.events.push((pod, one.words)),
                Permit::Exhausted => plan.skipped += 1,
                Permit::Repeated => {}
            }
        }
        plan.condition(one, limits, now);
    }
    // A pod that found its place must not be left with a request that says there is none.
    let mut mended: Vec<_> =
        of_pods.into_values().chain(others).filter(|one| one.denies && one.words.met).collect();
    mended.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    for one in mended {
        plan.condition(one, limits, now);
    }
    plan
}

impl<'a> Plan<'a> {
    fn condition(&mut self, one: Concerned<'a>, limits: &mut Limits, now: Instant) {
        if one.said {
            return;
        }
        match limits.condition(now) {
            Permit::Granted => self.conditions.push(one),
            Permit::Exhausted | Permit::Repeated => self.skipped += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::pod_status::limits::{CONDITIONS, EVENTS};

    fn words(met: bool) -> Words {
        Words { met, reason: "Why".to_owned(), message: "so".to_owned(), event: !met }
    }

    fn pod(number: i64) -> Waiting {
        let name = format!("p-{number:06}");
        Waiting {
            created: Timestamp::from_second(number).unwrap(),
            uid: Uid::of(&name),
            key: ObjectKey::namespaced("n", &name),
        }
    }

    fn request<'a>(number: i64, words: &'a Words, said: bool, denies: bool) -> Concerned<'a> {
        let (name, pod) = (format!("cr-{number:06}"), pod(number).uid);
        Concerned {
            key: ObjectKey::namespaced("n", &name),
            uid: Uid::of(&name),
            pod: Some(pod),
            said,
            denies,
            words,
        }
    }

    #[test]
    fn operator_inv_19_a_hundred_thousand_pods_stay_under_the_limits_oldest_first() {
        let words = words(false);
        let (mut limits, start) = (Limits::default(), Instant::now());
        let pods: Vec<_> = (0..100_000).rev().map(pod).collect();
        let requests: Vec<_> = (0..100_000).map(|n| request(n, &words, false, false)).collect();
        let first = plan(pods.clone(), requests.clone(), &mut limits, start);
        assert_eq!((first.events.len(), first.conditions.len()), (EVENTS, CONDITIONS));
        assert_eq!(first.skipped, 200_000 - (EVENTS + CONDITIONS) as u64);
        assert_eq!(first.events[0].0, pod(0));
        assert_eq!(first.events[EVENTS - 1].0, pod(EVENTS as i64 - 1));
        assert_eq!(first.conditions[0].key, request(0, &words, false, false).key);
        // Half a minute later the minute is still full.
        let second = plan(pods, requests, &mut limits, start + Duration::from_secs(30));
        assert_eq!((second.events.len(), second.conditions.len()), (0, 0));
    }

    #[test]
    fn what_is_said_is_not_said_again() {
        let words = words(false);
        let (mut limits, now) = (Limits::default(), Instant::now());
        let requests = vec![request(1, &words, true, true), request(2, &words, false, false)];
        let plan = plan(vec![pod(1), pod(2), pod(3)], requests, &mut limits, now);
        assert_eq!((plan.events.len(), plan.conditions.len(), plan.skipped), (2, 1, 0));
        assert_eq!(plan.conditions[0].uid, Uid::of("cr-000002"));
    }

    #[test]
    fn a_request_whose_pod_waits_no_more_is_mended_and_not_accused() {
        let (met, unmet) = (words(true), words(false));
        let (mut limits, now) = (Limits::default(), Instant::now());
        let requests = vec![
            request(1, &met, false, true),
            request(2, &met, false, false),
            request(3, &unmet, false, false),
        ];
        let plan = plan(Vec::new(), requests, &mut limits, now);
        let written: Vec<_> = plan.conditions.iter().map(|one| one.uid).collect();
        assert_eq!(written, [Uid::of("cr-000001")]);
        assert!(plan.events.is_empty());
    }
}
