//! What a provider author uses: write [`Cloud`], and the protocol (provider chapter
//! §§1–7) is the kit's.
//!
//! A provider binary is a [`Cloud`] and a `main`:
//!
//! ```no_run
//! use bigfleet_provider_kit::{Cloud, flags::{self, ProviderFlags}, serve};
//!
//! #[derive(clap::Parser)]
//! struct Flags {
//!     #[command(flatten)]
//!     provider: ProviderFlags,
//! }
//!
//! # fn cloud(_: &Flags) -> Result<bigfleet_provider_kit::example::OneRack, String> { unimplemented!() }
//! fn main() -> std::process::ExitCode {
//!     let flags: Flags = flags::parse();
//!     serve::main("bigfleet-provider-example", &flags.provider, async || cloud(&flags))
//! }
//! ```
//!
//! A process that has a network already takes [`Kit`] alone: [`Kit::start`], then
//! [`Kit::service`].

mod book;
mod calls;
mod clock;
pub mod cloud;
pub mod config;
mod defects;
mod error;
pub mod example;
#[cfg(feature = "fault")]
pub mod fault;
pub mod flags;
pub mod handle;
mod inflight;
mod kit;
mod metrics;
#[cfg(feature = "node-ready")]
pub mod node_ready;
mod random;
pub mod record;
pub mod serve;
mod service;
pub mod shape;
pub mod store;
mod sweeper;
mod tracker;

pub use bigfleet_model::{CapacityType, HostRef, Machine, MachineState};
pub use bigfleet_provider::protocol::{
    self, FenceBook, Kind, OpBook, OperationId, RevIndex, step as lifecycle,
};
pub use cloud::{Caps, Cloud, CloudError, Host, Offer, Op, Ready};
pub use config::Config;
pub use error::Error;
pub use handle::{Handle, Notice};
pub use kit::Kit;
pub use record::Record;
pub use service::Service;
pub use shape::ShapeCheck;
pub use store::{FileStore, MemStore, Store};
