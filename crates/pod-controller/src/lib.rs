//! One CapacityRequest per pod, for the pod's whole life (kubernetes chapter §8).
//!
//! The rules are functions of what is known, without a clock or a network:
//! [`desired()`](desired::desired) says what must happen for one pod. [`controller`] keeps what
//! is known and does what they say.

pub mod class_defaults;
pub mod co_location;
pub mod controller;
pub mod desired;
pub mod drift;
pub mod existing;
pub mod flags;
pub mod metrics;
pub mod name;
pub mod penalty;
pub mod pod;
pub mod process;
pub mod request;
pub mod requirements;
pub mod running;
pub mod selector;
pub mod spread;
pub mod table;

pub use desired::{Context, Desired, Settings, Step, Warning, desired};
pub use pod::Pod;
