//! The provider protocol, from both ends (provider chapter).
//!
//! - [`protocol`] is its core: who may move a machine, from where to where, and
//!   what a reader is told. Pure, and shared by the fake here and by the kit
//!   that providers are built with.
//! - [`Provider`] is what a shard programs against; [`FencedProvider`] what a
//!   server implements. [`Stamped`] makes the first of the second and is the
//!   one place where tokens are made.
//! - [`Client`] is a [`FencedProvider`] at the other end of a connection;
//!   [`Adapter`] puts one there.
//! - [`fake`] is one in the process, for tests and demonstrations.
//!
//! ```
//! use bigfleet_provider::{
//!     Identity, ListFilter, Provider, Stamped, fake::{Fake, FakeOptions, Seed},
//! };
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let fake = Fake::new(FakeOptions::default());
//! fake.seed(&Seed { speculative: 3, ..Seed::default() }).unwrap();
//! let provider = Stamped::new(fake.clone(), Identity::new("shard-0", 1));
//!
//! let ack = provider.create(&"spec-0".into(), None).await?;
//! assert_eq!(ack.machine.unwrap().state, bigfleet_model::MachineState::Creating);
//! fake.complete_all_staged();
//! let list = provider.list(&ListFilter::default(), None).await?;
//! assert_eq!(list.machines.len(), 3);
//! # Ok::<_, bigfleet_provider::Error>(()) }).unwrap();
//! ```

mod adapter;
mod client;
mod error;
pub mod fake;
pub mod mutant;
pub mod protocol;
mod provider;
mod secret;
mod stamped;

pub use adapter::Adapter;
#[cfg(feature = "mutants")]
pub use adapter::distort;
pub use client::Client;
pub use error::Error;
pub use provider::{
    Ack, Attempt, Configure, FencedProvider, ListFilter, MachineList, Provider, RefusedRecord,
};
pub use secret::Secret;
pub use stamped::{Identity, Stamped};
