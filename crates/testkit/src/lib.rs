//! Shared test helpers. Never a dependency of anything that ships.

pub mod kube;
pub mod pki;
pub mod proxy;
