//! UpcomingNodes: which phase a frame means, and which writes bring the object there.

mod phase;
mod spec;
mod write;

pub use phase::{Effect, Existing, effect, phase_name};
pub use spec::{Spec, TaintView};
pub(crate) use write::seconds;
pub use write::{Op, Status, Wanted, create, next_op, status_patch};
