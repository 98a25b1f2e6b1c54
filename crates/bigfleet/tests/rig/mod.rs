//! What tests of real processes share: children, ports, binaries.

#![allow(dead_code, unused_imports, reason = "each test binary uses its part of it")]

pub(crate) mod binaries;

pub(crate) use bigfleet_testkit::{ports, process};
