//! Between holdings and the wire.

use std::collections::BTreeSet;

use bigfleet_model::{CapacityType, ClusterId, gate};
use bigfleet_wire::v1alpha1::{self as wire, coordinator_instruction::Payload};

use super::{
    Assignment, Domain, DomainError, Holdings, Keys, Selector, Slice, TransferId, TransferMachine,
    Wanted,
};

/// A message that means nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A domain that cannot exist.
    #[error(transparent)]
    Domain(#[from] DomainError),
    /// A machine on transfer without a home.
    #[error("transfer {0}: home is missing")]
    NoHome(String),
    /// A selector that no machine can be held against.
    #[error("selector: {0}")]
    Selector(String),
    /// Another payload than the three that move machines.
    #[error("not a transfer")]
    NotATransfer,
}

fn domain(message: wire::DomainAssignment) -> Result<Domain, DomainError> {
    Domain::new(message.topology_key, message.topology_value)
}

fn machine(message: wire::TransferMachine) -> Result<TransferMachine, Malformed> {
    let home = message.home.ok_or_else(|| Malformed::NoHome(message.transfer_id.clone()))?;
    let from = home.shard_id.clone();
    Ok(TransferMachine {
        transfer: message.transfer_id.into(),
        machine: message.machine_id.into(),
        home: domain(home)?,
        from,
    })
}

fn machines(messages: Vec<wire::TransferMachine>) -> Result<BTreeSet<TransferMachine>, Malformed> {
    messages.into_iter().map(machine).collect()
}

impl TryFrom<wire::Assignment> for Assignment {
    type Error = Malformed;

    fn try_from(message: wire::Assignment) -> Result<Self, Malformed> {
        let domains: Result<_, _> = message.domains.into_iter().map(domain).collect();
        let slice = |one: wire::QuotaSlice| Slice {
            provider: one.provider,
            region: one.region,
            slice: one.slice,
        };
        Ok(Self {
            version: message.version,
            digest: message.digest,
            held: Keys {
                domains: domains?,
                clusters: message.clusters.into_iter().map(ClusterId::from).collect(),
            },
            machines_in: machines(message.machines_in)?,
            machines_out: machines(message.machines_out)?,
            slices: message.quota_slices.into_iter().map(slice).collect(),
            open_transfers: message.open_transfers.into_iter().map(TransferId::from).collect(),
        })
    }
}

impl Domain {
    /// As the wire has it, with whoever holds it.
    #[must_use]
    pub fn to_wire(&self, shard: &str) -> wire::DomainAssignment {
        wire::DomainAssignment {
            topology_key: self.key.clone(),
            topology_value: self.value.clone(),
            shard_id: shard.to_owned(),
        }
    }
}

impl TransferMachine {
    fn to_wire(&self) -> wire::TransferMachine {
        wire::TransferMachine {
            transfer_id: self.transfer.to_string(),
            machine_id: self.machine.to_string(),
            home: Some(self.home.to_wire(&self.from)),
        }
    }
}

impl Holdings {
    /// What a report says: lost, and perhaps still acted on.
    #[must_use]
    pub fn releasing_message(&self, shard: &str) -> Option<wire::Assignment> {
        let keys = &self.releasing;
        (!keys.is_empty()).then(|| wire::Assignment {
            domains: keys.domains.iter().map(|one| one.to_wire(shard)).collect(),
            clusters: keys.clusters.iter().map(ToString::to_string).collect(),
            ..wire::Assignment::default()
        })
    }

    /// What a report says: done with.
    #[must_use]
    pub fn settled_message(&self) -> Vec<wire::TransferMachine> {
        self.settled.iter().map(TransferMachine::to_wire).collect()
    }

    /// The truth, for a coordinator that was restored: what is held or being
    /// released, and the machines received and not settled.
    #[must_use]
    pub fn holdings_message(&self, shard: &str) -> wire::Assignment {
        let none = Assignment::default();
        let assignment = self.assignment.as_ref().unwrap_or(&none);
        let all: Keys = assignment.held.iter().chain(self.releasing.iter()).collect();
        wire::Assignment {
            domains: all.domains.iter().map(|one| one.to_wire(shard)).collect(),
            clusters: all.clusters.iter().map(ToString::to_string).collect(),
            machines_in: assignment.machines_in.iter().map(TransferMachine::to_wire).collect(),
            ..wire::Assignment::default()
        }
    }
}

impl Selector {
    /// What an instruction to release machines asks for, and for which transfer.
    pub fn of(payload: Payload) -> Result<(TransferId, Self), Malformed> {
        let plain = (0, wire::PenaltyBucket::Unspecified.into());
        let (wanted, transfer, selector, (priority, bucket)) = match payload {
            Payload::TransferOwnership(one) => (Wanted::Idle, one.transfer_id, one.selector, plain),
            Payload::ReassignSpeculative(one) => {
                (Wanted::Speculative, one.transfer_id, one.selector, plain)
            }
            Payload::CrossShardDrain(one) => {
                let preemptor = (one.preemptor_priority, one.preemptor_penalty_bucket);
                (Wanted::Drained, one.transfer_id, one.selector, preemptor)
            }
            Payload::AssignDomain(_) | Payload::UnassignDomain(_) => {
                return Err(Malformed::NotATransfer);
            }
        };
        let malformed = |why: String| Malformed::Selector(why);
        let selector = selector.ok_or_else(|| malformed("missing".to_owned()))?;
        let capacity_type = CapacityType::from_wire(selector.capacity_type)
            .ok_or_else(|| malformed(format!("capacity_type {}", selector.capacity_type)))?;
        let need = wire::CapacityNeed {
            requirements: selector.requirements,
            priority,
            interruption_penalty_bucket: bucket,
            min_unit: selector.min_unit.map(|unit| unit.resources).unwrap_or_default(),
            ..wire::CapacityNeed::default()
        };
        let need = gate::demand::need(&ClusterId::from(""), 0, need)
            .map_err(|refusal| malformed(refusal.to_string()))?;
        let selector = Self {
            wanted,
            count: usize::try_from(selector.count).unwrap_or_default(),
            instance_type: selector.instance_type,
            zone: selector.zone,
            capacity_type: Some(capacity_type).filter(|one| *one != CapacityType::Unspecified),
            need,
        };
        Ok((transfer.into(), selector))
    }
}
