//! What every roll-up must hold at least.
//!
//! A request that is Acknowledged was in a roll-up that the shard took, so from then on its pod is
//! in each one for as long as it lives. Times are those of the wall clock, which roll-ups carry.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bigfleet_crds::{CapacityRequest, CapacityRequestPhase, keys};
use bigfleet_wire::v1alpha1::ClusterCapacityNeeds;
use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, ResourceExt,
    runtime::watcher::{self, Event, watcher},
};
use tokio::task::JoinHandle;

use super::churn::{self, PROCESSORS};

/// Nanoseconds since 1970.
pub(crate) type Time = i64;

const SECOND: Time = 1_000_000_000;

/// A pod that ended was not seen to do so at once.
const LAG: Time = 3 * SECOND;

/// After a watch broke.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(500);

pub(crate) fn now() -> Time {
    Time::try_from(jiff::Timestamp::now().as_nanosecond()).unwrap()
}

#[derive(Debug, Default)]
struct Life {
    /// Which needs its demand is in.
    bucket: Option<i32>,
    counted: Option<Time>,
    ended: Option<Time>,
}

/// The pods of all time.
#[derive(Debug, Default)]
struct Book {
    lives: HashMap<String, Life>,
    /// Requests that stand, by the pod that they are for.
    requests: HashMap<String, HashSet<String>>,
    /// Pods that have had several requests at once.
    twins: Vec<String>,
    heard: Time,
}

impl Book {
    fn life(&mut self, pod: &str) -> &mut Life {
        self.lives.entry(pod.to_owned()).or_default()
    }

    fn pod(&mut self, pod: &Pod, now: Time) {
        let Some(bucket) = pod.labels().get("app").and_then(|app| churn::bucket(app)) else {
            return;
        };
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        let ended = leaves(pod).or_else(|| match phase {
            Some("Succeeded" | "Failed") => Some(now - LAG),
            _ => None,
        });
        let life = self.life(&pod.uid().unwrap_or_default());
        life.bucket = Some(bucket);
        life.ended = life.ended.or(ended);
    }

    fn pod_gone(&mut self, uid: &str, at: Time) {
        let life = self.life(uid);
        life.ended = life.ended.or(Some(at));
    }

    fn request(&mut self, request: &CapacityRequest, now: Time) {
        let Some(pod) = request.labels().get(keys::OWNED_BY_POD) else { return };
        let requests = self.requests.entry(pod.clone()).or_default();
        requests.insert(request.name_any());
        if requests.len() > 1 {
            self.twins.push(format!("{pod}: {requests:?}"));
        }
        if request.phase() == CapacityRequestPhase::Acknowledged {
            let life = self.life(pod);
            life.counted = life.counted.or(Some(now));
        }
    }

    fn request_gone(&mut self, request: &CapacityRequest) {
        if let Some(pod) = request.labels().get(keys::OWNED_BY_POD) {
            self.requests.entry(pod.clone()).or_default().remove(&request.name_any());
        }
    }

    /// Milliprocessors that a roll-up of this time holds at least, by bucket.
    fn floor(&self, at: Time) -> BTreeMap<i32, i64> {
        let mut floor = BTreeMap::new();
        let held = self.lives.values().filter(|life| {
            life.counted.is_some_and(|counted| counted < at)
                && life.ended.is_none_or(|ended| ended > at)
        });
        for bucket in held.filter_map(|life| life.bucket) {
            *floor.entry(bucket).or_default() += PROCESSORS * 1000;
        }
        floor
    }
}

/// What a roll-up says too little of.
fn lacks(roll_up: &ClusterCapacityNeeds, floor: &BTreeMap<i32, i64>) -> Vec<String> {
    let (said, at) = (churn::demand(roll_up), roll_up.timestamp_unix_nanos);
    let short = floor.iter().filter_map(|(bucket, least)| {
        let said = said.get(bucket).copied().unwrap_or_default();
        (said < *least).then(|| format!("bucket {bucket} at {at}: {said}m of {least}m"))
    });
    short.collect()
}

/// When a pod was asked to leave, at the latest; whole seconds are all that it says.
fn leaves(pod: &Pod) -> Option<Time> {
    let at = pod.metadata.deletion_timestamp.as_ref()?.0.as_second();
    let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or_default();
    Some((at - grace) * SECOND)
}

/// A book that is being written; dropping it closes it.
pub(crate) struct Ledger {
    book: Arc<Mutex<Book>>,
    tasks: [JoinHandle<()>; 2],
}

impl Ledger {
    pub(crate) fn start(client: &Client) -> Self {
        let book = Arc::<Mutex<Book>>::default();
        let pods = tokio::spawn(follow_pods(Api::all(client.clone()), book.clone()));
        let requests = tokio::spawn(follow_requests(Api::all(client.clone()), book.clone()));
        Self { book, tasks: [pods, requests] }
    }

    /// What a roll-up lacks, and how much it had to hold.
    pub(crate) fn judge(&self, roll_up: &ClusterCapacityNeeds) -> (Vec<String>, i64) {
        let floor = lock(&self.book).floor(roll_up.timestamp_unix_nanos);
        (lacks(roll_up, &floor), floor.values().sum())
    }

    pub(crate) fn twins(&self) -> Vec<String> {
        lock(&self.book).twins.clone()
    }

    /// Pods so far, and how many of them were counted.
    pub(crate) fn pods(&self) -> (usize, usize) {
        let book = lock(&self.book);
        let lives = book.lives.values().filter(|life| life.bucket.is_some());
        let counted = lives.clone().filter(|life| life.counted.is_some()).count();
        (lives.count(), counted)
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

fn lock(book: &Mutex<Book>) -> MutexGuard<'_, Book> {
    book.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn follow_pods(api: Api<Pod>, book: Arc<Mutex<Book>>) {
    let mut events = Box::pin(watcher(api, watcher::Config::default()));
    let mut listed = HashSet::new();
    while let Some(event) = events.next().await {
        let Ok(event) = event else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let (mut book, now) = (lock(&book), now());
        match event {
            Event::Init => listed.clear(),
            Event::InitApply(pod) => {
                book.pod(&pod, now);
                listed.insert(pod.uid().unwrap_or_default());
            }
            Event::InitDone => {
                // They went while nobody looked.
                let at = book.heard - LAG;
                for (uid, life) in &mut book.lives {
                    // One that only its request was seen of may have come after the list.
                    if life.bucket.is_some() && !listed.contains(uid) {
                        life.ended = life.ended.or(Some(at));
                    }
                }
            }
            Event::Apply(pod) => book.pod(&pod, now),
            Event::Delete(pod) => {
                book.pod(&pod, now);
                book.pod_gone(&pod.uid().unwrap_or_default(), now - LAG);
            }
        }
        book.heard = now;
    }
}

async fn follow_requests(api: Api<CapacityRequest>, book: Arc<Mutex<Book>>) {
    let mut events = Box::pin(watcher(api, watcher::Config::default()));
    while let Some(event) = events.next().await {
        let Ok(event) = event else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let mut book = lock(&book);
        match event {
            Event::Init => book.requests.clear(),
            Event::InitDone => {}
            Event::InitApply(request) | Event::Apply(request) => book.request(&request, now()),
            Event::Delete(request) => book.request_gone(&request),
        }
    }
}

#[cfg(test)]
mod tests {
    use bigfleet_wire::v1alpha1::CapacityNeed;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time as Stamp};
    use serde_json::json;

    use super::*;

    fn pod(uid: &str, leaves: Option<i64>) -> Pod {
        let second = |second| Stamp(jiff::Timestamp::from_second(second).unwrap());
        Pod {
            metadata: ObjectMeta {
                uid: Some(uid.to_owned()),
                labels: Some([("app".to_owned(), churn::WORKLOADS[0].name.to_owned())].into()),
                deletion_timestamp: leaves.map(|at| second(at + 30)),
                deletion_grace_period_seconds: leaves.map(|_| 30),
                ..ObjectMeta::default()
            },
            ..Pod::default()
        }
    }

    fn request(name: &str, pod: &str, phase: &str) -> CapacityRequest {
        serde_json::from_value(json!({
            "apiVersion": "bigfleet.lucy.sh/v1alpha1", "kind": "CapacityRequest",
            "metadata": {"name": name, "labels": {(keys::OWNED_BY_POD): pod}},
            "spec": {"priority": 0, "resources": {}},
            "status": {"phase": phase},
        }))
        .unwrap()
    }

    #[test]
    fn a_pod_is_held_from_its_acknowledgement_to_its_end() {
        let mut book = Book::default();
        let bucket = churn::WORKLOADS[0].bucket;
        let floor = |book: &Book, second: Time| book.floor(second * SECOND);
        book.pod(&pod("one", None), 10 * SECOND);
        book.pod(&pod("two", None), 10 * SECOND);
        book.request(&request("r", "one", "Pending"), 11 * SECOND);
        assert_eq!(floor(&book, 12), BTreeMap::new());
        book.request(&request("r", "one", "Acknowledged"), 12 * SECOND);
        assert_eq!(floor(&book, 12), BTreeMap::new());
        let one = BTreeMap::from([(bucket, PROCESSORS * 1000)]);
        assert_eq!(floor(&book, 13), one);
        let mut need = CapacityNeed {
            interruption_penalty_bucket: bucket,
            aggregate_resources: [("cpu".to_owned(), PROCESSORS.to_string())].into(),
            ..CapacityNeed::default()
        };
        let roll_up = |need: &CapacityNeed| ClusterCapacityNeeds {
            needs: vec![need.clone()],
            ..ClusterCapacityNeeds::default()
        };
        assert_eq!(lacks(&roll_up(&need), &one), Vec::<String>::new());
        need.interruption_penalty_bucket += 1;
        assert_eq!(lacks(&roll_up(&need), &one).len(), 1, "the demand of others is no help");
        book.pod(&pod("one", Some(20)), 22 * SECOND);
        book.pod_gone("one", 24 * SECOND);
        assert_eq!(floor(&book, 19), one);
        assert_eq!(floor(&book, 20), BTreeMap::new());
        assert_eq!(book.twins, Vec::<String>::new());
        book.request(&request("s", "one", "Pending"), 30 * SECOND);
        assert_eq!(book.twins.len(), 1);
    }
}
