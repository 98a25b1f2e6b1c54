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

/// Works on machines.
pub(super) struct Worker {
    pub(super) shared: Arc<Shared>,
}

impl Work<Key> for Worker {
    async fn work(&self, key: Key) -> Verdict {
        let config = &self.shared.config;
        let began = config.clock.now();
        let verdict = until_settled(config.clock, &key, || async {
            let (now, wall) = (config.clock.now(), config.clock.wall());
            match self.shared.enter(|ledger| ledger.plan(&key, now, wall)) {
                Step::Done => Ok(Progress::Settled),
                step => self.perform(&key, step).await.map(|()| Progress::More),
            }
        });
        let verdict = verdict.await;
        config.counters.node_state("write", config.clock.now().saturating_sub(began));
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
            Step::Spec(patch) => self.patch_object(key, "spec_update", &patch).await,
            Step::Status(patch) => self.patch_object(key, "status_update", &patch).await,
            Step::Delete => self.delete_object(key).await,
            Step::Done => Ok(()),
        }
    }

    async fn cordon(&self, key: &Key, name: &Arc<str>) -> Result<(), kube::Error> {
        let Some(node) = self.read_node(name).await? else { return Ok(()) };
        let cordon = self.shared.enter(|ledger| ledger.cordon(key, node));
        let Some(cordon) = cordon else { return Ok(()) };
        if let Some(node) = self.patch_node(name, &cordon.patch).await? {
            self.shared.enter(|ledger| ledger.cordoned(key, &cordon, node));
        }
        Ok(())
    }

    async fn uncordon(&self, key: &Key, name: &Arc<str>) -> Result<(), kube::Error> {
        let Some(node) = self.read_node(name).await? else { return Ok(()) };
        let uncordon = self.shared.enter(|ledger| ledger.uncordon(key, node));
        let Some(uncordon) = uncordon else { return Ok(()) };
        if let Some(node) = self.patch_node(name, &uncordon.patch).await? {
            self.shared.enter(|ledger| ledger.uncordoned(node));
        }
        Ok(())
    }

    async fn delete_node(&self, key: &Key, name: &Arc<str>) -> Result<(), kube::Error> {
        let Some(node) = self.read_node(name).await? else { return Ok(()) };
        let wall = self.shared.config.clock.wall();
        let deletion = self.shared.enter(|ledger| ledger.deletion(key, node, wall));
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
            self.shared.config.counters.node_deleted();
        }
        self.shared.enter(|ledger| ledger.node_missing(name));
        Ok(())
    }

    /// The Node as it is, past the cache: what a human did a moment ago counts.
    async fn read_node(&self, name: &Arc<str>) -> Result<Option<Arc<NodeView>>, kube::Error> {
        let call = |client| async move { Api::<Node>::all(client).get(name).await };
        let read = self.shared.config.paced.call(Lane::Cordon, call).await;
        Ok(self.node_or_missing(name, found(read)?))
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
        Ok(self.node_or_missing(name, found(patched)?))
    }

    fn node_or_missing(&self, name: &Arc<str>, node: Option<Node>) -> Option<Arc<NodeView>> {
        let node = node.as_ref().and_then(NodeView::of);
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
        self.count("create", &created);
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

    async fn patch_object(
        &self,
        key: &Key,
        op: &'static str,
        patch: &Value,
    ) -> Result<(), kube::Error> {
        let call = |client| async move {
            let api: Api<UpcomingNode> = Api::all(client);
            let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
            match op {
                "status_update" => api.patch_status(key, &params, &patch).await,
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
        self.count("delete", &deleted);
        deleted?;
        self.shared.enter(|ledger: &mut Ledger| ledger.deleted_object(key));
        Ok(())
    }

    fn wrote(&self, object: &UpcomingNode) {
        if let Some(object) = UpcomingView::of(object) {
            self.shared.enter(|ledger| ledger.wrote_object(object.into()));
        }
    }

    fn count<T>(&self, op: &'static str, answer: &Result<T, kube::Error>) {
        let outcome = match answer {
            Ok(_) => "success",
            Err(error) if refusal::code(error) == Some(409) => "conflict",
            Err(_) => "error",
        };
        self.shared.config.counters.upcoming_node_write(op, outcome);
    }
}
