use std::sync::Arc;
use std::time::Duration;

use bigfleet_wire::v1alpha1::ReclaimAck;

use super::Ledger;
use crate::nodes::effect::Effect;

/// One arrival of a ReclaimInstruction, until both its acks are out and no Node carries it.
#[derive(Debug)]
pub(super) struct Instruction {
    pub(super) id: Arc<str>,
    pub(super) grace: Duration,
    pub(super) preemptor_priority: i32,
    /// Named nodes that are neither cordoned nor given up yet.
    pub(super) waiting: usize,
    /// Nodes that were cordoned for it.
    pub(super) nodes: Vec<Arc<str>>,
    /// Drains that run for it.
    pub(super) running: usize,
    /// Drains that ended Drained.
    pub(super) drained: usize,
    pub(super) first_ack_sent: bool,
}

impl Instruction {
    fn ended(&self) -> bool {
        self.waiting == 0 && self.running == 0
    }

    fn ack(&self, finished: bool) -> ReclaimAck {
        let count = |n: usize| i32::try_from(n).unwrap_or(i32::MAX);
        ReclaimAck {
            instruction_id: self.id.to_string(),
            nodes_started: count(self.nodes.len()),
            nodes_drained: if finished { count(self.drained) } else { 0 },
            finished,
        }
    }
}

impl Ledger {
    /// Sends what an instruction owes: the first ack when all its nodes are cordoned or given up,
    /// the final one when their drains have ended either way.
    pub(super) fn settle(&mut self, serial: u64) {
        let Some(instruction) = self.instructions.get_mut(&serial) else { return };
        if instruction.waiting > 0 {
            return;
        }
        if !std::mem::replace(&mut instruction.first_ack_sent, true) {
            self.effects.push(Effect::Ack(instruction.ack(false)));
        }
        if instruction.ended() {
            self.effects.push(Effect::Ack(instruction.ack(true)));
        }
    }

    /// One drain of these instructions ended.
    pub(super) fn drain_over(&mut self, serials: &[u64], drained: bool) {
        for serial in serials {
            if let Some(instruction) = self.instructions.get_mut(serial) {
                instruction.running = instruction.running.saturating_sub(1);
                instruction.drained += usize::from(drained);
            }
            self.settle(*serial);
        }
    }

    /// A final ack lost with its session would cost the shard the whole grace.
    pub(super) fn repeat_final_acks(&mut self) {
        for instruction in self.instructions.values().filter(|instruction| instruction.ended()) {
            if self.is_carried(instruction) {
                self.effects.push(Effect::Ack(instruction.ack(true)));
            }
        }
    }

    /// Forgets the instructions that no Node carries any more.
    pub(super) fn forget_instructions(&mut self) {
        let over: Vec<u64> = self
            .instructions
            .iter()
            .filter(|(_, instruction)| instruction.ended() && !self.is_carried(instruction))
            .map(|(serial, _)| *serial)
            .collect();
        for serial in over {
            self.instructions.remove(&serial);
        }
        let live = self.instructions.values().map(|instruction| &instruction.id);
        let carried = self.nodes.iter().filter_map(|node| node.instruction.as_ref());
        let kept: std::collections::HashSet<_> = live.chain(carried).cloned().collect();
        self.instructed.retain(|id, _| kept.contains(id));
    }

    fn is_carried(&self, instruction: &Instruction) -> bool {
        instruction.nodes.iter().any(|name| {
            let marked = self.nodes.get(name).is_some_and(|node| node.instruction.is_some());
            marked && !self.drains.contains_key(name)
        })
    }
}
