//! Shards that share a provider, at their worst.

mod seeds;
