//! Shards that share one provider, their coordinator, and everything that goes wrong
//! between them (coordinator chapter §8–§10, invariants I1, I3, I5, I6, I9), in virtual
//! time and without a task.
//!
//! What decides is the real thing: the coordinator's `state`, `reports` and `rebalance`, the
//! shard's `holdings` and its engine, the report client's `memory`, the provider's
//! `protocol`. Around it
//! there is a shell of steps ([`World::step`]): whatever the real shell awaits (a message, a
//! disk, a provider) is a step of its own, and anything may come before it.
//!
//! [`Random`] walks through such worlds by a seed; [`search`] goes every way through small
//! ones. For tests alone.

mod check;
mod key;
mod mind;
mod own;
mod provider;
mod random;
mod search;
mod settle;
mod shard;
mod step;
mod tier;
mod world;

pub use mind::Mind;
pub use own::Own;
pub use provider::{Answer, Call, Provider};
pub use random::{Dice, Random};
pub use search::{Found, Limits, search};
pub use shard::{Act, Shard};
pub use step::Step;
pub use tier::Tier;
pub use world::World;
