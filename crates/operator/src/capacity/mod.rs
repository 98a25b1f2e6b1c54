//! AvailableCapacities: the shard's hints, mirrored. A hint is never a reservation.

mod handle;
mod hint;
mod ledger;

pub use handle::{Capacity, Config};
pub use hint::{CapacityView, Hint};
