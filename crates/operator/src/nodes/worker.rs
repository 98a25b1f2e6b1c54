use std::sync::Arc;

use bigfleet_crds::UpcomingNode;
use bigfleet_in_cluster::{Lane, refusal};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use serde_json::Value;

use super::effect::Key;
use super::handle::Shared;
use super::ledger::{Ledger, Step};
use super::view::{NodeView, UpcomingView};
use crate::dispatch::{Progress, Verdict, Work, found, until_settled};
use crate::metrics::{NodeStatePhase, WriteOp, WriteOutcome};

/// Works on machines.
pub(super) struct Worker {
    pub(super) shared: Arc<Shared>,
}

impl Work<Key> for Worker {
    async fn work(&self, key: Key) -> Verdict {
        let config = &self.shared.config;
        let began = config.clock.now();
        if let Some(received) = self.shared.enter(|ledger| ledger.unanswered(&key)) {
            let waited = began.saturating_sub(received);
            config.metrics.node_state_update(NodeStatePhase::Queue, waited);
        }
        let verdict = until_settled(config.clock, &key, || async {
            let (now, wall) = (config.clock.now(), config.clock.wall());
            match self.shared.enter(|ledger| ledger.plan(&key, now, wall)) {
                Step::Done => Ok(Progress::Settled),
                step => self.perform(&key, step).await.map(|()| Progress::More),
            }
        });
        let verdict = verdict.await;
        let took = config.clock.now().saturating_sub(began);
        config.metrics.node_state_update(NodeStatePhase::Write, took);
        verdict
    }
}

impl Worker {
    async fn perform(&self, key: &Key, step: Step) -> Result<(), kube::Error> {
        match step {
            Step::Cordon(node) => self.cordon(key, &node).await,
            Step::Uncordon(node) => self.uncordon(key, &node).await,
            Step::DeleteNode(node) => self.delete_node(key, &node).await,
            Step::Unmark(node, patch) => {
                if let Some(node) = self.patch_node(&node, &patch).await? {
                    self.shared.enter(|ledger| ledger.wrote_node(node));
                }
                Ok(())
            }
            Step::Create(object) => self.create(key, &object).await,
            Step::Spec(patch) => self.patch_object(key, WriteOp::SpecUpdate, &patch).await,
            Step::Status(patch) => self.patch_object(key, WriteOp::StatusUpdate, &patch).await,
            Step::Delete => self.delete_object(key).await,
            Step::Done => Ok(()),
        }
    }

    async fn cordon(&self, key: &Key, name: &Arc<str>) -> Result<(), kube::Error> {
        let Some(node) = self.read_node(name).await? else { return Ok(()) };
        let patch = self.shared.enter(|ledger| ledger.cordon(key, &node));
        let Some(patch) = patch else { return Ok(()) };
        if let Some(node) = self.patch_node(name, &patch).await? {
            self.shared.enter(|ledger| ledger.cordoned(key, node));
        }
        Ok(())
    }

    async fn uncordon(&self, key: &Key, name: &Arc<str>) -> Result<(), kube::Error> {
        let Some(node) = self.read_node(name).await? else { return Ok(()) };
        let patch = self.shared.enter(|ledger| ledger.uncordon(key, &node));
        let Some(patch) = patch else { return Ok(()) };
        if let Some(node) = self.patch_node(name, &patch).await? {
            self.shared.enter(|ledger| ledger.uncordoned(node));
        }
        Ok(())
    }

    async fn delete_node(&self, key: &Key, name: &Arc<str>) -> Result<(), kube::Error> {
        let Some(node) = self.read_node(name).await? else { return Ok(()) };
        let wall = self.shared.config.clock.wall();
        let deletion = self.shared.enter(|ledger| ledger.deletion(key, &node, wall));
        let Some(deletion) = deletion else { return Ok(()) };
        let preconditions = Preconditions {
            resource_version: Some(deletion.version),
            uid: Some(deletion.uid.to_string()),
        };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        let call = |client| async move { Api::<Node>::all(client).delete(name, &params).await };
        let deleted = self.shared.config.paced.call(Lane::NodeState, call).await;
        if found(deleted)?.is_some() {
            tracing::info!(node = &**name, "deleted the node of a machine that left");
            self.shared.config.metrics.nodes_deleted.inc();
        }
        self.shared.enter(|ledger| ledger.node_missing(name));
        Ok(())
    }

    /// The Node as it is, past the cache: what a human did a moment ago counts.
    async fn read_node(&self, name: &Arc<str>) -> Result<Option<Arc<NodeView>>, kube::Error> {
        let call = |client| async move { Api::<Node>::all(client).get(name).await };
        let read = self.shared.config.paced.call(Lane::Cordon, call).await;
        Ok(self.node_or_missing(name, found(read)?.as_ref()))
    }

    async fn patch_node(
        &self,
        name: &Arc<str>,
        patch: &Value,
    ) -> Result<Option<Arc<NodeView>>, kube::Error> {
        let call = |client| async move {
            let api: Api<Node> = Api::all(client);
            api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await
        };
        let patched = self.shared.config.paced.call(Lane::Cordon, call).await;
        Ok(self.node_or_missing(name, found(patched)?.as_ref()))
    }

    fn node_or_missing(&self, name: &Arc<str>, node: Option<&Node>) -> Option<Arc<NodeView>> {
        let node = node.and_then(NodeView::of);
        if node.is_none() {
            self.shared.enter(|ledger| ledger.node_missing(name));
        }
        node.map(Arc::new)
    }

    async fn create(&self, key: &Key, object: &UpcomingNode) -> Result<(), kube::Error> {
        let call = |client| async move {
            Api::<UpcomingNode>::all(client).create(&PostParams::default(), object).await
        };
        let created = self.shared.config.paced.call(Lane::NodeState, call).await;
        self.count(WriteOp::Create, &created);
        let object = match created {
            Err(error) if refusal::code(&error) == Some(409) => {
                let call = |client| async move { Api::<UpcomingNode>::all(client).get(key).await };
                self.shared.config.paced.call(Lane::NodeState, call).await?
            }
            created => created?,
        };
        self.wrote(&object);
        Ok(())
    }

    async fn patch_object(&self, key: &Key, op: WriteOp, patch: &Value) -> Result<(), kube::Error> {
        let call = |client| async move {
            let api: Api<UpcomingNode> = Api::all(client);
            let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
            match op {
                WriteOp::StatusUpdate => api.patch_status(key, &params, &patch).await,
                _ => api.patch(key, &params, &patch).await,
            }
        };
        let patched = self.shared.config.paced.call(Lane::NodeState, call).await;
        self.count(op, &patched);
        match found(patched)? {
            Some(object) => self.wrote(&object),
            None => self.shared.enter(|ledger| ledger.object_missing(key)),
        }
        Ok(())
    }

    async fn delete_object(&self, key: &Key) -> Result<(), kube::Error> {
        let call = |client| async move {
            Api::<UpcomingNode>::all(client).delete(key, &DeleteParams::default()).await
        };
        let deleted = self.shared.config.paced.call(Lane::NodeState, call).await;
        let deleted = found(deleted);
        self.count(WriteOp::Delete, &deleted);
        deleted?;
        self.shared.enter(|ledger: &mut Ledger| ledger.deleted_object(key));
        Ok(())
    }

    fn wrote(&self, object: &UpcomingNode) {
        if let Some(object) = UpcomingView::of(object) {
            self.shared.enter(|ledger| ledger.wrote_object(object.into()));
        }
    }

    fn count<T>(&self, op: WriteOp, answer: &Result<T, kube::Error>) {
        let outcome = match answer {
            Ok(_) => WriteOutcome::Success,
            Err(error) if refusal::code(error) == Some(409) => WriteOutcome::Conflict,
            Err(_) => WriteOutcome::Error,
        };
        self.shared.config.metrics.upcoming_node_write(op, outcome);
    }
}
