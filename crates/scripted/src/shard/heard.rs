use std::collections::BTreeMap;

use bigfleet_wire::v1alpha1::{ClusterCapacityNeeds, operator_message::Payload as Up};
use tonic::Status;

use super::Outbox;

/// How roll-ups are acked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Acks {
    /// Each at once.
    #[default]
    Accept,
    /// Each at once, as quarantined.
    Hold,
    /// Each is refused.
    Reject,
    /// As a shard does that is slower than its operator.
    EverySecond,
    /// Never.
    None,
}

/// What a scripted shard has heard.
#[derive(Debug, Default)]
pub struct Heard {
    /// Every frame, with the number of its session, from 1.
    pub frames: Vec<(usize, Up)>,
    /// Frames without a payload.
    pub empty_frames: usize,
    /// How the operator's half of each session ended.
    pub ends: BTreeMap<usize, Result<(), Status>>,
    pub(super) acks: Acks,
    pub(super) forgetful: bool,
    pub(super) deaf: bool,
    /// Writers of the sessions; dropping one ends its session with OK.
    pub(super) outboxes: BTreeMap<usize, Outbox>,
    pub(super) sessions: usize,
}

impl Heard {
    /// Sessions so far.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.sessions
    }

    /// Sessions that stand.
    #[must_use]
    pub fn live_sessions(&self) -> usize {
        self.outboxes.len()
    }

    /// The roll-ups, in order.
    pub fn roll_ups(&self) -> impl Iterator<Item = &ClusterCapacityNeeds> {
        self.frames.iter().filter_map(|(_, frame)| match frame {
            Up::Rollup(roll_up) => Some(roll_up),
            _ => None,
        })
    }

    /// Session, nodes started, nodes drained and finality of every reclaim ack.
    #[must_use]
    pub fn reclaim_acks(&self) -> Vec<(usize, i32, i32, bool)> {
        let acks = self.frames.iter().filter_map(|(session, frame)| match frame {
            Up::ReclaimAck(ack) => {
                Some((*session, ack.nodes_started, ack.nodes_drained, ack.finished))
            }
            _ => None,
        });
        acks.collect()
    }
}
