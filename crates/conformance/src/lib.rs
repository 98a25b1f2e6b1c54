//! The black-box suite that certifies a provider (provider chapter §11): six
//! calls and their status codes, whatever the language behind the address.
//!
//! [`catalogue`] lists the tests, [`tests`] holds them by area, [`case`] is the
//! vocabulary they are written in. [`runner`] runs them one by one against a
//! [`target`], [`verdict`] judges, [`report`] tells. `self_test` turns the suite
//! on itself.

pub mod case;
pub mod catalogue;
pub mod cli;
mod error;
pub mod filter;
pub mod gates;
pub mod kill;
pub mod outcome;
pub mod progress;
pub mod quantile;
pub mod random;
pub mod report;
pub mod runner;
#[cfg(feature = "self-test")]
pub mod self_test;
pub mod shape;
pub mod shard;
pub mod target;
pub mod tests;
pub mod tls;
pub mod trace;
pub mod verdict;
pub mod wire;

pub use error::Error;
