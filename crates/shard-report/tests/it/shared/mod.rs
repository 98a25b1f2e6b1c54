//! Shards that share a provider (coordinator chapter §8, §9; shard chapter §11, §14).

mod first_words;
mod handing_over;
mod lending;
mod owning;
mod rig;
mod yielding;
