//! Simulated clouds on the provider kit (provider chapter §10 (1)): a test fixture
//! that the demo and the simulator link, with `bigfleet-provider-sim` as its process.
//!
//! [`Sim`] is one cloud, [`Multiplex`] several behind one server, [`Controls`] what an
//! experimenter does to them while they run. All of it lives on tokio's clock, so that
//! a test may pause it, and every draw comes from [`Dice`]: what happens to a machine
//! depends on the seed and on its own history, never on what others do meanwhile.
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use bigfleet_provider_sim::{Config, Fleet};
//!
//! let fleet = Fleet::open(&Config::default_fleet(), std::path::Path::new(""))?;
//! let controls = fleet.controls(); // for experiments, while the kit runs `fleet.cloud`
//! # drop(controls); Ok(()) }
//! ```

pub mod admin;
pub mod config;
mod controls;
mod dice;
mod error;
pub mod flags;
mod fleet;
mod forecast;
mod freeze;
mod hosts;
mod journal;
pub mod latency;
mod multiplex;
pub mod price_walk;
pub mod quota;
pub mod rate_limit;
mod selector;
mod sim;
mod slot;
mod span;
pub mod stock;
pub mod tier;
pub mod topology;
mod world;

pub use config::Config;
pub use controls::{Controls, Freeze, Interrupt, Kill, SetStock, Warning};
pub use dice::Dice;
pub use error::Error;
pub use fleet::Fleet;
pub use multiplex::Multiplex;
pub use selector::Selector;
pub use sim::Sim;
