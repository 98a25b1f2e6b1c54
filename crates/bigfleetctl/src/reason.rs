//! Why a need is unmet, and what to do about it.

pub use bigfleet_model::unmet::{Reason, base, of};
