//! End to end on a real control plane with everything real at once: many pods, and many faults.
#![allow(clippy::expect_used, clippy::unwrap_used)]

mod chaos;
mod flood;
mod many;
mod site;
