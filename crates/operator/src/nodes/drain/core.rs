use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::pods::{PodName, PodView};
use crate::dispatch::Moment;

/// Evictions of one node under way at once.
const AT_ONCE: usize = 10;

/// Pause between two rounds, where the server names none.
const PAUSE: Duration = Duration::from_secs(2);

/// How many pods an error names.
const NAMED: usize = 3;

/// The drain of one node: what happened goes in, what is to be done comes out.
#[derive(Debug)]
pub struct Drain {
    deadline: Moment,
    /// Its deadline had passed before this process saw it.
    overdue: bool,
    own_pod: Option<PodName>,
    round: Round,
    remaining: Vec<PodView>,
    refusals: HashMap<Arc<str>, Arc<str>>,
    told_blocked: bool,
    looked_again: bool,
}

#[derive(Debug)]
enum Round {
    /// Pods are being listed; for the last time, once the deadline has passed.
    Listing {
        last: bool,
    },
    Evicting(Evicting),
    Pausing {
        until: Moment,
    },
    Ended,
}

#[derive(Debug, Default)]
struct Evicting {
    waiting: VecDeque<PodView>,
    /// Evicted after all others were answered: with it goes this process.
    own: Option<PodView>,
    in_flight: usize,
    conflict: bool,
    pause: Option<Duration>,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// The drain begins, or time has passed.
    Time,
    /// The pods that a drain has to wait for.
    Listed(Vec<PodView>),
    /// The list failed.
    ListFailed,
    /// An eviction was answered.
    Answered {
        /// The pod.
        uid: Arc<str>,
        /// The answer.
        answer: Answer,
    },
    /// Another instruction ends earlier.
    Sooner(Moment),
}

/// How an eviction was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The pod goes, or is gone.
    Going,
    /// It is no longer the pod that was listed.
    Conflict,
    /// A disruption budget refuses; the text is the server's.
    Blocked(String, Option<Duration>),
    /// We may not.
    Forbidden(String),
    /// The server or the way to it fails, or asks to be left alone for so long.
    Failing(String, Option<Duration>),
    /// It was not sent: the deadline had passed.
    NotSent,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Todo {
    /// List the node's pods.
    List,
    /// Evict a pod.
    Evict(PodView),
    /// Come back with [`Input::Time`] at that moment.
    Wake(Moment),
    /// Tell that this pod cannot be evicted, and why. Once per drain.
    TellBlocked(PodName, Arc<str>),
    /// The drain is over.
    End(Outcome),
}

/// How a drain ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// All pods are gone.
    Drained,
    /// The deadline passed.
    Failed(Remaining),
}

/// The pods that a failed drain left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remaining {
    count: usize,
    named: Vec<(PodName, Arc<str>)>,
}

/// Begins every error of a drain, and tells it from an error of the machine.
pub(crate) const DRAIN_ERROR: &str = "drain: ";

impl fmt::Display for Remaining {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{DRAIN_ERROR}grace period exceeded: {} pods remain", self.count)?;
        for (at, (pod, reason)) in self.named.iter().enumerate() {
            let before = if at == 0 { ": " } else { ", " };
            write!(f, "{before}{pod} ({reason})")?;
        }
        if self.count > self.named.len() {
            f.write_str("…")?;
        }
        Ok(())
    }
}

impl Drain {
    /// A drain that ends at the deadline. `own_pod` is the pod of this process.
    #[must_use]
    pub fn new(deadline: Moment, overdue: bool, own_pod: Option<PodName>) -> Self {
        Self {
            deadline,
            overdue,
            own_pod,
            round: Round::Pausing { until: Moment::ZERO },
            remaining: Vec::new(),
            refusals: HashMap::new(),
            told_blocked: false,
            looked_again: false,
        }
    }

    /// Takes what happened and says what is to be done.
    pub fn step(&mut self, input: Input, now: Moment) -> Vec<Todo> {
        let mut todo = Vec::new();
        match input {
            Input::Time => {}
            Input::Sooner(deadline) => self.deadline = self.deadline.min(deadline),
            Input::Listed(pods) => self.listed(pods, &mut todo),
            Input::ListFailed => self.list_failed(now, &mut todo),
            Input::Answered { uid, answer } => self.answered(&uid, &answer, &mut todo),
        }
        self.advance(now, &mut todo);
        todo
    }

    fn listed(&mut self, pods: Vec<PodView>, todo: &mut Vec<Todo>) {
        let Round::Listing { last } = self.round else { return };
        self.remaining = pods;
        self.refusals.retain(|uid, _| self.remaining.iter().any(|pod| pod.uid == *uid));
        if self.remaining.is_empty() && !self.overdue {
            return self.end(Outcome::Drained, todo);
        }
        if last {
            return self.fail(todo);
        }
        let mut round = Evicting::default();
        for pod in self.remaining.iter().filter(|pod| !pod.terminating) {
            if Some(&pod.name) == self.own_pod.as_ref() {
                round.own = Some(pod.clone());
            } else {
                round.waiting.push_back(pod.clone());
            }
        }
        self.round = Round::Evicting(round);
    }

    fn list_failed(&mut self, now: Moment, todo: &mut Vec<Todo>) {
        let Round::Listing { last } = self.round else { return };
        if last {
            return self.fail(todo);
        }
        self.round = Round::Pausing { until: now + PAUSE };
    }

    fn answered(&mut self, uid: &Arc<str>, answer: &Answer, todo: &mut Vec<Todo>) {
        let (refusal, pause, blocked) = match answer {
            Answer::Going => (Some("terminating"), None, false),
            Answer::Conflict | Answer::NotSent => (None, None, false),
            Answer::Blocked(text, pause) => (Some(text.as_str()), *pause, true),
            Answer::Forbidden(text) => (Some(text.as_str()), None, true),
            Answer::Failing(text, pause) => (Some(text.as_str()), *pause, false),
        };
        if let Some(refusal) = refusal {
            let refusal: Arc<str> = refusal.into();
            let pod = self.remaining.iter().find(|pod| pod.uid == *uid);
            if let (true, false, Some(pod)) = (blocked, self.told_blocked, pod) {
                self.told_blocked = true;
                todo.push(Todo::TellBlocked(pod.name.clone(), refusal.clone()));
            }
            self.refusals.insert(uid.clone(), refusal);
        }
        // An answer may come after its round was cut off by the deadline.
        if let Round::Evicting(round) = &mut self.round {
            round.in_flight = round.in_flight.saturating_sub(1);
            round.pause = round.pause.max(pause);
            round.conflict |= *answer == Answer::Conflict;
        }
    }

    fn advance(&mut self, now: Moment, todo: &mut Vec<Todo>) {
        let closing = matches!(self.round, Round::Ended | Round::Listing { last: true });
        if now >= self.deadline && !closing {
            // Pods may have gone since the last look.
            self.round = Round::Listing { last: true };
            todo.push(Todo::List);
            return;
        }
        match &mut self.round {
            Round::Evicting(round) => {
                while round.in_flight < AT_ONCE {
                    let own_turn = round.waiting.is_empty() && round.in_flight == 0;
                    let own = || if own_turn { round.own.take() } else { None };
                    let Some(pod) = round.waiting.pop_front().or_else(own) else { break };
                    round.in_flight += 1;
                    todo.push(Todo::Evict(pod));
                }
                if round.in_flight == 0 {
                    // What was listed is no longer true: look again at once, but not forever.
                    let again = round.conflict && !self.looked_again;
                    let pause = if again { Duration::ZERO } else { round.pause.unwrap_or(PAUSE) };
                    self.looked_again = again;
                    self.round = Round::Pausing { until: now + pause };
                    self.advance(now, todo);
                }
            }
            Round::Pausing { until } if *until <= now => {
                self.round = Round::Listing { last: false };
                todo.push(Todo::List);
            }
            Round::Pausing { until } => todo.push(Todo::Wake((*until).min(self.deadline))),
            Round::Listing { .. } | Round::Ended => {}
        }
    }

    fn fail(&mut self, todo: &mut Vec<Todo>) {
        let reason = |pod: &PodView| match self.refusals.get(&pod.uid) {
            _ if pod.terminating => "terminating".into(),
            Some(refusal) => refusal.clone(),
            None => "not evicted".into(),
        };
        let named = self.remaining.iter().take(NAMED);
        let named = named.map(|pod| (pod.name.clone(), reason(pod))).collect();
        let remaining = Remaining { count: self.remaining.len(), named };
        self.end(Outcome::Failed(remaining), todo);
    }

    fn end(&mut self, outcome: Outcome, todo: &mut Vec<Todo>) {
        self.round = Round::Ended;
        todo.push(Todo::End(outcome));
    }
}

/// The grace to ask for when the pod's own exceeds the time left. Never 0: that would kill the pod
/// without asking it.
pub(super) fn shortened(own: i64, left: Duration) -> Option<i64> {
    let left = i64::try_from(left.as_millis().div_ceil(1_000)).unwrap_or(i64::MAX).max(1);
    (own > left).then_some(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str) -> PodView {
        PodView {
            name: PodName { namespace: "ns".into(), name: name.into() },
            uid: format!("uid-{name}").into(),
            terminating: false,
            grace_seconds: 30,
        }
    }

    fn at(seconds: u64) -> Moment {
        Moment::from_secs(seconds)
    }

    fn evicted(todo: &[Todo]) -> Vec<&str> {
        todo.iter()
            .filter_map(|todo| match todo {
                Todo::Evict(pod) => Some(&*pod.name.name),
                _ => None,
            })
            .collect()
    }

    fn answered(name: &str, answer: Answer) -> Input {
        Input::Answered { uid: format!("uid-{name}").into(), answer }
    }

    fn blocked() -> Answer {
        Answer::Blocked("disruption budget".into(), None)
    }

    #[test]
    fn lists_evicts_and_ends_when_all_are_gone() {
        let mut drain = Drain::new(at(60), false, None);
        assert_eq!(drain.step(Input::Time, at(0)), [Todo::List]);
        let todo = drain.step(Input::Listed(vec![pod("a"), pod("b")]), at(0));
        assert_eq!(evicted(&todo), ["a", "b"]);
        assert_eq!(drain.step(answered("a", Answer::Going), at(1)), []);
        assert_eq!(drain.step(answered("b", Answer::Going), at(1)), [Todo::Wake(at(3))]);
        assert_eq!(drain.step(Input::Time, at(3)), [Todo::List]);
        let leaving = PodView { terminating: true, ..pod("a") };
        let todo = drain.step(Input::Listed(vec![leaving]), at(3));
        assert_eq!(todo, [Todo::Wake(at(5))], "who leaves is waited for, not evicted again");
        assert_eq!(drain.step(Input::Time, at(5)), [Todo::List]);
        assert_eq!(drain.step(Input::Listed(vec![]), at(5)), [Todo::End(Outcome::Drained)]);
        assert_eq!(drain.step(Input::Time, at(60)), []);
    }

    #[test]
    fn at_most_ten_at_once_and_our_own_last() {
        let own = pod("own");
        let mut drain = Drain::new(at(60), false, Some(own.name.clone()));
        drain.step(Input::Time, at(0));
        let mut pods = vec![own];
        pods.extend((0..12).map(|n| pod(&n.to_string())));
        let todo = drain.step(Input::Listed(pods), at(0));
        assert_eq!(evicted(&todo).len(), AT_ONCE);
        let mut later = Vec::new();
        for n in 0..12 {
            let todo = drain.step(answered(&n.to_string(), blocked()), at(1));
            later.extend(evicted(&todo).into_iter().map(str::to_owned));
        }
        assert_eq!(later, ["10", "11", "own"]);
    }

    #[test]
    fn nothing_is_evicted_once_the_deadline_has_passed() {
        let mut drain = Drain::new(at(10), false, None);
        drain.step(Input::Time, at(0));
        let pods: Vec<_> = (0..12).map(|n| pod(&n.to_string())).collect();
        drain.step(Input::Listed(pods.clone()), at(0));
        assert_eq!(drain.step(answered("0", Answer::Going), at(10)), [Todo::List]);
        assert_eq!(drain.step(answered("1", blocked()), at(10)).len(), 1, "only told");
        let todo = drain.step(Input::Listed(pods), at(10));
        let [Todo::End(Outcome::Failed(remaining))] = &todo[..] else { panic!("{todo:?}") };
        assert_eq!(
            remaining.to_string(),
            "drain: grace period exceeded: 12 pods remain: ns/0 (terminating), \
             ns/1 (disruption budget), ns/2 (not evicted)…"
        );
    }

    #[test]
    fn pods_that_went_at_the_last_moment_are_gone() {
        let mut drain = Drain::new(at(10), false, None);
        drain.step(Input::Time, at(0));
        drain.step(Input::Listed(vec![pod("a")]), at(0));
        drain.step(answered("a", Answer::Going), at(9));
        assert_eq!(drain.step(Input::Time, at(10)), [Todo::List]);
        assert_eq!(drain.step(Input::Listed(vec![]), at(10)), [Todo::End(Outcome::Drained)]);
    }

    #[test]
    fn the_deadline_comes_though_the_server_is_away() {
        let mut drain = Drain::new(at(3), false, None);
        drain.step(Input::Time, at(0));
        assert_eq!(drain.step(Input::ListFailed, at(0)), [Todo::Wake(at(2))]);
        assert_eq!(drain.step(Input::Time, at(2)), [Todo::List]);
        assert_eq!(drain.step(Input::ListFailed, at(3)), [Todo::List]);
        let todo = drain.step(Input::ListFailed, at(4));
        assert!(matches!(&todo[..], [Todo::End(Outcome::Failed(_))]), "{todo:?}");
    }

    #[test]
    fn an_earlier_deadline_takes_effect_at_once() {
        let mut drain = Drain::new(at(60), false, None);
        drain.step(Input::Time, at(0));
        drain.step(Input::Listed(vec![pod("a")]), at(0));
        drain.step(answered("a", blocked()), at(0));
        assert_eq!(drain.step(Input::Sooner(at(90)), at(1)), [Todo::Wake(at(2))]);
        assert_eq!(drain.step(Input::Sooner(at(1)), at(1)), [Todo::List]);
    }

    #[test]
    fn a_conflict_looks_again_at_once_but_only_once() {
        let mut drain = Drain::new(at(60), false, None);
        drain.step(Input::Time, at(0));
        drain.step(Input::Listed(vec![pod("a")]), at(0));
        assert_eq!(drain.step(answered("a", Answer::Conflict), at(0)), [Todo::List]);
        drain.step(Input::Listed(vec![pod("a")]), at(0));
        assert_eq!(drain.step(answered("a", Answer::Conflict), at(0)), [Todo::Wake(at(2))]);
    }

    #[test]
    fn blocked_is_told_once_and_the_server_names_the_pause() {
        let mut drain = Drain::new(at(60), false, None);
        drain.step(Input::Time, at(0));
        drain.step(Input::Listed(vec![pod("a"), pod("b")]), at(0));
        let answer = Answer::Blocked("budget".into(), Some(Duration::from_secs(7)));
        let todo = drain.step(answered("a", answer), at(0));
        assert_eq!(todo, [Todo::TellBlocked(pod("a").name, "budget".into())]);
        assert_eq!(drain.step(answered("b", blocked()), at(0)), [Todo::Wake(at(7))]);
    }

    #[test]
    fn what_was_overdue_at_the_start_fails() {
        let mut drain = Drain::new(at(0), true, None);
        assert_eq!(drain.step(Input::Time, at(0)), [Todo::List]);
        let todo = drain.step(Input::Listed(vec![]), at(0));
        let [Todo::End(Outcome::Failed(remaining))] = &todo[..] else { panic!("{todo:?}") };
        assert_eq!(remaining.to_string(), "drain: grace period exceeded: 0 pods remain");
    }

    #[test]
    fn the_grace_is_cut_only_where_it_exceeds_the_time_left() {
        assert_eq!(shortened(30, Duration::from_secs(30)), None);
        assert_eq!(shortened(30, Duration::from_millis(29_001)), None);
        assert_eq!(shortened(31, Duration::from_secs(30)), Some(30));
        assert_eq!(shortened(30, Duration::from_millis(10)), Some(1));
        assert_eq!(shortened(0, Duration::ZERO), None);
    }
}
