//! A shard's coordinator client (`docs/spec/shard.md` §14): it reports how the
//! shard stands, finds the leader among the replicas, and obeys what comes back.
//!
//! It depends on the shard and never the reverse: a shard without a coordinator,
//! even for ever, is live, ready and works. The module `memory` is the pure part,
//! [`Client`] the shell around it, and [`supervise`] starts it again should it die.
//!
//! A shard with a provider of its own refuses instructions that move machines between
//! shards of one provider as `unsupported`. One that shares its provider (the module
//! `shared`) takes the Assignment first, then these, and answers them from what it has
//! on disk.

mod client;
mod done;
mod error;
mod instruction;
mod leader;
pub mod memory;
mod options;
mod pace;
mod report;
pub mod shared;
mod supervise;

pub use bigfleet_net::leader::Resolver;
pub use client::Client;
pub use done::REMEMBERED;
pub use error::Error;
pub use instruction::Order;
pub use options::{DEADLINE, Options};
pub use report::shortfall;
pub use supervise::supervise;
