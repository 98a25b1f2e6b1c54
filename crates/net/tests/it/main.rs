//! The crate against real sockets, real TLS and real files.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod age;
mod client;
mod flags;
mod health;
mod http;
mod identity;
mod logs;
mod material;
mod properties;
mod rig;
mod rotation;
mod serving;
