use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use bigfleet_crds::{UpcomingNodePhase as Phase, upcoming_node_name};
use bigfleet_wire::v1alpha1::{MachineState, NodeStateUpdate};

use super::{Departed, Key, Ledger, Want};
use crate::dispatch::Moment;
use crate::nodes::effect::{Effect, NodeId, Told};
use crate::nodes::uncordon::{Latest, Order};
use crate::nodes::upcoming::{self, Spec, Wanted, effect};

impl Ledger {
    /// A frame was received.
    pub(crate) fn frame(&mut self, frame: &NodeStateUpdate, received: u64, now: Moment) {
        if frame.machine_id.is_empty() {
            self.effects.push(Effect::Ignored("empty_machine_id"));
            return;
        }
        let order = Order { session: self.sessions, received };
        let key: Key = upcoming_node_name(&frame.machine_id).into();
        let state = MachineState::try_from(frame.state).unwrap_or(MachineState::Unspecified);
        let existing = self.existing(&key);
        let record = self.records.entry(key.clone()).or_default();
        record.machine_id = Some(frame.machine_id.as_str().into());
        record.seen = order.session;
        if record.received.latest.as_ref().is_some_and(|latest| latest.order > order) {
            self.effects.push(Effect::Ignored("overtaken"));
            return;
        }
        let effect = effect(state, frame.gone, existing);
        if effect == upcoming::Effect::Unknown {
            self.effects.push(Effect::Ignored("unknown_state"));
            return;
        }
        let ended = Some(frame.ended_instruction_id.as_str()).filter(|id| !id.is_empty());
        let ended_instruction = ended.map(Arc::from);
        record.received.frame(Latest { order, state, ended_instruction }, frame.gone);
        if effect != upcoming::Effect::Ignore {
            record.unanswered = Some(now);
        }
        self.learn(&key, &frame.node_name, &frame.provider_id);
        if frame.gone || matches!(state, MachineState::Idle | MachineState::Configuring) {
            self.stop_drain_of(&key);
        }
        match effect {
            upcoming::Effect::Set(phase) => {
                let error = Some(frame.last_error.as_str()).filter(|text| !text.is_empty());
                let last_error = error.filter(|_| phase == Phase::Failed).map(Arc::from);
                self.want(&key, Wanted { spec: Some(Spec::of(frame).into()), phase, last_error });
            }
            upcoming::Effect::Keep => {
                let Some(kept) = self.kept(&key, frame) else { return };
                self.want(&key, kept);
            }
            upcoming::Effect::Delete => {
                if frame.gone && state == MachineState::Failed {
                    self.tell_removed(&key, &frame.last_error);
                }
                self.depart(&key);
            }
            upcoming::Effect::Ignore => self.effects.push(Effect::Ignored("no_object")),
            upcoming::Effect::Unknown => {}
        }
        self.due(&key, false);
    }

    fn want(&mut self, key: &Key, wanted: Wanted) {
        self.departed.remove(key);
        if let Some(record) = self.records.get_mut(key) {
            record.want = Want::Object(wanted);
        }
    }

    /// What stands, with the spec of the frame.
    fn kept(&self, key: &Key, frame: &NodeStateUpdate) -> Option<Wanted> {
        let spec = Some(Spec::of(frame).into());
        match self.records.get(key).map(|record| &record.want) {
            Some(Want::Object(wanted)) => Some(Wanted { spec, ..wanted.clone() }),
            _ => {
                let status = self.objects.get(key)?.status.as_ref()?;
                Some(Wanted { spec, phase: status.phase, last_error: status.last_error.clone() })
            }
        }
    }

    /// The machine left.
    pub(super) fn depart(&mut self, key: &Key) {
        let Some(record) = self.records.get_mut(key) else { return };
        record.want = Want::Absent { sure: false };
        if let (true, Some(machine_id)) = (self.cleanup, &record.machine_id) {
            let departed = Departed {
                machine_id: machine_id.clone(),
                node_name: record.node_name.clone(),
                provider_id: record.provider_id.clone(),
                unlinked: None,
            };
            self.departed.insert(key.clone(), departed);
        }
    }

    fn tell_removed(&mut self, key: &Key, text: &str) {
        let clues = self.records.get(key).and_then(|record| record.clues());
        let node = clues.and_then(|clues| self.nodes.link(clues).node());
        if let Some(node) = node {
            let id = NodeId { name: node.name.clone(), uid: node.uid.clone() };
            self.effects.push(Effect::Tell(Told::MachineRemoved(id, text.into())));
        }
    }

    /// Keeps the clues to the machine's Node; an empty one tells nothing new.
    pub(super) fn learn(&mut self, key: &Key, node_name: &str, provider_id: &str) {
        let Some(record) = self.records.get_mut(key) else { return };
        replace(&mut self.by_node_name, &mut record.node_name, node_name, key);
        replace(&mut self.by_provider_id, &mut record.provider_id, provider_id, key);
    }

    /// Forgets a record and the ways to it.
    pub(super) fn forget(&mut self, key: &Key) {
        let Some(record) = self.records.remove(key) else { return };
        strike(&mut self.by_node_name, record.node_name.as_ref(), key);
        strike(&mut self.by_provider_id, record.provider_id.as_ref(), key);
    }
}

type Ways = HashMap<Arc<str>, BTreeSet<Key>>;

fn replace(ways: &mut Ways, known: &mut Option<Arc<str>>, told: &str, key: &Key) {
    if told.is_empty() || known.as_deref() == Some(told) {
        return;
    }
    strike(ways, known.as_ref(), key);
    let told: Arc<str> = told.into();
    ways.entry(told.clone()).or_default().insert(key.clone());
    *known = Some(told);
}

fn strike(ways: &mut Ways, known: Option<&Arc<str>>, key: &Key) {
    let Some(known) = known else { return };
    if let Some(keys) = ways.get_mut(known) {
        keys.remove(key);
        if keys.is_empty() {
            ways.remove(known);
        }
    }
}
