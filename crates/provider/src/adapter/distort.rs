//! Deliberate defects of what readers are shown (provider chapter §11.1).

use std::sync::atomic::{AtomicU64, Ordering};

use bigfleet_model::{CapacityType, MachineState, machine::INSTANCE_TYPE_LABEL};
use bigfleet_wire::v1alpha1 as wire;

use crate::mutant::{Mutant, active};

/// What a broken provider shows instead of this.
pub fn distort(state: MachineState, shown: &mut wire::Machine) {
    static READS: AtomicU64 = AtomicU64::new(0);
    let reads = READS.fetch_add(1, Ordering::Relaxed);
    for mutant in Mutant::ALL.iter().copied().filter(|mutant| active(*mutant)) {
        distort_by(mutant, state, reads, shown);
    }
}

fn distort_by(mutant: Mutant, state: MachineState, reads: u64, shown: &mut wire::Machine) {
    let stray = |id: &str| Some(wire::HostRef { provider: "stray".into(), r#ref: id.into() });
    match (mutant, state) {
        (Mutant::BoundLate, MachineState::Configuring) => {
            shown.cluster.clear();
            shown.shard_metadata.clear();
        }
        (Mutant::TornSnapshot, MachineState::Configuring | MachineState::Configured) => {
            shown.state = MachineState::Configured.to_wire();
            shown.cluster.clear();
        }
        (Mutant::CreateShowsFailed, MachineState::Creating) => {
            shown.state = MachineState::Failed.to_wire();
            shown.last_error = "not yet".into();
        }
        (Mutant::SettledFlaps, MachineState::Idle | MachineState::Configured) if reads % 4 == 3 => {
            shown.state = MachineState::Draining.to_wire();
        }
        (Mutant::FailedTextChanges, MachineState::Failed) => {
            shown.last_error = format!("{} (seen {reads} times)", shown.last_error);
        }
        (Mutant::HostAtSpeculative, MachineState::Speculative) => shown.host = stray(&shown.id),
        (Mutant::NoHostAtIdle, MachineState::Idle) => shown.host = None,
        (Mutant::HostProviderChanges, _) => {
            if let Some(host) = &mut shown.host {
                host.provider = format!("{}-{reads}", host.provider);
            }
        }
        (Mutant::TypeInLabels, _) => {
            let instance_type = std::mem::take(&mut shown.instance_type);
            shown.labels.insert(INSTANCE_TYPE_LABEL.into(), instance_type);
        }
        (Mutant::ZoneEmpty, _) => shown.zone.clear(),
        (Mutant::CapacityUnset, _) => shown.capacity_type = 0,
        (Mutant::PriceNan, _) => shown.price_per_hour = f64::NAN,
        (Mutant::ProbabilityTooHigh, _) => shown.interruption_probability = 1.5,
        (Mutant::SpotWithoutRisk, _) if shown.capacity_type == CapacityType::Spot.to_wire() => {
            shown.interruption_probability = 0.0;
        }
        (Mutant::QuantityGarbled, _) => {
            let garbled = || wire::Resources { resources: [("cpu".into(), "abc".into())].into() };
            (shown.resources, shown.allocatable) = (Some(garbled()), Some(garbled()));
        }
        _ => {}
    }
}
