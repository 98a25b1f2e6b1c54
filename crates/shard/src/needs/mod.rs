//! The needs table: what every cluster wants, by its last accepted roll-up
//! (shard chapter §6).
//!
//! A roll-up replaces a cluster's whole demand or changes nothing. Rows never
//! expire: silence is not demand zero. The engine holds the rows themselves; here
//! wait those that the cycle has not taken yet, with what the guard compares new
//! roll-ups with.

mod guard;
mod ingest;
mod table;

pub(crate) use table::Needs;
