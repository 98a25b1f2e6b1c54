//! Supply (engine chapter §1.7).

mod class;
pub mod stamp;
mod state;

use std::{collections::BTreeMap, sync::Arc};

use bigfleet_wire::v1alpha1 as wire;

pub use class::{CapacityType, Class, Declared, INSTANCE_TYPE_LABEL, ZONE_LABEL};
pub use stamp::Stamp;
pub use state::MachineState;

use crate::id::{ClusterId, MachineId};

/// How a provider names a real host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostRef {
    /// The provider's own name.
    pub provider: String,
    /// What its backend calls the host.
    pub reference: String,
}

/// One machine, real or possible.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Stable for life.
    pub id: MachineId,
    /// Where it stands.
    pub state: MachineState,
    /// None before it exists.
    pub host: Option<HostRef>,
    /// What it shares with others like it.
    pub class: Arc<Class>,
    /// Whom it is bound to.
    pub cluster: Option<ClusterId>,
    /// Non-empty if failed.
    pub last_error: String,
    /// As the provider echoes it. A shard decodes it into [`Machine::stamp`] on
    /// first sight and drops it.
    pub shard_metadata: BTreeMap<String, String>,
    /// Which need the binding serves. Never on the wire by itself.
    pub stamp: Option<Arc<Stamp>>,
}

impl From<&Machine> for wire::Machine {
    fn from(machine: &Machine) -> Self {
        let mut encoded = Self {
            id: machine.id.to_string(),
            state: machine.state.to_wire(),
            host: machine.host.as_ref().map(|host| wire::HostRef {
                provider: host.provider.clone(),
                r#ref: host.reference.clone(),
            }),
            cluster: machine.cluster.as_deref().unwrap_or_default().to_owned(),
            last_error: machine.last_error.clone(),
            shard_metadata: machine.shard_metadata.clone(),
            ..Self::default()
        };
        machine.class.write_to(&mut encoded);
        encoded
    }
}
