//! What the processes inside a cluster share: a client that paces itself, watch
//! caches that never show half a list, leader election, events.
//!
//! Every part takes a [`kube::Client`] and makes none, so that the server in
//! `memory` can stand behind it as well as a real one.

pub mod budget;
pub mod client;
mod error;
pub mod events;
pub mod flags;
pub mod lease;
#[cfg(feature = "memory")]
pub mod memory;
mod paced;
pub mod refusal;
pub mod store;

pub use budget::{Budget, Lane};
pub use error::Error;
pub use paced::{CutOff, Paced};
pub use store::{Change, ObjectKey, Store};
