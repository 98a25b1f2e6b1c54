//! What tests of real processes share: children, ports, binaries, links.

#![allow(dead_code, unused_imports, reason = "each test binary uses its part of it")]

pub(crate) mod audit;
pub(crate) mod binaries;
pub(crate) mod corpus;
pub(crate) mod links;

pub(crate) use bigfleet_testkit::{ports, process};
