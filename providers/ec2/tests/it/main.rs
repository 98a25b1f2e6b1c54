//! The provider's process against the stand-in, which knows the truth (provider chapter
//! §10, §12).
//!
//! Random tests print their seed; `BIGFLEET_SEED` replays one.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod chaos;
mod kills;
mod lifecycle;
mod refusals;
mod rig;
mod secrets;
mod troubles;
