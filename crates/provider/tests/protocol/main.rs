//! The pure core: every rule of provider chapter §§1, 2, 3 and 6 by table,
//! and the whole of fence and lifecycle against a second reading.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

mod arguments;
mod fence;
mod lifecycle;
mod revision;
mod small_world;
