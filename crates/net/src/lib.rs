//! What every BigFleet process needs to be on the network.

pub mod duration;
mod error;
pub mod identity;
pub mod listen;
pub mod peer;
pub mod readiness;
pub mod rule;
pub mod shutdown;

pub use error::Error;
