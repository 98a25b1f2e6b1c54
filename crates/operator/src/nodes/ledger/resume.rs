use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bigfleet_crds::{UpcomingNodePhase as Phase, upcoming_node_name};
use jiff::Timestamp;

use super::instructions::Instruction;
use super::{Key, Ledger};
use crate::dispatch::Moment;
use crate::nodes::effect::{NodeId, Start};
use crate::nodes::view::NodeView;

/// The longest grace of a shard: a deadline further off comes from another clock.
const LONGEST: Duration = Duration::from_secs(600);

impl Ledger {
    /// Takes over what an earlier process left on the Nodes: drains whose deadline lies ahead go
    /// on, those past it end as Failed, and those that had ended are acknowledged again.
    pub(crate) fn resume(&mut self, now: Moment, wall: Timestamp) {
        let mut by_instruction: BTreeMap<Arc<str>, Vec<Arc<NodeView>>> = BTreeMap::new();
        for node in self.nodes.iter() {
            if let Some(id) = &node.instruction {
                by_instruction.entry(id.clone()).or_default().push(node.clone());
            }
        }
        for (id, nodes) in by_instruction {
            self.resume_instruction(id, &nodes, now, wall);
        }
        if self.session.is_some() {
            self.repeat_final_acks();
        }
    }

    fn resume_instruction(
        &mut self,
        id: Arc<str>,
        nodes: &[Arc<NodeView>],
        now: Moment,
        wall: Timestamp,
    ) {
        self.serial += 1;
        let serial = self.serial;
        let running = nodes.iter().filter(|node| node.deadline.is_some());
        let drained = nodes.iter().filter(|node| {
            node.deadline.is_none() && self.phase(&self.keeper_of(node)) == Some(Phase::Drained)
        });
        let instruction = Instruction {
            id,
            grace: Duration::ZERO,
            preemptor_priority: 0,
            waiting: 0,
            nodes: nodes.iter().map(|node| node.name.clone()).collect(),
            running: running.clone().count(),
            drained: drained.count(),
            first_ack_sent: true,
        };
        self.instructions.insert(serial, instruction);
        for node in running {
            let text = node.deadline.clone().unwrap_or_default();
            let left = time_left(&text, wall);
            let key = self.keeper_of(node);
            self.records.entry(key.clone()).or_default();
            let start = Start {
                node: NodeId { name: node.name.clone(), uid: node.uid.clone() },
                number: 0,
                deadline: now + left.unwrap_or_default(),
                overdue: left.is_none(),
                grace: left.unwrap_or_default(),
                preemptor_priority: 0,
            };
            self.start_drain(&key, start, text, vec![serial]);
        }
    }

    /// The machine of a Node, before any frame has come: by its links, else by what its object was
    /// told earlier.
    fn keeper_of(&self, node: &Arc<NodeView>) -> Key {
        let told = || {
            let mut objects = self.objects.iter();
            let refers = |name: Option<&Arc<str>>| name == Some(&node.name);
            let object = objects.find(|object| {
                refers(object.status.as_ref().and_then(|status| status.node.as_ref()))
            });
            object.map(|object| object.name.clone())
        };
        self.machine_of(node).or_else(told).unwrap_or_else(|| upcoming_node_name(&node.name).into())
    }
}

/// The time left of a written deadline; none when it has passed or cannot be read.
fn time_left(deadline: &str, wall: Timestamp) -> Option<Duration> {
    let deadline: Timestamp = deadline.parse().ok()?;
    let left = Duration::try_from(deadline.duration_since(wall)).ok()?;
    (!left.is_zero()).then_some(left.min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_deadline_is_clamped_and_a_past_one_is_none() {
        let wall: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let left = |text| time_left(text, wall);
        assert_eq!(left("2026-01-01T00:00:30Z"), Some(Duration::from_secs(30)));
        assert_eq!(left("2026-01-01T02:00:00Z"), Some(LONGEST));
        assert_eq!(left("2026-01-01T00:00:00Z"), None);
        assert_eq!(left("2025-12-31T23:59:59Z"), None);
        assert_eq!(left("soon"), None);
    }
}
