use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bigfleet_crds::{UpcomingNodePhase as Phase, upcoming_node_name};
use bigfleet_wire::v1alpha1::{MachineState, ReclaimInstruction};
use jiff::Timestamp;

use super::instructions::Instruction;
use super::{Key, Ledger};
use crate::dispatch::Moment;
use crate::nodes::drain::Outcome;
use crate::nodes::effect::{Effect, NodeId, Start, Told};
use crate::nodes::identity::{Clues, Link};
use crate::nodes::uncordon::Order;
use crate::nodes::upcoming::seconds;
use crate::nodes::view::NodeView;

/// Where the shard names no grace.
const DEFAULT_GRACE: Duration = Duration::from_secs(30);

/// Longer than any grace of a shard; keeps times within what a calendar can say.
const LONGEST_GRACE: Duration = Duration::from_secs(86_400);

/// One named node of an instruction that waits for its cordon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    /// The instruction's serial number.
    pub(super) serial: u64,
    /// The instruction.
    pub(super) instruction: Arc<str>,
    /// What it names.
    pub(super) name: Arc<str>,
    pub(super) order: Order,
    pub(super) deadline: Moment,
    pub(super) deadline_text: Arc<str>,
}

/// A drain that runs.
#[derive(Debug)]
pub(super) struct Draining {
    pub(super) uid: Arc<str>,
    pub(super) key: Key,
    pub(super) number: u64,
    pub(super) deadline: Moment,
    pub(super) deadline_text: Arc<str>,
    /// The instructions it runs for, by serial number.
    pub(super) serials: Vec<u64>,
}

impl Ledger {
    /// An instruction was received.
    pub(crate) fn reclaim(
        &mut self,
        instruction: &ReclaimInstruction,
        received: u64,
        now: Moment,
        wall: Timestamp,
    ) {
        let grace = match u64::try_from(instruction.grace_period_seconds) {
            Ok(0) | Err(_) => DEFAULT_GRACE,
            Ok(seconds) => Duration::from_secs(seconds).min(LONGEST_GRACE),
        };
        let order = Order { session: self.sessions, received };
        let id: Arc<str> = instruction.instruction_id.as_str().into();
        let names: BTreeSet<&str> = instruction.nodes.iter().map(String::as_str).collect();
        self.serial += 1;
        let serial = self.serial;
        self.instructed.insert(id.clone(), order);
        self.instructions.insert(
            serial,
            Instruction {
                id: id.clone(),
                grace,
                preemptor_priority: instruction.preemptor_priority,
                waiting: names.len(),
                nodes: Vec::new(),
                running: 0,
                drained: 0,
                first_ack_sent: false,
            },
        );
        let deadline_text: Arc<str> =
            seconds(wall.saturating_add(grace).unwrap_or(Timestamp::MAX)).into();
        for name in names {
            let key = self.key_of(name);
            let part = Part {
                serial,
                instruction: id.clone(),
                name: name.into(),
                order,
                deadline: now + grace,
                deadline_text: deadline_text.clone(),
            };
            self.records.entry(key.clone()).or_default().parts.push_back(part);
            self.due(&key, true);
        }
        self.settle(serial);
    }

    /// The machine that a name in an instruction means; a Node's name means its machine.
    fn key_of(&self, name: &str) -> Key {
        let key: Key = upcoming_node_name(name).into();
        let known = self.records.get(&key).is_some_and(|record| record.machine_id.is_some());
        if known {
            return key;
        }
        let node = self.nodes.get(name);
        node.and_then(|node| self.machine_of(node)).unwrap_or(key)
    }

    /// The Node that a name in an instruction means.
    pub(super) fn resolve(&self, name: &str) -> Link<'_> {
        let bare = Clues { machine_id: name, node_name: "", provider_id: "" };
        let record = self.records.get(upcoming_node_name(name).as_str());
        let link = self.nodes.link(record.and_then(|record| record.clues()).unwrap_or(bare));
        match link {
            Link::None => self.nodes.get(name).map_or(Link::None, Link::Node),
            found => found,
        }
    }

    /// The machine whose Node this is.
    pub(super) fn machine_of(&self, node: &Arc<NodeView>) -> Option<Key> {
        self.candidates(node).into_iter().find(|key| {
            let clues = self.records.get(key).and_then(|record| record.clues());
            clues.is_some_and(|clues| self.nodes.link(clues).node() == Some(node))
        })
    }

    /// Machines that a Node may belong to.
    pub(super) fn candidates(&self, node: &NodeView) -> BTreeSet<Key> {
        let by_provider_id = node.provider_id.as_ref().and_then(|id| self.by_provider_id.get(id));
        let mut keys: BTreeSet<Key> = by_provider_id.into_iter().flatten().cloned().collect();
        keys.extend(self.by_node_name.get(&node.name).into_iter().flatten().cloned());
        keys.extend(node.machine.as_deref().map(|id| Key::from(upcoming_node_name(id))));
        keys.insert(upcoming_node_name(&node.name).into());
        keys.retain(|key| self.records.contains_key(key));
        keys
    }

    /// Takes the first waiting part of a machine off.
    pub(super) fn part_over(&mut self, key: &Key) -> Option<Part> {
        let part = self.records.get_mut(key)?.parts.pop_front()?;
        if let Some(instruction) = self.instructions.get_mut(&part.serial) {
            instruction.waiting = instruction.waiting.saturating_sub(1);
        }
        Some(part)
    }

    /// The Node was cordoned for the first waiting part of the machine.
    pub(crate) fn cordoned(&mut self, key: &Key, node: Arc<NodeView>) {
        let id = NodeId { name: node.name.clone(), uid: node.uid.clone() };
        self.nodes.wrote(node);
        let Some(part) = self.part_over(key) else { return };
        let Some(instruction) = self.instructions.get_mut(&part.serial) else { return };
        let counted = instruction.nodes.contains(&id.name);
        if counted {
            return self.settle(part.serial);
        }
        instruction.nodes.push(id.name.clone());
        instruction.running += 1;
        let (grace, preemptor_priority) = (instruction.grace, instruction.preemptor_priority);
        self.effects.push(Effect::Tell(Told::Reclaim {
            node: id.clone(),
            instruction: part.instruction.clone(),
            grace,
            preemptor_priority,
        }));
        let received = self.records.get(key).map(|record| &record.received);
        let latest = received.and_then(|received| received.latest.as_ref());
        // Later frames have said more than this instruction did.
        if latest.is_none_or(|latest| latest.order < part.order) {
            self.set_phase(key, Phase::Draining, None);
        }
        // A frame that came meanwhile says that the binding is over, or the reclaim.
        if self.is_over(key, &part) {
            self.unmark(key, &id.name);
            self.drain_over(&[part.serial], false);
            return;
        }
        self.settle(part.serial);
        self.drain(key, id, &part, grace, preemptor_priority);
    }

    /// Joins the Node's drain, or starts one.
    fn drain(
        &mut self,
        key: &Key,
        node: NodeId,
        part: &Part,
        grace: Duration,
        preemptor_priority: i32,
    ) {
        if self.drains.get(&node.name).is_some_and(|drain| drain.uid != node.uid) {
            self.stop_drain(&node.name);
        }
        if let Some(drain) = self.drains.get_mut(&node.name) {
            drain.serials.push(part.serial);
            if part.deadline < drain.deadline {
                drain.deadline = part.deadline;
                drain.deadline_text = part.deadline_text.clone();
                let (number, deadline) = (drain.number, drain.deadline);
                self.effects.push(Effect::Sooner { number, deadline });
            }
            return;
        }
        let start = Start {
            node,
            number: 0,
            deadline: part.deadline,
            overdue: false,
            grace,
            preemptor_priority,
        };
        self.start_drain(key, start, part.deadline_text.clone(), vec![part.serial]);
    }

    pub(super) fn start_drain(
        &mut self,
        key: &Key,
        start: Start,
        deadline_text: Arc<str>,
        serials: Vec<u64>,
    ) {
        self.serial += 1;
        let number = self.serial;
        self.drains.insert(
            start.node.name.clone(),
            Draining {
                uid: start.node.uid.clone(),
                key: key.clone(),
                number,
                deadline: start.deadline,
                deadline_text,
                serials,
            },
        );
        self.effects.push(Effect::Start(Start { number, ..start }));
    }

    /// A drain came to its end.
    pub(crate) fn drain_ended(&mut self, node: &Arc<str>, number: u64, outcome: &Outcome) {
        if self.drains.get(node).is_none_or(|drain| drain.number != number) {
            return;
        }
        let Some(drain) = self.drains.remove(node) else { return };
        let id = NodeId { name: node.clone(), uid: drain.uid };
        let error: Option<Arc<str>> = match outcome {
            Outcome::Drained => None,
            Outcome::Failed(remaining) => Some(remaining.to_string().into()),
        };
        self.effects.push(Effect::Tell(match &error {
            None => Told::Drained(id),
            Some(text) => Told::DrainTimeout(id, text.clone()),
        }));
        if self.drain_shows(&drain.key, node) {
            let phase = if error.is_some() { Phase::Failed } else { Phase::Drained };
            self.set_phase(&drain.key, phase, error.clone());
        }
        self.unmark(&drain.key, node);
        self.drain_over(&drain.serials, error.is_none());
    }

    /// Whether the end of a drain is news: not when the machine has failed meanwhile, nor when it
    /// is already known to stay.
    fn drain_shows(&self, key: &Key, node: &str) -> bool {
        let Some(record) = self.records.get(key) else { return false };
        let state = record.received.latest.as_ref().map(|latest| latest.state);
        let bound = matches!(state, None | Some(MachineState::Configured | MachineState::Draining));
        bound && !self.nodes.get(node).is_some_and(|node| self.has_returned(key, node))
    }

    /// The machine's binding is over: what runs on its Node from now on is not to be evicted.
    pub(super) fn stop_drain_of(&mut self, key: &Key) {
        let clues = self.records.get(key).and_then(|record| record.clues());
        let linked = clues.and_then(|clues| self.nodes.link(clues).node());
        let linked = linked.map(|node| node.name.clone());
        let keyed = self.drains.iter().filter(|(_, drain)| drain.key == *key);
        let nodes: BTreeSet<_> = keyed.map(|(node, _)| node.clone()).chain(linked).collect();
        for node in nodes {
            self.stop_drain(&node);
        }
    }

    pub(super) fn stop_drain(&mut self, node: &Arc<str>) {
        let Some(drain) = self.drains.remove(node) else { return };
        self.effects.push(Effect::Stop { number: drain.number });
        self.unmark(&drain.key, node);
        self.drain_over(&drain.serials, false);
    }

    /// A drain is over: its deadline is removed, and whoever the Node belongs to looks again.
    pub(super) fn unmark(&mut self, key: &Key, node: &Arc<str>) {
        self.records.entry(key.clone()).or_default().unmark = Some(node.clone());
        self.due(key, true);
        // A resumed drain may have begun before the machine of its Node was known.
        let node = self.nodes.get(node).cloned();
        for key in node.map(|node| self.candidates(&node)).unwrap_or_default() {
            self.due(&key, true);
        }
    }
}
