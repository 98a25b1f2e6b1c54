//! The inventory gate: each record of a provider is accepted or refused alone
//! (wire chapter §8.2). A refused record is not a removal.

use std::{collections::BTreeMap, fmt, sync::Arc};

use bigfleet_wire::v1alpha1 as wire;

use super::{
    Refusal,
    quantities::{self, Rounding},
};
use crate::{
    id::ClusterId,
    machine::{CapacityType, Class, Declared, HostRef, Machine, MachineState},
};

/// Why a record was refused, as the metric label says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RejectReason {
    /// The price is negative, infinite or NaN.
    Price,
    /// The probability is outside `[0,1]` or NaN.
    InterruptionProbability,
    /// Anything else.
    Structural,
}

impl RejectReason {
    /// The metric label.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Price => "price",
            Self::InterruptionProbability => "interruption_probability",
            Self::Structural => "structural",
        }
    }
}

/// A refused record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// For the counter.
    pub reason: RejectReason,
    /// For people.
    pub refusal: Refusal,
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.refusal.fmt(f)
    }
}

impl std::error::Error for Rejected {}

/// An accepted record.
#[derive(Clone, Debug, PartialEq)]
pub struct Accepted {
    /// The machine.
    pub machine: Machine,
    /// A binding that its state cannot have was cleared: worth a warning.
    pub stray_binding: bool,
}

/// Checks one record of a List or an acknowledgement.
pub fn machine(message: wire::Machine) -> Result<Accepted, Rejected> {
    let structural = |refusal| Rejected { reason: RejectReason::Structural, refusal };
    if message.id.is_empty() {
        return Err(structural(Refusal::new("id", "empty")));
    }
    let state = MachineState::from_wire(message.state)
        .ok_or_else(|| structural(Refusal::out_of_range("state", message.state, 1, 8)))?;
    let host = message
        .host
        .filter(|host| !host.provider.is_empty() || !host.r#ref.is_empty())
        .map(|host| HostRef { provider: host.provider, reference: host.r#ref });
    let cluster = Some(message.cluster).filter(|cluster| !cluster.is_empty());
    fits_state(state, host.is_some(), cluster.is_some(), &message.last_error)
        .map_err(structural)?;
    check_cost(message.price_per_hour, message.interruption_probability)?;
    let resources = declared("resources", message.resources).map_err(structural)?;
    let allocatable = declared("allocatable", message.allocatable).map_err(structural)?;

    let bindable = !matches!(
        state,
        MachineState::Speculative
            | MachineState::Creating
            | MachineState::Idle
            | MachineState::Deleting
    );
    let stray_binding = !bindable && (cluster.is_some() || !message.shard_metadata.is_empty());
    let machine = Machine {
        id: message.id.into(),
        state,
        host,
        class: Arc::new(Class {
            instance_type: message.instance_type,
            zone: message.zone,
            capacity_type: CapacityType::from_wire(message.capacity_type)
                .unwrap_or(CapacityType::Unspecified),
            // Adding zero turns −0 into 0, so that equal prices have equal bits.
            price_per_hour: message.price_per_hour + 0.0,
            interruption_probability: message.interruption_probability + 0.0,
            labels: message.labels,
            resources,
            allocatable,
        }),
        cluster: cluster.filter(|_| bindable).map(ClusterId::from),
        last_error: message.last_error,
        shard_metadata: if bindable { message.shard_metadata } else { BTreeMap::new() },
        stamp: None,
    };
    Ok(Accepted { machine, stray_binding })
}

/// Host, cluster and error must fit the state. A cluster on an idle or deleting
/// machine is let through here and cleared by the caller.
fn fits_state(
    state: MachineState,
    has_host: bool,
    has_cluster: bool,
    last_error: &str,
) -> Result<(), Refusal> {
    use MachineState::{
        Configured, Configuring, Creating, Deleting, Draining, Failed, Idle, Speculative,
    };
    let name = state.wire_name();
    let must_be_empty = |field| Refusal::new(field, format_args!("must be empty while {name}"));
    let required = |field| Refusal::new(field, format_args!("required while {name}"));
    match state {
        Speculative | Creating if has_host => Err(must_be_empty("host")),
        Speculative | Creating if has_cluster => Err(must_be_empty("cluster")),
        Idle | Deleting | Configuring | Configured | Draining if !has_host => Err(required("host")),
        Configured | Draining if !has_cluster => Err(required("cluster")),
        Failed if last_error.is_empty() => Err(required("last_error")),
        _ => Ok(()),
    }
}

fn check_cost(price: f64, probability: f64) -> Result<(), Rejected> {
    if !(price.is_finite() && price >= 0.0) {
        let refusal =
            Refusal::new("price_per_hour", format_args!("{price} is not a finite number >= 0"));
        return Err(Rejected { reason: RejectReason::Price, refusal });
    }
    if !(0.0..=1.0).contains(&probability) {
        let refusal = Refusal::new(
            "interruption_probability",
            format_args!("{probability} out of range [0,1]"),
        );
        return Err(Rejected { reason: RejectReason::InterruptionProbability, refusal });
    }
    Ok(())
}

fn declared(path: &str, message: Option<wire::Resources>) -> Result<Declared, Refusal> {
    let text = message.map(|message| message.resources).unwrap_or_default();
    let vector = quantities::resources(path, &text, Rounding::Down)?;
    Ok(Declared { text, vector })
}
