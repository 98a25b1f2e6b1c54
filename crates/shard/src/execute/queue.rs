//! The one queue between the cycle and the workers (§7).

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use bigfleet_model::{ClusterId, MachineId};
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tokio::sync::Notify;

use crate::outcome::Kind;

/// One step for a worker; the action itself is with the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) machine: MachineId,
    pub(crate) kind: Kind,
    /// The decision it belongs to: a machine may be in another action by the time
    /// its turn comes.
    pub(crate) decision: i64,
    pub(crate) step: Step,
}

/// What the worker does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The action from its beginning. With a cluster, it waits for its blob.
    Act(Option<ClusterId>),
    /// The provider's part of a drain that an operator has done its part of.
    Drain,
}

/// Bounded, and never waited for by whoever fills it.
pub(crate) struct Queue {
    state: Mutex<State>,
    filled: Notify,
    capacity: usize,
    /// Workers that may wait for one cluster's blob.
    per_cluster: usize,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// Jobs by kind; those of an operator's drain are not counted.
    queued: [usize; Kind::ALL.len()],
    /// Workers that wait for a cluster's blob.
    waiting: HashMap<ClusterId, usize, RandomState>,
    running: usize,
    closed: bool,
}

/// The queue had no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl Queue {
    pub(crate) fn new(concurrency: usize) -> Self {
        Self {
            state: Mutex::default(),
            filled: Notify::new(),
            capacity: 2 * concurrency.max(1),
            per_cluster: (concurrency / 4).max(4),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Jobs it takes at most, shared and own places together.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity.max(Kind::ALL.len() * self.own_places())
    }

    /// Places that a kind need not share, so that drains do not starve behind
    /// acquisitions.
    fn own_places(&self) -> usize {
        (self.capacity / 8).max(1)
    }

    /// Whether there is a place for one more. It stays for whoever asks while
    /// nobody else puts jobs in.
    pub(crate) fn has_place(&self, kind: Kind) -> bool {
        self.has_place_in(&self.lock(), kind)
    }

    fn has_place_in(&self, state: &State, kind: Kind) -> bool {
        let own = self.own_places();
        let shared = self.capacity.saturating_sub(Kind::ALL.len() * own);
        let sharing: usize = state.queued.iter().map(|queued| queued.saturating_sub(own)).sum();
        !state.closed && (state.queued[kind as usize] < own || sharing < shared)
    }

    /// Takes a job, or says at once that there is no place.
    pub(crate) fn push(&self, job: Job) -> Result<(), Full> {
        let mut state = self.lock();
        if !self.has_place_in(&state, job.kind) {
            return Err(Full);
        }
        state.queued[job.kind as usize] += 1;
        state.jobs.push_back(job);
        drop(state);
        self.filled.notify_one();
        Ok(())
    }

    /// Takes the provider's part of a drain, always: there is one per machine, and
    /// it may not come late.
    pub(crate) fn push_drain(&self, machine: MachineId, kind: Kind, decision: i64) {
        self.lock().jobs.push_front(Job { machine, kind, decision, step: Step::Drain });
        self.filled.notify_one();
    }

    /// The next job whose cluster has not too many workers waiting for it; `None`
    /// once closed.
    pub(crate) async fn next(&self) -> Option<Job> {
        loop {
            let filled = self.filled.notified();
            {
                let mut state = self.lock();
                if state.closed {
                    return None;
                }
                if let Some(job) = state.take(self.per_cluster) {
                    state.running += 1;
                    let more = !state.jobs.is_empty();
                    drop(state);
                    if more {
                        self.filled.notify_one();
                    }
                    return Some(job);
                }
            }
            filled.await;
        }
    }

    /// A worker is free again.
    pub(crate) fn done(&self) {
        self.lock().running -= 1;
    }

    /// A worker waits no longer for a cluster's blob.
    pub(crate) fn blob_done(&self, cluster: &ClusterId) {
        let mut state = self.lock();
        if let Some(waiting) = state.waiting.get_mut(cluster) {
            *waiting -= 1;
            if *waiting == 0 {
                state.waiting.remove(cluster);
            }
        }
        drop(state);
        self.filled.notify_one();
    }

    /// Drops what is queued and hands it back; the queue goes on.
    pub(crate) fn drain(&self) -> Vec<Job> {
        let mut state = self.lock();
        state.queued = Default::default();
        std::mem::take(&mut state.jobs).into()
    }

    /// Ends it: workers finish what they have, and nothing more is taken.
    pub(crate) fn close(&self) -> Vec<Job> {
        self.lock().closed = true;
        self.filled.notify_waiters();
        self.drain()
    }

    /// Jobs that wait.
    pub(crate) fn depth(&self) -> usize {
        self.lock().jobs.len()
    }

    /// Workers that have a job.
    pub(crate) fn running(&self) -> usize {
        self.lock().running
    }
}

impl State {
    fn take(&mut self, per_cluster: usize) -> Option<Job> {
        let free = |job: &Job| match &job.step {
            Step::Act(Some(cluster)) => {
                self.waiting.get(cluster).is_none_or(|waiting| *waiting < per_cluster)
            }
            _ => true,
        };
        let at = self.jobs.iter().position(free)?;
        let job = self.jobs.remove(at)?;
        match &job.step {
            Step::Act(cluster) => {
                self.queued[job.kind as usize] -= 1;
                if let Some(cluster) = cluster {
                    *self.waiting.entry_ref(cluster).or_default() += 1;
                }
            }
            Step::Drain => {}
        }
        Some(job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(machine: &str, kind: Kind, cluster: Option<&str>) -> Job {
        let step = Step::Act(cluster.map(Into::into));
        Job { machine: machine.into(), kind, decision: 0, step }
    }

    #[test]
    fn each_kind_has_places_of_its_own() {
        let queue = Queue::new(16);
        let fills = |kind| (0..).take_while(|_| queue.push(job("m", kind, None)).is_ok()).count();
        assert_eq!(fills(Kind::Provision), 4 + 12, "its own and all shared ones");
        for kind in [Kind::Bootstrap, Kind::Reclaim, Kind::Preempt, Kind::Delete] {
            assert_eq!(fills(kind), 4, "{kind}");
        }
        assert_eq!(queue.depth(), queue.capacity());
        queue.push_drain("m".into(), Kind::Reclaim, 0);
        assert_eq!(queue.depth(), queue.capacity() + 1, "a drain under way is never refused");
    }

    #[test]
    fn a_small_queue_has_one_place_for_each_kind() {
        let queue = Queue::new(1);
        for kind in Kind::ALL {
            assert_eq!(queue.push(job("m", *kind, None)), Ok(()));
            assert_eq!(queue.push(job("m", *kind, None)), Err(Full));
        }
        assert_eq!(queue.depth(), queue.capacity());
    }

    #[tokio::test]
    async fn one_cluster_holds_up_only_some_workers() {
        let queue = Queue::new(16);
        for at in 0..6 {
            queue.push(job(&format!("a{at}"), Kind::Bootstrap, Some("slow"))).unwrap();
        }
        queue.push(job("b", Kind::Bootstrap, Some("quick"))).unwrap();
        let mut taken = Vec::new();
        for _ in 0..5 {
            taken.push(queue.next().await.unwrap().machine.to_string());
        }
        assert_eq!(taken, ["a0", "a1", "a2", "a3", "b"]);
        assert!(tokio::time::timeout(std::time::Duration::ZERO, queue.next()).await.is_err());
        queue.blob_done(&"slow".into());
        assert_eq!(queue.next().await.unwrap().machine.as_str(), "a4");
        assert_eq!(queue.running(), 6);
    }
}
