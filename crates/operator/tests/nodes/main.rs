//! Nodes and hints against an API server in memory, on a clock that stands still.

#![allow(clippy::unwrap_used)]

mod beside;
mod chaos;
mod drains;
mod hints;
mod machines;
mod real;
mod returns;
mod rig;
