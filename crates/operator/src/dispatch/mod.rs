//! How frames of the shard reach the API server: never past the reader's patience.
//!
//! The reader only notes what a frame says and marks its machine or profile as due. Everything
//! that is due waits in a [`Queue`] with one entry per key; at most 32 keys of all kinds are worked
//! on at once, since more would only contend on the client's own rate limiter.

mod clock;
mod pump;
mod queue;
mod retry;
mod slots;

pub use clock::{Clock, Moment};
pub use pump::{Pump, Verdict, Work};
pub use queue::Queue;
pub(crate) use retry::{Progress, found, until_settled};
pub use slots::{SLOTS, Slots};
