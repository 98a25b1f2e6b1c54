//! What BigFleet thinks in: quantities, resource vectors, requirements,
//! profiles, needs and machines, and the two [gates](gate) through which the
//! wire enters.
//!
//! Pure and synchronous. Nothing here knows a network, a clock or a Kubernetes
//! client. The rules are those of `docs/spec/wire.md` §8–11 and
//! `docs/spec/engine.md` §1–2; each module names its own.

#[macro_use]
mod wire_enum;

pub mod cost;
pub mod digest;
pub mod dimension;
pub mod fingerprint;
pub mod fleet;
pub mod gate;
pub mod grace;
pub mod id;
pub mod machine;
pub mod need;
pub mod order;
pub mod penalty;
pub mod profile;
pub mod quantity;
pub mod requirement;
pub mod resources;
pub mod spread;
pub mod unmet;

pub use dimension::Dimension;
pub use fingerprint::Fingerprint;
pub use fleet::FleetId;
pub use id::{ClusterId, Group, MachineId};
pub use machine::{CapacityType, Class, Declared, HostRef, Machine, MachineState, Stamp};
pub use need::{Need, RollUp};
pub use penalty::PenaltyBucket;
pub use profile::Profile;
pub use quantity::{Quantity, QuantitySum};
pub use requirement::{Attributes, Operator, Requirement};
pub use resources::{Resources, Totals};
pub use spread::{TopologySpread, WhenUnsatisfiable};
