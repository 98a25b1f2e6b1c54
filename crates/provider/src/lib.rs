//! The provider protocol, from both ends.

pub mod mutant;
