//! What tests of real processes share: children, ports, binaries.

#![allow(dead_code, reason = "each test binary uses its part of it")]

pub(crate) mod binaries;
pub(crate) mod ports;
pub(crate) mod process;
