//! How much may be said about waiting pods.

use std::{collections::VecDeque, time::Duration};

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tokio::time::Instant;

use crate::rollup::Uid;

/// Events a minute.
pub const EVENTS: usize = 50;
/// Condition writes a minute.
pub const CONDITIONS: usize = 200;

const MINUTE: Duration = Duration::from_secs(60);
/// One event per pod and reason in this time.
const REPEAT: Duration = Duration::from_secs(5 * 60);

/// Whether something may be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permit {
    /// Now.
    Granted,
    /// It was said a short while ago.
    Repeated,
    /// Too much was said in this minute.
    Exhausted,
}

/// What was said in the last minutes, per cluster.
#[derive(Debug, Default)]
pub struct Limits {
    events: VecDeque<Instant>,
    conditions: VecDeque<Instant>,
    /// No more than the events of five minutes.
    told: HashMap<(Uid, Box<str>), Instant, RandomState>,
}

impl Limits {
    /// An event about this pod, for this reason.
    pub fn event(&mut self, pod: Uid, reason: &str, now: Instant) -> Permit {
        self.told.retain(|_, at| now < *at + REPEAT);
        let key = (pod, Box::from(reason));
        if self.told.contains_key(&key) {
            return Permit::Repeated;
        }
        if !take(&mut self.events, EVENTS, now) {
            return Permit::Exhausted;
        }
        self.told.insert(key, now);
        Permit::Granted
    }

    /// A write of a condition.
    pub fn condition(&mut self, now: Instant) -> Permit {
        if take(&mut self.conditions, CONDITIONS, now) {
            Permit::Granted
        } else {
            Permit::Exhausted
        }
    }
}

fn take(times: &mut VecDeque<Instant>, most: usize, now: Instant) -> bool {
    while times.front().is_some_and(|at| now >= *at + MINUTE) {
        times.pop_front();
    }
    let free = times.len() < most;
    if free {
        times.push_back(now);
    }
    free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operator_inv_19_no_minute_has_more_than_its_share() {
        let start = Instant::now();
        let mut limits = Limits::default();
        let mut granted: Vec<(Instant, bool)> = Vec::new();
        for second in 0..600 {
            let now = start + Duration::from_secs(second);
            for pod in 0..20u64 {
                let pod = Uid::of(&format!("{second}-{pod}"));
                if limits.event(pod, "r", now) == Permit::Granted {
                    granted.push((now, true));
                }
                if limits.condition(now) == Permit::Granted {
                    granted.push((now, false));
                }
            }
            assert!(limits.told.len() <= EVENTS * 5);
        }
        for (begin, _) in &granted {
            let within = |event: bool| {
                let of = |(at, kind): &&(Instant, bool)| {
                    *kind == event && at >= begin && *at < *begin + MINUTE
                };
                granted.iter().filter(of).count()
            };
            assert!(within(true) <= EVENTS && within(false) <= CONDITIONS);
        }
        let events = granted.iter().filter(|(_, event)| *event).count();
        assert_eq!((events, granted.len() - events), (10 * EVENTS, 10 * CONDITIONS));
    }

    #[test]
    fn a_pod_hears_a_reason_once_in_five_minutes() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let (mut limits, pod) = (Limits::default(), Uid::of("pod"));
        assert_eq!(limits.event(pod, "a", at(0)), Permit::Granted);
        assert_eq!(limits.event(pod, "a", at(299)), Permit::Repeated);
        assert_eq!(limits.event(pod, "b", at(299)), Permit::Granted);
        assert_eq!(limits.event(pod, "a", at(300)), Permit::Granted);
    }
}
