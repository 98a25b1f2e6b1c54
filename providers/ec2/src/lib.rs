//! Machines of an EC2-like query API (provider chapter §10), and a stand-in for that
//! API which needs no account.
//!
//! The way of a call: [`cloud`] turns what the kit asks into calls of [`api`] (instances
//! and tags), [`command`] (what a host is told) and [`queue`] (what the cloud tells);
//! [`slots`] says which instance is which machine, [`prices`] what it costs.

pub mod api;
pub mod cloud;
pub mod command;
pub mod config;
pub mod flags;
pub mod http;
pub mod json;
mod lookup;
pub mod prices;
pub mod queue;
mod rate;
pub mod sign;
pub mod slots;
pub mod standin;
mod start;

pub use cloud::Ec2Cloud;
pub use start::{StartError, start};
