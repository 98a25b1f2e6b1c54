//! Instructions that a shard has not answered for good. Sequence numbers order them
//! within one leadership; the id guards against doing one twice.

use std::{collections::BTreeMap, time::Duration};

use bigfleet_wire::v1alpha1::{
    self as wire, coordinator_instruction::Payload, instruct_ack::Outcome,
};

use crate::state::{Domain, Transfer, TransferId, TransferKind, TransferRequest};

/// Most instructions in one answer.
pub(super) const PER_ACK: usize = 64;
/// How often one that failed is sent again.
const REDELIVERIES: u32 = 5;

/// One instruction.
#[derive(Clone, Debug)]
struct Pending {
    id: String,
    what: What,
    failures: u32,
    since: Duration,
    /// By which answer it was delivered last; 0 before the first.
    told: u64,
}

#[derive(Clone, Debug)]
enum What {
    Assign(Domain),
    Unassign(Domain),
    /// The record of the transfer says the rest.
    Transfer(TransferId),
}

/// What an ack did to its instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acked {
    /// Not one of ours.
    Unknown,
    /// Done with, one way or the other.
    Removed,
    /// It is sent again.
    Kept,
    /// It failed too often.
    GivenUp,
}

/// All instructions of one shard.
#[derive(Clone, Debug, Default)]
pub(super) struct Instructions {
    by_sequence: BTreeMap<i64, Pending>,
    /// Answers that delivered something.
    answers: u64,
}

impl Instructions {
    pub(super) fn len(&self) -> usize {
        self.by_sequence.len()
    }

    /// When the oldest was enqueued. Transfers have a time of their own: a drain is not
    /// answered for a quarter of an hour.
    pub(super) fn oldest(&self) -> Option<Duration> {
        let told = |pending: &&Pending| !matches!(pending.what, What::Transfer(_));
        self.by_sequence.values().filter(told).map(|pending| pending.since).min()
    }

    /// The shard has, or has lost, this domain. Only the last word about one counts.
    pub(super) fn tell(
        &mut self,
        seq: i64,
        id: String,
        domain: Domain,
        gained: bool,
        now: Duration,
    ) {
        let about = |pending: &Pending| match &pending.what {
            What::Assign(other) | What::Unassign(other) => *other == domain,
            What::Transfer(_) => false,
        };
        self.by_sequence.retain(|_, pending| !about(pending));
        let what = if gained { What::Assign(domain) } else { What::Unassign(domain) };
        self.push(seq, id, what, now);
    }

    /// The shard has this domain, of which nothing else is said.
    pub(super) fn assign(&mut self, seq: i64, id: String, domain: Domain, now: Duration) {
        self.push(seq, id, What::Assign(domain), now);
    }

    /// The transfer is to be released, if that was not said before.
    pub(super) fn ask(&mut self, seq: &mut i64, id: &TransferId, now: Duration) {
        if !self.by_sequence.values().any(|pending| pending.id == **id) {
            *seq += 1;
            self.push(*seq, id.to_string(), What::Transfer(id.clone()), now);
        }
    }

    fn push(&mut self, seq: i64, id: String, what: What, since: Duration) {
        self.by_sequence.insert(seq, Pending { id, what, failures: 0, since, told: 0 });
    }

    /// Forgets all about domains: the whole list follows.
    pub(super) fn forget_domains(&mut self) {
        self.by_sequence.retain(|_, pending| matches!(pending.what, What::Transfer(_)));
    }

    /// Forgets transfers that no longer wait for this shard.
    pub(super) fn keep_transfers(&mut self, waits: impl Fn(&TransferId) -> bool) {
        self.by_sequence.retain(|_, pending| match &pending.what {
            What::Transfer(id) => waits(id),
            What::Assign(_) | What::Unassign(_) => true,
        });
    }

    /// Takes an answer to an instruction about a domain. Transfers end by their record.
    pub(super) fn acked(&mut self, ack: &wire::InstructAck) -> Acked {
        let found =
            self.by_sequence.iter_mut().find(|(_, pending)| pending.id == ack.instruction_id);
        let Some((&seq, pending)) = found else { return Acked::Unknown };
        match Outcome::try_from(ack.outcome) {
            Ok(Outcome::Accepted | Outcome::RejectedInvalid | Outcome::RejectedStale) => {
                self.by_sequence.remove(&seq);
                Acked::Removed
            }
            Ok(Outcome::Failed | Outcome::Unspecified) | Err(_) => {
                pending.failures += 1;
                if pending.failures > REDELIVERIES {
                    self.by_sequence.remove(&seq);
                    return Acked::GivenUp;
                }
                Acked::Kept
            }
        }
    }

    /// A few, by sequence number, and whether there are more. Those go that were not
    /// delivered for longest: a drain is not answered for a quarter of an hour, and what
    /// came after so many of them must not wait for that.
    pub(super) fn deliver(
        &mut self,
        term: i64,
        transfer: impl Fn(&TransferId) -> Option<Transfer>,
    ) -> (Vec<wire::CoordinatorInstruction>, bool) {
        let mut waiting: Vec<(u64, i64)> =
            self.by_sequence.iter().map(|(seq, pending)| (pending.told, *seq)).collect();
        let more = waiting.len() > PER_ACK;
        if more {
            waiting.sort_unstable();
            waiting.truncate(PER_ACK);
        }
        let mut chosen: Vec<i64> = waiting.into_iter().map(|(_, seq)| seq).collect();
        chosen.sort_unstable();
        self.answers += 1;
        let answer = self.answers;
        let deliver = |seq: i64| {
            let pending = self.by_sequence.get_mut(&seq)?;
            pending.told = answer;
            let payload = match &pending.what {
                What::Assign(Domain { key, value }) => Payload::AssignDomain(wire::AssignDomain {
                    topology_key: key.to_string(),
                    topology_value: value.to_string(),
                }),
                What::Unassign(Domain { key, value }) => {
                    Payload::UnassignDomain(wire::UnassignDomain {
                        topology_key: key.to_string(),
                        topology_value: value.to_string(),
                    })
                }
                What::Transfer(id) => order(id, &transfer(id)?),
            };
            Some(wire::CoordinatorInstruction {
                coordinator_term: term,
                sequence_number: seq,
                instruction_id: pending.id.clone(),
                payload: Some(payload),
            })
        };
        (chosen.into_iter().filter_map(deliver).collect(), more)
    }
}

/// What a donor is asked for.
pub(super) fn selector(request: &TransferRequest) -> wire::TransferSelector {
    let requirements = request.requirements.iter().map(|one| wire::NodeSelectorRequirement {
        key: one.key.clone(),
        operator: one.operator,
        values: one.values.clone(),
    });
    let min_unit = request.min_unit.iter().map(|(name, text)| (name.clone(), text.clone()));
    wire::TransferSelector {
        count: request.count,
        instance_type: request.instance_type.clone(),
        zone: request.zone.clone(),
        requirements: requirements.collect(),
        min_unit: Some(wire::Resources { resources: min_unit.collect() }),
        capacity_type: request.capacity_type,
    }
}

/// A Releasing transfer as its donor is told of it.
fn order(id: &TransferId, transfer: &Transfer) -> Payload {
    let request = &transfer.request;
    let selector = Some(selector(request));
    let (from_shard_id, to_shard_id) = (transfer.from.to_string(), transfer.to.to_string());
    let transfer_id = id.to_string();
    match transfer.kind {
        TransferKind::Idle => Payload::TransferOwnership(wire::TransferOwnership {
            machine_ids: Vec::new(),
            from_shard_id,
            to_shard_id,
            selector,
            transfer_id,
        }),
        TransferKind::Speculative => Payload::ReassignSpeculative(wire::ReassignSpeculative {
            machine_ids: Vec::new(),
            selector,
            transfer_id,
            from_shard_id,
            to_shard_id,
        }),
        TransferKind::Drain => Payload::CrossShardDrain(wire::CrossShardDrain {
            machine_ids: Vec::new(),
            preemptor_priority: request.preemptor_priority,
            selector,
            transfer_id,
            preemptor_penalty_bucket: request.preemptor_penalty_bucket,
        }),
    }
}
