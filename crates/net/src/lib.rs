//! What every BigFleet process needs to be on the network.

pub mod duration;
mod error;
pub mod listen;
pub mod readiness;
pub mod shutdown;

pub use error::Error;
