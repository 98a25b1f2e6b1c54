//! What tests of real processes share: children, ports, binaries, links.

#![allow(dead_code, reason = "each test binary uses its part of it")]

pub(crate) mod audit;
pub(crate) mod binaries;
pub(crate) mod links;
pub(crate) mod ports;
pub(crate) mod process;
