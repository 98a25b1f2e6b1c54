//! The dashboard as its viewers meet it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    reason = "tests fail by panicking"
)]

mod age;
mod assets;
mod cost;
mod decisions;
mod hostile;
mod identities;
mod issuer;
mod kube;
mod laptop;
mod needs;
mod overhead;
mod process;
mod prometheus;
mod real;
mod rig;
mod routes;
mod rows;
mod scope;
mod shard;
mod sign_in;
mod stream;
mod viewers;
