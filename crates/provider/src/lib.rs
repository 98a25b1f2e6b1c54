//! The provider protocol, from both ends (provider chapter).
//!
//! [`protocol`] is its core: who may move a machine, from where to where, and
//! what a reader is told. Pure, and shared by the fake here and by the kit that
//! providers are built with.

pub mod mutant;
pub mod protocol;
