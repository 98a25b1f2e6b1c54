//! Sessions: the operators of clusters, each on a stream it opened itself
//! (shard chapter §12, wire chapter §4).
//!
//! ```text
//! stream in ─▶ reader ─┬─▶ blob responses, reclaim acks: whoever waits, inline
//!                      └─▶ roll-up slot (one) ─▶ worker ─▶ Host::roll_up
//! anybody ─▶ outbox (control lane, state lane) ─▶ transport ─▶ stream out
//! ```
//!
//! No producer waits on the network: a frame is queued, replaced or refused at
//! once. Locks are held for memory work only, in the order session map, then the
//! outbox or the waits of one session.

mod ack;
mod blob;
mod features;
mod host;
mod id;
mod instruction;
mod lanes;
mod link;
mod outbox;
mod registry;
mod rollups;
mod server;

pub(crate) use blob::{Blob, BlobError};
#[cfg(test)]
pub(crate) use features::Features;
pub(crate) use host::{Host, RollUpAnswer};
pub(crate) use instruction::Instruction;
#[cfg(test)]
pub(crate) use instruction::Progress;
#[cfg(test)]
pub(crate) use registry::NoSession;
pub(crate) use registry::{SessionOptions, Sessions};
pub(crate) use server::SessionServer;

/// At most so many bytes of a foreign text.
fn cut(mut text: String, bytes: usize) -> String {
    text.truncate(text.floor_char_boundary(bytes));
    text.shrink_to_fit();
    text
}

#[cfg(test)]
mod tests;
