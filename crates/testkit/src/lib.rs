//! Shared test helpers. Never a dependency of anything that ships.

pub mod binaries;
pub mod kube;
pub mod pki;
pub mod ports;
pub mod process;
pub mod proxy;
