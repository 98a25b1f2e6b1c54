//! One look at one pod: ask the rules, do what they say.

use std::{sync::Arc, time::Duration};

use bigfleet_crds::{CapacityRequest, keys};
use bigfleet_in_cluster::{Lane, ObjectKey, refusal};
use jiff::Timestamp;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Shared, lock, queue::Done, refused::Refused, warned};
use crate::{
    desired::{Context, Desired, Step, desired},
    drift,
    existing::Existing,
    metrics::Outcome,
    pod::Pod,
};

/// Between two warnings of calls that fail.
const TELL_FAILURES: Duration = Duration::from_secs(60);

/// How a look at a pod ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) outcome: Outcome,
    pub(super) done: Done,
    /// The pod does not hold up the first pass: all is well, or only its own owner can help.
    pub(super) settled: bool,
}

impl Seen {
    const fn well(outcome: Outcome) -> Self {
        Self { outcome, done: Done::Settled, settled: true }
    }

    const fn wrote(outcome: Outcome) -> Self {
        Self { outcome, done: Done::Wrote, settled: true }
    }

    /// Tried again, and nobody waits for it.
    const PUT_OFF: Self = Self { outcome: Outcome::Error, done: Done::Failed, settled: true };

    const FAILED: Self = Self { outcome: Outcome::Error, done: Done::Failed, settled: false };
}

impl Shared {
    pub(super) async fn reconcile(&self, key: &ObjectKey) -> Seen {
        let Some(pod) = self.world.pods.get(key) else {
            lock(&self.warned).forget(key);
            return Seen::well(Outcome::PodGone);
        };
        let desired = self.desired(&pod);
        for request in &desired.delete {
            if let Err(error) = self.delete(&pod.namespace, request).await {
                return self.failed(key, "delete", &error);
            }
        }
        let deleted = !desired.delete.is_empty();
        let seen = match &desired.step {
            Step::Terminal if deleted => Seen::wrote(Outcome::PodTerminal),
            Step::Terminal => Seen::well(Outcome::PodTerminal),
            Step::Skip if deleted => Seen::wrote(Outcome::Deleted),
            Step::Skip => Seen::well(Outcome::PodSkipped),
            Step::Keep if deleted => Seen::wrote(Outcome::Deleted),
            Step::Keep => Seen::well(Outcome::Exists),
            Step::Create(wanted) => self.create(key, &pod, wanted).await,
            Step::Patch { name, wanted } => self.patch(key, name, wanted).await,
        };
        if seen.done == Done::Failed {
            return seen;
        }
        self.warn(key, &pod, &desired);
        match desired.again_at {
            Some(at) => Seen { done: Done::AgainAt(until(at)), ..seen },
            None => seen,
        }
    }

    fn desired(&self, pod: &Pod) -> Desired {
        let existing = self.existing(pod);
        let volumes = self.world.volumes_of(pod);
        let volumes: Vec<_> = volumes.iter().map(|volume| &*volume.terms).collect();
        let group = pod.group.as_deref();
        let group =
            group.and_then(|group| self.world.groups.store.find(Some(&pod.namespace), group));
        let context = Context {
            settings: &self.settings,
            now: Timestamp::now(),
            unmanaged: self.world.is_unmanaged(pod),
            group_topology: group.as_deref().map(|group| &*group.topology),
            volumes: &volumes,
            existing: &existing,
        };
        desired(pod, &context)
    }

    fn existing(&self, pod: &Pod) -> Vec<Arc<Existing>> {
        let strays = self.index.strays(pod).into_iter();
        let strays =
            strays.filter_map(|name| self.world.requests.find(Some(&pod.namespace), &name));
        self.world.request_of(pod).into_iter().chain(strays).collect()
    }

    async fn create(&self, key: &ObjectKey, pod: &Pod, wanted: &CapacityRequest) -> Seen {
        let made = self
            .on_requests(&pod.namespace, |requests| async move {
                requests.create(&PostParams::default(), wanted).await
            })
            .await;
        match made {
            Ok(made) => {
                lock(&self.writes).taken();
                if made.status.is_none() {
                    self.stamp(&made).await;
                }
                Seen::wrote(Outcome::Created)
            }
            Err(error) => match Refused::of(&error) {
                Refused::Exists => self.patch(key, &wanted.name_any(), wanted).await,
                Refused::NamespaceGone => Seen::well(Outcome::PodGone),
                Refused::Quota => {
                    if lock(&self.warned).is_news(key, pod, &"quota") {
                        warned::tell_quota(&self.recorder, pod, &error.to_string());
                    }
                    Seen::PUT_OFF
                }
                refused => self.refused(key, "create", &error, refused),
            },
        }
    }

    /// A CRD without the default would show no phase. The operator may have been first.
    async fn stamp(&self, made: &CapacityRequest) {
        let namespace = made.namespace().unwrap_or_default();
        let body = json!({
            "metadata": {"resourceVersion": made.metadata.resource_version},
            "status": {"phase": "Pending"},
        });
        let (name, body) = (&made.name_any(), &body);
        let stamped = self
            .on_requests(&namespace, |requests| async move {
                requests.patch_status(name, &PatchParams::default(), &Patch::Merge(body)).await
            })
            .await;
        if let Err(error) = stamped
            && refusal::code(&error) != Some(409)
        {
            tracing::debug!(namespace, name, %error, "phase not stamped");
        }
    }

    /// Makes the request `name` what is wanted, by what the server says it is: the cache may lag.
    async fn patch(&self, key: &ObjectKey, name: &str, wanted: &CapacityRequest) -> Seen {
        let namespace = wanted.namespace().unwrap_or_default();
        let live = self
            .on_requests(&namespace, |requests| async move { requests.get_opt(name).await })
            .await;
        let live = match live {
            Ok(Some(live)) => live,
            // It went meanwhile.
            Ok(None) => return Seen::FAILED,
            Err(error) => return self.refused(key, "get", &error, Refused::Other),
        };
        if live.metadata.deletion_timestamp.is_some() {
            return Seen::well(Outcome::Exists);
        }
        if is_of_another(&live, wanted) {
            tracing::warn!(pod = %key, name, "a CapacityRequest of another pod has this name");
            return Seen::PUT_OFF;
        }
        let Some(patch) = drift::patch(&live, wanted) else {
            return Seen::well(Outcome::Exists);
        };
        match self.merge(&namespace, name, &patch).await {
            Ok(_) => {
                lock(&self.writes).taken();
                Seen::wrote(Outcome::Updated)
            }
            Err(error) => self.refused(key, "patch", &error, Refused::of(&error)),
        }
    }

    async fn merge(
        &self,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<CapacityRequest, kube::Error> {
        self.on_requests(namespace, |requests| async move {
            requests.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await
        })
        .await
    }

    /// Deletes this request and none that has taken its name since.
    pub(super) async fn delete(
        &self,
        namespace: &str,
        request: &Existing,
    ) -> Result<(), kube::Error> {
        let preconditions =
            Preconditions { uid: Some(request.uid.to_string()), resource_version: None };
        let params =
            DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
        let params = &params;
        let deleted = self
            .on_requests(namespace, |requests| async move {
                requests.delete(&request.name, params).await
            })
            .await;
        match deleted {
            Err(error) if !matches!(refusal::code(&error), Some(404 | 409)) => Err(error),
            _ => Ok(()),
        }
    }

    async fn on_requests<T, Fut>(
        &self,
        namespace: &str,
        call: impl FnOnce(Api<CapacityRequest>) -> Fut,
    ) -> Result<T, kube::Error>
    where
        Fut: Future<Output = Result<T, kube::Error>>,
    {
        let on = |client| call(Api::namespaced(client, namespace));
        self.paced.call(Lane::NodeState, on).await
    }

    /// A pod lacks its request, or has one that is not right.
    fn refused(&self, key: &ObjectKey, what: &str, error: &kube::Error, refused: Refused) -> Seen {
        let settled = refused.is_for_good();
        if !settled {
            lock(&self.writes).failed(key, Instant::now());
        }
        Seen { settled, ..self.failed(key, what, error) }
    }

    /// Told now and then: what fails for one pod mostly fails for many, and again and again.
    fn failed(&self, key: &ObjectKey, what: &str, error: &kube::Error) -> Seen {
        let now = Instant::now();
        let mut told = lock(&self.told_failure);
        if told.is_none_or(|at| now >= at + TELL_FAILURES) {
            *told = Some(now);
            tracing::warn!(
                pod = %key, what, %error,
                "the CapacityRequest of a pod is not as it should be, and this pod may not be the \
                 only one; tried again until the server takes it"
            );
        } else {
            tracing::debug!(pod = %key, what, %error, "tried again later");
        }
        Seen::FAILED
    }

    fn warn(&self, key: &ObjectKey, pod: &Pod, desired: &Desired) {
        if desired.warnings.is_empty() {
            lock(&self.warned).forget(key);
        } else if lock(&self.warned).is_news(key, pod, &desired.warnings) {
            desired.warnings.iter().for_each(|it| warned::tell(&self.recorder, pod, it));
        }
    }
}

/// Neither its label nor its owner is the pod's.
fn is_of_another(live: &CapacityRequest, wanted: &CapacityRequest) -> bool {
    let uid = wanted.labels().get(keys::OWNED_BY_POD);
    let owner = |owner: &&str| Some(*owner) == uid.map(String::as_str);
    let mut owners = live.owner_references().iter().map(|owner| owner.uid.as_str());
    live.labels().get(keys::OWNED_BY_POD) != uid && !owners.any(|it| owner(&it))
}

/// A moment of the wall clock as this process measures time, and a little later: it is due
/// when that moment is past.
fn until(at: Timestamp) -> Instant {
    let left = at.duration_since(Timestamp::now());
    Instant::now() + Duration::try_from(left).unwrap_or_default() + Duration::from_secs(1)
}
