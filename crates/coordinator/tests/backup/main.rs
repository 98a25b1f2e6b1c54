//! Backups on a real disk: exports, what reads them, and restores from them.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod exports;
mod reader;
mod restoring;
mod rig;
