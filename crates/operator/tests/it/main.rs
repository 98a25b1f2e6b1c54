//! The operator, from its pure parts to the whole against a scripted shard and a server
//! in memory. Tests name the invariant of the kubernetes chapter §13 that they hold.

mod acks;
mod holds;
mod rig;
mod rollup;
mod session;
mod shard;
