//! Nodes and hints against an API server in memory, on a clock that stands still.

#![allow(clippy::unwrap_used)]

mod chaos;
mod drains;
mod hints;
mod machines;
mod returns;
mod rig;
