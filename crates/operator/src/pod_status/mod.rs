//! What a waiting pod is told (§4.1): a condition of its request, and an event.

mod limits;
mod needs;
mod plan;
mod words;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bigfleet_in_cluster::{
    Lane, ObjectKey, Paced,
    events::{Kind, Note, Recorder},
};
use bigfleet_model::unmet;
use bigfleet_net::shutdown::Shutdown;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ObjectReference, Pod};
use kube::{Api, api::ListParams, core::PartialObjectMeta};
pub use limits::{CONDITIONS, EVENTS, Limits, Permit};
use needs::NeedRef;
pub use needs::{NeedKey, Needs, Standing};
use plan::{Concerned, Waiting, plan};
use tokio::time::{Instant, MissedTickBehavior, interval};
use words::Words;

use crate::{metrics::Metrics, rollup::Uid, session::Lead, status::StatusWriter};

/// Between two rounds.
const EVERY: Duration = Duration::from_secs(30);

/// Pods of one page; only their metadata is asked for.
const PAGE: u32 = 500;

/// Tells waiting pods. Share it in an `Arc`.
#[derive(Debug)]
pub struct PodStatus {
    paced: Paced,
    needs: Arc<Needs>,
    writer: Arc<StatusWriter>,
    events: Recorder,
    metrics: Arc<Metrics>,
    limits: Mutex<Limits>,
    enabled: bool,
}

impl PodStatus {
    /// Tells nothing if not `enabled`.
    #[must_use]
    pub fn new(
        paced: Paced,
        needs: Arc<Needs>,
        writer: Arc<StatusWriter>,
        events: Recorder,
        metrics: Arc<Metrics>,
        enabled: bool,
    ) -> Self {
        Self { paced, needs, writer, events, metrics, limits: Mutex::default(), enabled }
    }

    /// Tells every half minute until the stop is asked for.
    pub async fn run(&self, lead: Lead, shutdown: Shutdown) {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let round = async {
                ticks.tick().await;
                self.count();
                if self.enabled && lead.is_leading() {
                    self.round().await;
                }
            };
            tokio::select! {
                () = shutdown.requested() => return,
                () = round => {}
            }
        }
    }

    fn count(&self) {
        let counts = self.needs.unmet();
        for name in unmet::NAMES {
            self.metrics.needs_unmet(name, counts.get(name).copied().unwrap_or(0));
        }
    }

    /// One round; without a need that wants anything it asks the API server nothing, and writes
    /// only where a request still says that a need is unmet which no longer is.
    pub async fn round(&self) {
        let wanting: HashMap<NeedKey, Words, RandomState> =
            self.needs.wanting().iter().map(|(key, now)| (key.clone(), Words::of(now))).collect();
        let met = self.needs.silence_is_met().then(Words::met);
        let waiting = match wanting.is_empty() {
            true => Ok(Vec::new()),
            false => self.waiting().await,
        };
        let waiting = match waiting {
            Ok(waiting) => waiting,
            Err(error) => {
                tracing::debug!(%error, "waiting pods not listed; tried again in half a minute");
                return;
            }
        };
        let concerned = self.concerned(&wanting, met.as_ref());
        let plan = {
            let mut limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
            plan(waiting, concerned, &mut limits, Instant::now())
        };
        self.metrics.pod_status_skipped.inc_by(plan.skipped);
        for (pod, words) in &plan.events {
            let kind = if words.met { Kind::Normal } else { Kind::Warning };
            let (reason, message) = (words.reason.clone(), words.message.clone());
            let regarding = reference(&pod.key, pod.uid);
            self.events.note(Note { kind, reason, message, regarding });
        }
        for one in &plan.conditions {
            let said = self.writer.say(&one.key, one.uid, &one.words.say(), Lane::PodStatus).await;
            if let Err(error) = said {
                tracing::debug!(key = %one.key, %error, "condition not written");
            }
        }
    }

    /// Requests of needs that want something, and with `met` also those that say of any other
    /// need that it is unmet: what they say is left from another session, or the limits of the
    /// minute in which it was met have left them out.
    fn concerned<'a>(
        &self,
        wanting: &'a HashMap<NeedKey, Words, RandomState>,
        met: Option<&'a Words>,
    ) -> Vec<Concerned<'a>> {
        if wanting.is_empty() && met.is_none() {
            return Vec::new();
        }
        self.writer.requests().with(|requests| {
            let concerned = requests.iter().filter_map(|(key, request)| {
                let need = &request.demand.as_ref().ok()?.need;
                let name = NeedRef { fingerprint: need.fingerprint(), group: need.group() };
                match wanting.get(&name) {
                    Some(words) => Some(Concerned::new(key, request, words)),
                    None => Some(Concerned::new(key, request, met.filter(|_| request.denies())?)),
                }
            });
            concerned.collect()
        })
    }

    /// Every pod without a node, by metadata alone.
    async fn waiting(&self) -> Result<Vec<Waiting>, kube::Error> {
        let mut waiting = Vec::new();
        let mut page =
            ListParams::default().fields("spec.nodeName=,status.phase=Pending").limit(PAGE);
        loop {
            let params = &page;
            let list = self
                .paced
                .call(Lane::PodStatus, |client| async move {
                    Api::<Pod>::all(client).list_metadata(params).await
                })
                .await?;
            waiting.extend(list.items.iter().filter_map(of_metadata));
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => return Ok(waiting),
            }
        }
    }

    /// A pod is being evicted because its machine was reclaimed.
    pub fn evicted(&self, pod: ObjectReference, node: &str, grace: Duration, priority: i32) {
        if !self.enabled {
            return;
        }
        let uid = Uid::of(pod.uid.as_deref().unwrap_or_default());
        let permit = {
            let mut limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
            limits.event(uid, EVICTED, Instant::now())
        };
        match permit {
            Permit::Granted => self.events.normal(pod, EVICTED, eviction(node, grace, priority)),
            Permit::Exhausted => drop(self.metrics.pod_status_skipped.inc()),
            Permit::Repeated => {}
        }
    }
}

const EVICTED: &str = "BigFleetEvicted";

fn eviction(node: &str, grace: Duration, priority: i32) -> String {
    let grace = bigfleet_net::duration::format(Duration::from_secs(grace.as_secs()));
    let text = format!("evicted from node {node}: its machine is reclaimed, grace {grace}");
    match priority {
        0 => text,
        priority => format!("{text}, for demand of priority {priority}"),
    }
}

fn of_metadata(pod: &PartialObjectMeta<Pod>) -> Option<Waiting> {
    let metadata = &pod.metadata;
    Some(Waiting {
        created: metadata.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0),
        key: ObjectKey::namespaced(metadata.namespace.as_deref()?, metadata.name.as_deref()?),
        uid: Uid::of(metadata.uid.as_deref()?),
    })
}

fn reference(key: &ObjectKey, uid: Uid) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        namespace: key.namespace.as_deref().map(str::to_owned),
        name: Some(key.name.to_string()),
        uid: Some(uid.to_string()),
        ..ObjectReference::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_eviction_names_node_grace_and_who_needs_the_machine() {
        let grace = Duration::from_millis(120_400);
        assert_eq!(
            eviction("n-1", grace, 0),
            "evicted from node n-1: its machine is reclaimed, grace 2m"
        );
        assert!(eviction("n-1", grace, 1000).ends_with(", for demand of priority 1000"));
    }
}
