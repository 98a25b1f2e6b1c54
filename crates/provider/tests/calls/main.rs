//! The fake by itself, and client ↔ adapter ↔ fake over real connections.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

mod fake;
mod invariants;
mod knobs;
mod over_grpc;
mod over_mtls;
mod rig;
