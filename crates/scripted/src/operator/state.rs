//! Everything an operator has seen and made of it. Pure: frames in, state out.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_model::MachineState;
use bigfleet_wire::v1alpha1::{
    Acknowledgement, NodeStateUpdate, ReclaimAck, ReclaimInstruction, ShardMessage,
    shard_message::Payload,
};
use tonic::Status;

use super::picture::Picture;

/// Answers kept: enough for any test, bounded for runs without an end.
const ANSWERS: usize = 1_024;

/// What the shard said to a roll-up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Applied.
    Accepted,
    /// Quarantined.
    Held,
    /// Refused whole, with this text.
    Rejected(String),
}

/// Frames by kind, over all sessions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Received {
    /// `Acknowledgement`.
    pub acks: u64,
    /// `BootstrapRequest`.
    pub bootstrap_requests: u64,
    /// `ReclaimInstruction`.
    pub reclaim_instructions: u64,
    /// `NodeStateUpdate`.
    pub node_states: u64,
    /// `AvailableCapacityUpdate`.
    pub available_capacities: u64,
    /// `NeedStatusUpdate`.
    pub need_statuses: u64,
    /// A payload of no known kind.
    pub unknown: u64,
}

/// A drain under way or over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drain {
    /// `nodes_started` of its first ack.
    pub started: i32,
    /// Nodes that it still has; a machine that leaves otherwise is none of its.
    pub nodes: BTreeSet<String>,
    /// The final ack, once there is one.
    pub finished: Option<ReclaimAck>,
}

/// What one operator has seen.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// Number of this session; the first is 1.
    pub session: u64,
    /// Hello acks of this session.
    pub hellos: u64,
    /// Of the latest ack.
    pub coordinator_term: i64,
    /// Of the latest ack.
    pub shard_epoch: i64,
    /// This session's frames in order, if they are recorded.
    pub frames: Vec<ShardMessage>,
    /// How many of which kind.
    pub received: Received,
    /// Machines, capacity and needs.
    pub picture: Picture,
    /// Answers to roll-ups by their timestamp, the latest of them.
    pub answers: BTreeMap<i64, Answer>,
    /// Drains by instruction, until all their machines are gone or back.
    pub drains: BTreeMap<String, Drain>,
    /// How this session ended; OK if the shard closed it so.
    pub ended: Option<Status>,
}

impl State {
    /// All frames of all sessions.
    #[must_use]
    pub const fn total(&self) -> u64 {
        let Received {
            acks,
            bootstrap_requests,
            reclaim_instructions,
            node_states,
            available_capacities,
            need_statuses,
            unknown,
        } = self.received;
        acks + bootstrap_requests
            + reclaim_instructions
            + node_states
            + available_capacities
            + need_statuses
            + unknown
    }

    pub(super) fn begin_session(&mut self) {
        self.session += 1;
        self.hellos = 0;
        self.frames.clear();
        self.ended = None;
        self.picture.begin_session();
    }

    /// Takes in one frame. Requests and instructions only count here; they are
    /// the script's to answer.
    pub(super) fn receive(&mut self, message: ShardMessage, record: bool) {
        if record {
            self.frames.push(message.clone());
        }
        match message.payload {
            Some(Payload::Ack(ack)) => {
                self.received.acks += 1;
                self.acknowledged(&ack);
            }
            Some(Payload::BootstrapRequest(_)) => self.received.bootstrap_requests += 1,
            Some(Payload::ReclaimInstruction(_)) => self.received.reclaim_instructions += 1,
            Some(Payload::NodeStateUpdate(frame)) => {
                self.received.node_states += 1;
                self.node_state(frame);
            }
            Some(Payload::AvailableCapacity(update)) => {
                self.received.available_capacities += 1;
                self.picture.available.insert(update.supersedes_key.clone(), update);
            }
            Some(Payload::NeedStatus(update)) => {
                self.received.need_statuses += 1;
                self.picture.needs.insert(update.supersedes_key.clone(), update);
            }
            None => self.received.unknown += 1,
        }
    }

    fn acknowledged(&mut self, ack: &Acknowledgement) {
        self.coordinator_term = ack.coordinator_term;
        self.shard_epoch = ack.shard_epoch;
        let answer = match ack.echo.as_str() {
            "hello" => {
                self.hellos += 1;
                return;
            }
            "resync" => {
                self.picture.resync(self.session);
                for drain in self.drains.values_mut() {
                    drain.nodes.retain(|node| self.picture.cordons.contains_key(node));
                }
                self.drop_settled_drains();
                return;
            }
            "rollup" if ack.held => Answer::Held,
            "rollup" => Answer::Accepted,
            echo => match echo.strip_prefix("rollup_rejected: ") {
                Some(text) => Answer::Rejected(text.to_owned()),
                None => return,
            },
        };
        self.answers.insert(ack.rollup_timestamp_unix_nanos, answer);
        while self.answers.len() > ANSWERS {
            self.answers.pop_first();
        }
    }

    fn node_state(&mut self, frame: NodeStateUpdate) {
        let id = frame.machine_id.clone();
        let rebound = matches!(
            MachineState::from_wire(frame.state),
            Some(MachineState::Idle | MachineState::Configuring)
        );
        // A drain belongs to one binding: past it, it would evict another's pods.
        if frame.gone || rebound {
            for drain in self.drains.values_mut() {
                drain.nodes.remove(&id);
            }
        }
        self.picture.node_state(frame, self.session);
        self.uncordon(&id);
        self.drop_settled_drains();
    }

    fn uncordon(&mut self, id: &str) {
        let runs = |drain: &Drain| drain.finished.is_none() && drain.nodes.contains(id);
        if !self.drains.values().any(runs) {
            self.picture.uncordon(id, self.session);
        }
    }

    /// A drain that is over is remembered while one of its nodes carries its mark.
    fn drop_settled_drains(&mut self) {
        let cordons = &self.picture.cordons;
        self.drains.retain(|id, drain| {
            let marked =
                |node: &String| cordons.get(node).is_some_and(|cordon| cordon.instruction == *id);
            drain.nodes.iter().any(|node| drain.finished.is_none() || marked(node))
        });
    }

    /// Cordons the nodes and opens their drain; its first ack.
    pub(super) fn cordon(&mut self, instruction: &ReclaimInstruction) -> ReclaimAck {
        let id = &instruction.instruction_id;
        for node in &instruction.nodes {
            self.picture.cordon(node, id, self.session);
        }
        let started = i32::try_from(instruction.nodes.len()).unwrap_or(i32::MAX);
        let nodes = instruction.nodes.iter().cloned().collect();
        self.drains.insert(id.clone(), Drain { started, nodes, finished: None });
        ReclaimAck { instruction_id: id.clone(), nodes_started: started, ..Default::default() }
    }

    /// Ends a drain; its final ack. None if it is over or was never begun.
    pub(super) fn finish(&mut self, instruction: &str, in_time: bool) -> Option<ReclaimAck> {
        let drain = self.drains.get_mut(instruction).filter(|drain| drain.finished.is_none())?;
        let drained = if in_time { drain.nodes.len() } else { 0 };
        let ack = ReclaimAck {
            instruction_id: instruction.to_owned(),
            nodes_started: drain.started,
            nodes_drained: i32::try_from(drained).unwrap_or(i32::MAX),
            finished: true,
        };
        drain.finished = Some(ack.clone());
        for node in drain.nodes.clone() {
            self.uncordon(&node);
        }
        self.drop_settled_drains();
        Some(ack)
    }

    /// Final acks to say again on a new session: one lost with the old costs the
    /// whole grace.
    pub(super) fn final_acks(&self) -> impl Iterator<Item = &ReclaimAck> {
        self.drains.values().filter_map(|drain| drain.finished.as_ref())
    }

    /// One line for whoever waited in vain.
    pub(super) fn summary(&self) -> String {
        let last =
            self.frames.last().map_or_else(|| "none".to_owned(), |frame| format!("{frame:?}"));
        format!(
            "session {}, ended: {:?}, machines: {}, frames: {:?}, last frame: {last}",
            self.session,
            self.ended,
            self.picture.machines.len(),
            self.received,
        )
    }
}
