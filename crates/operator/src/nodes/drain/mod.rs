//! Evicting the pods of a reclaimed node within its grace.

mod core;
mod pods;
mod rotation;
mod task;

pub(crate) use self::core::DRAIN_ERROR;
pub use self::core::{Answer, Drain, Input, Outcome, Remaining, Todo};
pub use pods::{PodName, PodView, remaining};
pub use rotation::{IN_FLIGHT, Rotation};
pub(crate) use task::{Drains, Listener};
