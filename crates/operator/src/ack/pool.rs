//! The workers that stamp requests. They belong to the process and not to a session:
//! what a shard accepted stays accepted.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use bigfleet_in_cluster::{Lane, ObjectKey, events::Recorder, refusal};
use bigfleet_net::shutdown::Shutdown;
use foldhash::fast::RandomState;
use hashbrown::HashSet;
use k8s_openapi::api::core::v1::ObjectReference;
use tokio::{sync::Notify, task::JoinSet};

use crate::{
    metrics::Metrics,
    rollup::{Candidate, Uid},
    status::{Outcome, Say, StatusWriter},
};

/// Something to write to a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Job {
    /// The shard has accepted it.
    Acknowledge(ObjectKey, Uid),
    /// Its condition `Translatable` is to tell the truth.
    Translatable(ObjectKey, Uid),
}

/// Writes what it is offered, each job once at a time. Share it in an `Arc`.
#[derive(Debug)]
pub struct Pool {
    writer: Arc<StatusWriter>,
    metrics: Arc<Metrics>,
    events: Recorder,
    queue: Mutex<Queue>,
    offered: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<(Job, Arc<Batch>)>,
    /// Waiting or under way.
    known: HashSet<Job, RandomState>,
}

/// Jobs that were offered together; told of when the last of them is done.
#[derive(Debug)]
struct Batch {
    metrics: Arc<Metrics>,
    since: Instant,
    failed: Mutex<(usize, String)>,
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.metrics.acknowledge_duration.observe(self.since.elapsed().as_secs_f64());
        let failed = self.failed.get_mut().unwrap_or_else(PoisonError::into_inner);
        if failed.0 > 0 {
            let (count, problem) = (failed.0, &failed.1);
            tracing::warn!(count, problem, "requests not stamped; the next cycle tries again");
        }
    }
}

impl Pool {
    /// No work yet.
    #[must_use]
    pub fn new(writer: Arc<StatusWriter>, metrics: Arc<Metrics>, events: Recorder) -> Self {
        Self { writer, metrics, events, queue: Mutex::default(), offered: Notify::new() }
    }

    /// These requests were accepted by the shard.
    pub fn acknowledge(&self, candidates: &[Candidate]) {
        let job = |one: &Candidate| Job::Acknowledge(one.key.clone(), one.uid);
        self.offer(candidates.iter().map(job));
    }

    /// Work, of which any part may be known already.
    pub fn offer(&self, jobs: impl IntoIterator<Item = Job>) {
        let batch = || Batch {
            metrics: self.metrics.clone(),
            since: Instant::now(),
            failed: Mutex::default(),
        };
        let mut made = None;
        let mut queue = self.queue();
        for job in jobs {
            if queue.known.insert(job.clone()) {
                let batch = made.get_or_insert_with(|| Arc::new(batch())).clone();
                queue.waiting.push_back((job, batch));
                self.offered.notify_one();
            }
        }
    }

    /// Works with so many hands until the stop is asked for.
    pub async fn run(self: Arc<Self>, concurrency: usize, shutdown: Shutdown) {
        let mut hands = JoinSet::new();
        for _ in 0..concurrency.max(1) {
            let (pool, shutdown) = (self.clone(), shutdown.clone());
            hands.spawn(async move {
                tokio::select! {
                    () = shutdown.requested() => {}
                    () = pool.work() => {}
                }
            });
        }
        while hands.join_next().await.is_some() {}
    }

    async fn work(&self) {
        loop {
            let next = self.queue().waiting.pop_front();
            let Some((job, batch)) = next else {
                self.offered.notified().await;
                continue;
            };
            // Of several that sleep only one was woken, perhaps for several jobs.
            self.offered.notify_one();
            if let Err(error) = self.write(&job).await {
                let mut failed = batch.failed.lock().unwrap_or_else(PoisonError::into_inner);
                *failed = (failed.0 + 1, error.to_string());
            }
            self.queue().known.remove(&job);
        }
    }

    async fn write(&self, job: &Job) -> Result<(), kube::Error> {
        match job {
            Job::Acknowledge(key, uid) => {
                let said = self.writer.say(key, *uid, &Say::Acknowledged, Lane::Acknowledge).await;
                if said? == Outcome::Written {
                    self.metrics.acknowledged.inc();
                }
            }
            Job::Translatable(key, uid) => self.translatable(key, *uid).await?,
        }
        Ok(())
    }

    async fn translatable(&self, key: &ObjectKey, uid: Uid) -> Result<(), kube::Error> {
        let Some(request) = self.writer.requests().get(key) else { return Ok(()) };
        let truth = request.demand.as_ref().map(drop).map_err(Clone::clone);
        let say = Say::Translatable(truth.clone());
        let said = self.writer.say(key, uid, &say, Lane::Acknowledge).await;
        match said {
            Ok(Outcome::Written) => {}
            // The cache was behind; what it shows then is looked at in the next cycle.
            Err(error) if refusal::code(&error) == Some(409) => return Ok(()),
            Ok(_) => return Ok(()),
            Err(error) => return Err(error),
        }
        if let Err(why) = truth {
            self.events.warning(reference(key, uid), "Untranslatable", why.to_string());
        }
        Ok(())
    }

    /// Jobs that wait or are under way.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        self.queue().known.len()
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Every change is complete, so a poisoned lock guards good data.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request, for an event.
fn reference(key: &ObjectKey, uid: Uid) -> ObjectReference {
    ObjectReference {
        api_version: Some(format!("{}/{}", bigfleet_crds::GROUP, bigfleet_crds::VERSION)),
        kind: Some("CapacityRequest".to_owned()),
        namespace: key.namespace.as_deref().map(str::to_owned),
        name: Some(key.name.to_string()),
        uid: Some(uid.to_string()),
        ..ObjectReference::default()
    }
}
