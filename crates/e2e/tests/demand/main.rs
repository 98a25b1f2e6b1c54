//! The catalogue's rows of demand: what pods ask for is what machines come for.
//!
//! A control plane takes seconds to start, so rows share one; each has a namespace of its own.
#![allow(clippy::expect_used, clippy::unwrap_used)]

mod frames;
mod meaning;
mod outages;
mod site;
mod stage;
mod supply;
mod volume;
