//! Each part against a shard that is no more than a stream, over real sockets.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod closed_loop;
mod cluster;
mod coordinator;
mod fake_shard;
mod load;
mod reclaim;
mod session;
