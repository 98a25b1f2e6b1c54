//! Answers pass the inventory gate here, once. What lies behind trusts them.

use bigfleet_model::{
    Machine, MachineId,
    gate::{
        Refusal,
        inventory::{self, RejectReason, Rejected},
    },
};
use bigfleet_wire::v1alpha1 as wire;

use crate::provider::{Ack, ListFilter, MachineList, RefusedRecord};

pub(super) fn ack(machine: &MachineId, ack: wire::TransitionAck) -> Ack {
    let snapshot = answer_about(machine, ack.machine.unwrap_or_default());
    Ack { operation_id: ack.operation_id, machine: snapshot }
}

/// A record of another machine is no answer about this one.
pub(super) fn answer_about(
    machine: &MachineId,
    message: wire::Machine,
) -> Result<Machine, RefusedRecord> {
    let answer = record(message)?;
    if answer.id == *machine {
        return Ok(answer);
    }
    let reason = format!("answers a call for {machine:?}");
    let refusal = Refusal { path: "id".to_owned(), reason };
    let why = Rejected { reason: RejectReason::Structural, refusal };
    Err(RefusedRecord { id: answer.id.to_string(), why })
}

pub(super) fn list(message: wire::MachineList) -> MachineList {
    let mut list = MachineList { revision: message.revision, ..MachineList::default() };
    list.machines.reserve(message.machines.len());
    for machine in message.machines {
        match record(machine) {
            Ok(machine) => list.machines.push(machine),
            Err(refused) => list.refused.push(refused),
        }
    }
    list
}

fn record(message: wire::Machine) -> Result<Machine, RefusedRecord> {
    let id = message.id.clone();
    let accepted = inventory::machine(message).map_err(|why| RefusedRecord { id, why })?;
    if accepted.stray_binding {
        let machine = &accepted.machine;
        tracing::warn!(
            machine = %machine.id,
            state = machine.state.wire_name(),
            "provider shows a binding on a machine that can have none; cleared"
        );
    }
    Ok(accepted.machine)
}

/// `None` if nothing can match: on the wire an empty list of states means any.
pub(super) fn filter(filter: &ListFilter) -> Option<wire::ListFilter> {
    let states = match filter.states {
        None => Vec::new(),
        Some(states) if states.is_empty() => return None,
        Some(states) => states.iter().map(|state| state.to_wire()).collect(),
    };
    Some(wire::ListFilter {
        states,
        max_results: i32::try_from(filter.max_results).unwrap_or(i32::MAX),
        since_revision: filter.since_revision.clone(),
    })
}
