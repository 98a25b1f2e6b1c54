//! The shard: the process around the decision engine (`docs/spec/shard.md`).

pub mod actuation;
pub mod admin;
pub mod audit;
mod clock;
mod cycle;
pub mod data_dir;
mod dice;
mod execute;
pub mod fence;
pub mod flags;
mod hints;
pub mod holdings;
mod host;
mod in_process;
mod journal;
mod json;
mod label;
mod live;
pub mod metrics;
mod need_status;
mod needs;
mod observe;
pub mod options;
pub mod outcome;
pub mod process;
mod publish;
mod read;
mod readers;
mod reconcile;
mod report;
mod running;
mod session;
mod shard;
mod shared;
#[cfg(feature = "bench")]
pub mod stepper;
mod supply;
mod views;

pub use holdings::{Domain, DomainError};
pub use options::Options;
pub use report::{ReportSide, Standing};
pub use running::{Running, Setup, start};
pub use shared::{Answered, SharedSide, Sharing};
pub use supply::Supply;
