//! Shared test helpers.

pub mod kube;
