//! What every BigFleet process needs to be on the network.

pub mod duration;
mod error;
pub mod flags;
pub mod grpc;
pub mod identity;
pub mod listen;
pub mod peer;
pub mod readiness;
pub mod rule;
pub mod shutdown;
pub mod telemetry;
pub mod tls;

pub use error::Error;
