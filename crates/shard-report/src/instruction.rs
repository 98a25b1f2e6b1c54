//! One instruction: what it does to a shard. Those that move machines are the business
//! of [`crate::shared`], for a shard with its own provider scope refuses them.

use bigfleet_shard::{Domain, DomainError, ReportSide};
use bigfleet_wire::v1alpha1::{
    InstructAck, coordinator_instruction::Payload, instruct_ack::Outcome,
};

/// Accepting without doing anything would mislead the coordinator.
pub(crate) const UNSUPPORTED: &str = "unsupported";
/// Of an instruction that took effect before.
pub(crate) const DUPLICATE: &str = "duplicate-redelivery";

/// What a shard is told to do with a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// It is the shard's.
    Assign(Domain),
    /// It is not.
    Unassign(Domain),
}

/// Why an instruction is not carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("unknown payload; this shard is older than its coordinator")]
    Unknown,
    #[error("{UNSUPPORTED}")]
    Unsupported,
    #[error(transparent)]
    Failed(#[from] DomainError),
}

impl Refused {
    pub(crate) const fn outcome(&self) -> Outcome {
        match self {
            Self::Unknown | Self::Unsupported => Outcome::RejectedInvalid,
            Self::Failed(_) => Outcome::Failed,
        }
    }
}

/// Whether it moves machines between shards of one provider.
pub(crate) const fn moves_machines(payload: &Payload) -> bool {
    match payload {
        Payload::ReassignSpeculative(_)
        | Payload::CrossShardDrain(_)
        | Payload::TransferOwnership(_) => true,
        Payload::AssignDomain(_) | Payload::UnassignDomain(_) => false,
    }
}

/// What a payload asks for.
pub(crate) fn read(payload: Option<Payload>) -> Result<Order, Refused> {
    match payload.ok_or(Refused::Unknown)? {
        Payload::AssignDomain(domain) => {
            Ok(Order::Assign(Domain::new(domain.topology_key, domain.topology_value)?))
        }
        Payload::UnassignDomain(domain) => {
            Ok(Order::Unassign(Domain::new(domain.topology_key, domain.topology_value)?))
        }
        // Machines move between shards of one provider, and this is ours alone.
        Payload::ReassignSpeculative(_)
        | Payload::CrossShardDrain(_)
        | Payload::TransferOwnership(_) => Err(Refused::Unsupported),
    }
}

/// Carries it out.
pub(crate) fn obey(side: &ReportSide, order: Order) {
    match order {
        Order::Assign(domain) => side.assign_domain(domain),
        Order::Unassign(domain) => side.unassign_domain(&domain),
    }
}

/// The answer to an instruction.
pub(crate) fn ack(id: String, outcome: Outcome, reason: impl Into<String>) -> InstructAck {
    InstructAck {
        instruction_id: id,
        outcome: outcome.into(),
        reason: reason.into(),
        ..InstructAck::default()
    }
}

#[cfg(test)]
mod tests {
    use bigfleet_wire::v1alpha1::{AssignDomain, UnassignDomain};

    use super::*;

    #[test]
    fn a_domain_is_a_label_that_can_exist() {
        for (key, value, lives) in [
            (1, 1, true),
            (317, 63, true),
            (0, 1, false),
            (1, 0, false),
            (318, 1, false),
            (1, 64, false),
        ] {
            let (topology_key, topology_value) = ("k".repeat(key), "v".repeat(value));
            let assign = AssignDomain {
                topology_key: topology_key.clone(),
                topology_value: topology_value.clone(),
            };
            let unassign = UnassignDomain { topology_key, topology_value };
            for payload in [Payload::AssignDomain(assign), Payload::UnassignDomain(unassign)] {
                let read = read(Some(payload));
                assert_eq!(read.is_ok(), lives, "{key} {value}");
                let failed = read.err().map(|refused| refused.outcome());
                assert_eq!(failed, (!lives).then_some(Outcome::Failed));
            }
        }
    }
}
