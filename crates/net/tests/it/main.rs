//! The crate against real sockets, real TLS and real files.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod flags;
mod material;
mod properties;
