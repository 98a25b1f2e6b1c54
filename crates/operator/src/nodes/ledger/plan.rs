use std::sync::Arc;

use bigfleet_crds::{UpcomingNode, keys};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::reclaim::Part;
use super::{Key, Ledger, Want};
use crate::dispatch::Moment;
use crate::nodes::cleanup;
use crate::nodes::effect::{Effect, NodeId, Told};
use crate::nodes::identity::Link;
use crate::nodes::upcoming::{self, Op, Wanted, create, status_patch};
use crate::nodes::view::{NodeView, UpcomingView};

/// The next call of a machine's worker.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// Read this Node, then ask for [`Ledger::cordon`].
    Cordon(Arc<str>),
    /// Create the object.
    Create(Box<UpcomingNode>),
    /// Merge into the object.
    Spec(Value),
    /// Merge into the object's status.
    Status(Value),
    /// Delete the object.
    Delete,
    /// Merge into this Node: its drain is over.
    Unmark(Arc<str>, Value),
    /// Read this Node, then ask for [`Ledger::uncordon`].
    Uncordon(Arc<str>),
    /// Read this Node, then ask for [`Ledger::deletion`].
    DeleteNode(Arc<str>),
    /// Nothing is left to do.
    Done,
}

/// Which Node is deleted: the one that was read, unless it has changed since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Deletion {
    pub(crate) uid: Arc<str>,
    pub(crate) version: String,
}

impl Ledger {
    /// The next call of a machine's worker.
    pub(crate) fn plan(&mut self, key: &Key, now: Moment, wall: Timestamp) -> Step {
        if let Some(node) = self.next_cordon(key, now) {
            return Step::Cordon(node);
        }
        if let Some(step) = self.object_step(key, wall) {
            return step;
        }
        self.answer(key);
        if let Some(step) = self.unmark_step(key) {
            return step;
        }
        let node = self.linked(key);
        if let Some(node) = node.filter(|node| self.may_uncordon(key, node)) {
            return Step::Uncordon(node.name.clone());
        }
        if let Some(node) = node.filter(|node| self.was_lifted(key, node)) {
            return Step::Unmark(node.name.clone(), unmarked(node));
        }
        if let Some(node) = self.dead_node(key, wall) {
            return Step::DeleteNode(node.name.clone());
        }
        Step::Done
    }

    /// The Node to cordon next. Parts that cannot be carried out are given up.
    fn next_cordon(&mut self, key: &Key, now: Moment) -> Option<Arc<str>> {
        loop {
            let part = self.records.get(key)?.parts.front()?;
            if !self.is_over(key, part) && now < part.deadline {
                match self.resolve(&part.name) {
                    Link::Node(node) => return Some(node.name.clone()),
                    Link::Several | Link::None => {
                        self.effects.push(Effect::Tell(Told::Unresolved {
                            instruction: part.instruction.clone(),
                            name: part.name.clone(),
                        }));
                    }
                }
            }
            let part = self.part_over(key)?;
            self.settle(part.serial);
        }
    }

    fn object_step(&mut self, key: &Key, wall: Timestamp) -> Option<Step> {
        let record = self.records.get(key)?;
        let object = self.objects.get(key);
        if self.is_pruned(key) && (object.is_some() || matches!(record.want, Want::Object(_))) {
            return Some(Step::Delete);
        }
        let as_it_is;
        let wanted = match &record.want {
            Want::Absent { sure } => {
                return (object.is_some() || !sure).then_some(Step::Delete);
            }
            Want::Object(wanted) => wanted,
            Want::AsItIs => {
                let status = object?.status.as_ref()?;
                as_it_is = Wanted {
                    spec: None,
                    phase: status.phase,
                    last_error: status.last_error.clone(),
                };
                &as_it_is
            }
        };
        let machine_id = record.machine_id.as_ref()?;
        let linked = self.linked(key).map(|node| &node.name);
        let node = linked.or(record.node_name.as_ref());
        let provider_id = record.provider_id.as_ref();
        let object = object.map(|object| &**object);
        match upcoming::next_op(wanted, machine_id, node, provider_id, object) {
            Op::Create(spec) => Some(Step::Create(create(key, machine_id, &spec).into())),
            Op::Spec(patch) => Some(Step::Spec(patch)),
            Op::Status(status) => Some(Step::Status(status_patch(&status, wall))),
            Op::Nothing => None,
        }
    }

    /// The frame that waited has its object as it should be.
    fn answer(&mut self, key: &Key) {
        let Some(record) = self.records.get_mut(key) else { return };
        if let Some(received) = record.unanswered.take() {
            let noop = !std::mem::take(&mut record.wrote);
            self.effects.push(Effect::Handled { received, noop });
        }
    }

    fn unmark_step(&mut self, key: &Key) -> Option<Step> {
        let name = self.records.get(key)?.unmark.clone()?;
        let marked = self.nodes.get(&name).is_some_and(|node| node.deadline.is_some());
        if marked && !self.drains.contains_key(&name) {
            let patch = json!({"metadata": {"annotations": {keys::RECLAIM_DEADLINE: null}}});
            return Some(Step::Unmark(name, patch));
        }
        self.records.get_mut(key)?.unmark = None;
        None
    }

    /// The Node of a machine.
    pub(super) fn linked(&self, key: &Key) -> Option<&Arc<NodeView>> {
        self.nodes.link(self.records.get(key)?.clues()?).node()
    }

    /// Whether the cordon of the machine's Node may be lifted. A human's never is.
    fn may_uncordon(&self, key: &Key, node: &NodeView) -> bool {
        node.unschedulable
            && !node.cordoned_by_human
            && !self.is_reclaiming(key, node)
            && self.has_returned(key, node)
    }

    /// Whether somebody else has lifted the cordon that the Node's marks speak of. They go, or the
    /// next cordon, a human's, would be taken for ours.
    fn was_lifted(&self, key: &Key, node: &NodeView) -> bool {
        node.instruction.is_some() && !node.unschedulable && !self.is_reclaiming(key, node)
    }

    fn is_reclaiming(&self, key: &Key, node: &NodeView) -> bool {
        let waits = self.records.get(key).is_some_and(|record| !record.parts.is_empty());
        waits || self.drains.contains_key(&node.name)
    }

    /// Whether the shard has shown that the reclaim which the Node carries is over and that its
    /// machine stays.
    pub(super) fn has_returned(&self, key: &Key, node: &NodeView) -> bool {
        let (Some(record), Some(id)) = (self.records.get(key), &node.instruction) else {
            return false;
        };
        let instructed = self.instructed.get(id).copied();
        self.session.is_some_and(|session| record.received.returned(id, instructed, session))
    }

    /// Whether the reclaim that a part waits for is over before it began: its machine left, or
    /// the shard has given it up and the machine stays.
    pub(super) fn is_over(&self, key: &Key, part: &Part) -> bool {
        let Some(record) = self.records.get(key) else { return false };
        let received = &record.received;
        let returned = |session| received.returned(&part.instruction, Some(part.order), session);
        received.unbound.is_some_and(|unbound| unbound > part.order)
            || self.session.is_some_and(returned)
    }

    /// The dead Node of a machine that left.
    pub(super) fn dead_node(&self, key: &Key, wall: Timestamp) -> Option<&Arc<NodeView>> {
        let node = self.nodes.link(self.departed.get(key)?.clues()).node()?;
        cleanup::is_dead(node, wall).then_some(node)
    }

    /// No frame of the machine came before the marker, and none has come since.
    fn is_pruned(&self, key: &Key) -> bool {
        let Some(record) = self.records.get(key) else { return false };
        record.prune.is_some() && record.prune == self.session && self.session != Some(record.seen)
    }

    /// How to cordon the Node that was read for the first waiting part: a patch that holds for the
    /// Node as it was read.
    pub(crate) fn cordon(&mut self, key: &Key, node: &Arc<NodeView>) -> Option<Value> {
        self.nodes.wrote(node.clone());
        let part = self.records.get(key)?.parts.front()?;
        // Read past the cache, it may turn out to be another machine's.
        self.resolve(&part.name).node().filter(|found| found.name == node.name)?;
        let running = self.drains.get(&node.name).filter(|drain| drain.uid == node.uid);
        let deadline_text = match running {
            Some(drain) if drain.deadline <= part.deadline => &drain.deadline_text,
            _ => &part.deadline_text,
        };
        let human = node.unschedulable && (node.instruction.is_none() || node.cordoned_by_human);
        Some(json!({
            "metadata": {
                "resourceVersion": node.version.to_string(),
                "annotations": {
                    keys::RECLAIM_INSTRUCTION: &*part.instruction,
                    keys::RECLAIM_DEADLINE: &**deadline_text,
                    keys::CORDONED_BY_HUMAN: human.then_some("true"),
                },
            },
            "spec": {"unschedulable": true},
        }))
    }

    /// How to uncordon the Node that was read: a patch that holds for the Node as it was read.
    pub(crate) fn uncordon(&mut self, key: &Key, node: &Arc<NodeView>) -> Option<Value> {
        self.nodes.wrote(node.clone());
        self.linked(key).filter(|linked| linked.name == node.name)?;
        if !self.may_uncordon(key, node) {
            return None;
        }
        Some(json!({
            "metadata": {
                "resourceVersion": node.version.to_string(),
                "annotations": {keys::RECLAIM_INSTRUCTION: null, keys::RECLAIM_DEADLINE: null},
            },
            "spec": {"unschedulable": null},
        }))
    }

    /// The Node was uncordoned.
    pub(crate) fn uncordoned(&mut self, node: Arc<NodeView>) {
        let id = NodeId { name: node.name.clone(), uid: node.uid.clone() };
        self.nodes.wrote(node);
        self.effects.push(Effect::Tell(Told::Uncordoned(id)));
    }

    /// Which Node to delete, if the one that was read is still dead and the machine's.
    pub(crate) fn deletion(
        &mut self,
        key: &Key,
        node: &Arc<NodeView>,
        wall: Timestamp,
    ) -> Option<Deletion> {
        self.nodes.wrote(node.clone());
        self.dead_node(key, wall).filter(|dead| dead.name == node.name)?;
        Some(Deletion { uid: node.uid.clone(), version: node.version.to_string() })
    }

    /// When the frame came that waits to be worked off.
    pub(crate) fn unanswered(&self, key: &Key) -> Option<Moment> {
        self.records.get(key)?.unanswered
    }

    /// The server answered a write or a read with this Node.
    pub(crate) fn wrote_node(&mut self, node: Arc<NodeView>) {
        self.nodes.wrote(node);
    }

    /// The server said that the Node is gone.
    pub(crate) fn node_missing(&mut self, name: &Arc<str>) {
        self.nodes.deleted(name);
        self.stop_drain(name);
    }

    /// The server answered a write or a read with this object.
    pub(crate) fn wrote_object(&mut self, object: Arc<UpcomingView>) {
        if let Some(record) = self.records.get_mut(&object.name) {
            record.wrote = true;
        }
        self.objects.wrote(object);
    }

    /// A patch found no object: it will be created again.
    pub(crate) fn object_missing(&mut self, key: &Key) {
        self.objects.deleted(key);
    }

    /// The object is deleted, or was gone already.
    pub(crate) fn deleted_object(&mut self, key: &Key) {
        self.objects.deleted(key);
        if self.is_pruned(key) {
            self.depart(key);
        }
        let Some(record) = self.records.get_mut(key) else { return };
        record.wrote = true;
        if let Want::Absent { sure } = &mut record.want {
            *sure = true;
        }
    }
}

/// Takes our marks off a Node, unless it has changed since.
fn unmarked(node: &NodeView) -> Value {
    json!({"metadata": {
        "resourceVersion": node.version.to_string(),
        "annotations": {
            keys::RECLAIM_INSTRUCTION: null,
            keys::RECLAIM_DEADLINE: null,
            keys::CORDONED_BY_HUMAN: null,
        },
    }})
}
