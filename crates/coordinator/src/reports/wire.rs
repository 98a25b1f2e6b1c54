//! Between the state's terms and the wire's.

use bigfleet_wire::v1alpha1 as wire;

use crate::state::{
    Assignment, Domain, Holdings, Key, MachineId, MachineIn, Settled, TransferMachine,
};

pub(super) fn number(index: u64) -> i64 {
    i64::try_from(index).unwrap_or(i64::MAX)
}

pub(super) fn home(domain: &Domain, shard: &str) -> wire::DomainAssignment {
    wire::DomainAssignment {
        topology_key: domain.key.to_string(),
        topology_value: domain.value.to_string(),
        shard_id: shard.to_owned(),
    }
}

fn machines(machines: &[TransferMachine]) -> Vec<wire::TransferMachine> {
    let machine = |one: &TransferMachine| wire::TransferMachine {
        transfer_id: one.transfer.to_string(),
        machine_id: one.machine.to_string(),
        home: Some(home(&one.home, &one.from)),
    };
    machines.iter().map(machine).collect()
}

pub(super) fn assignment(shard: &str, assignment: &Assignment) -> wire::Assignment {
    let slices = assignment.quota_slices.iter().map(|slice| wire::QuotaSlice {
        provider: slice.key.provider.clone(),
        region: slice.key.region.clone(),
        slice: slice.slice,
    });
    wire::Assignment {
        digest: assignment.digest,
        domains: assignment.domains.iter().map(|domain| home(domain, shard)).collect(),
        machines_in: machines(&assignment.machines_in),
        machines_out: machines(&assignment.machines_out),
        quota_slices: slices.collect(),
        clusters: assignment.clusters.iter().map(ToString::to_string).collect(),
        version: number(assignment.version),
        open_transfers: assignment.open_transfers.iter().map(ToString::to_string).collect(),
    }
}

/// A domain of the wire.
pub(crate) fn domain(domain: &wire::DomainAssignment) -> Domain {
    Domain::new(&domain.topology_key, &domain.topology_value)
}

/// The keys of what a shard says that it has.
pub(super) fn keys(held: &wire::Assignment) -> impl Iterator<Item = Key> {
    let clusters = held.clusters.iter().map(|cluster| Key::Cluster(cluster.as_str().into()));
    clusters.chain(held.domains.iter().map(|one| Key::Domain(domain(one))))
}

pub(super) fn holdings(held: &wire::Assignment) -> Holdings {
    let machine_in = |one: &wire::TransferMachine| {
        let home = one.home.as_ref()?;
        Some(MachineIn {
            transfer: one.transfer_id.as_str().into(),
            machine: one.machine_id.as_str().into(),
            home: domain(home),
            from: home.shard_id.as_str().into(),
        })
    };
    Holdings {
        domains: held.domains.iter().map(domain).collect(),
        clusters: held.clusters.iter().map(|cluster| cluster.as_str().into()).collect(),
        machines_in: held.machines_in.iter().filter_map(machine_in).collect(),
    }
}

pub(super) fn settled(machines: &[wire::TransferMachine]) -> impl Iterator<Item = Settled> {
    machines.iter().map(|one| Settled {
        transfer: one.transfer_id.as_str().into(),
        machine: one.machine_id.as_str().into(),
    })
}

pub(super) fn machine_ids(ids: &[String]) -> Vec<MachineId> {
    ids.iter().map(|id| id.as_str().into()).collect()
}
