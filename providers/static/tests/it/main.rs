//! The binary with real hooks: shell scripts in a directory of the test's own.

mod configuration;
mod crash;
mod lifecycle;
mod reload;
mod rig;
