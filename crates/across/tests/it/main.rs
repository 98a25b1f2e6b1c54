//! Shards that share a provider, at their worst.

mod hour;
mod models;
mod seeds;
