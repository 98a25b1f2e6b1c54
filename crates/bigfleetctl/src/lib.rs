//! The admin command line (coordinator chapter §13, experience chapter §4.2).
//!
//! [`run`] performs one command. What a person sees is made by pure functions of a
//! model (`status`, `top`, `explain`, the rows of every table); around them are the
//! two clients: [`coordinator`] follows the leader, [`shards`] finds and dials shards,
//! also with every coordinator down.

pub mod cli;
pub mod command;
pub mod config;
pub mod console;
pub mod coordinator;
mod duration;
mod error;
pub mod fleet;
mod http;
mod kept;
pub mod known;
pub mod output;
pub mod reason;
pub mod shards;
mod yaml;

use bigfleet_plain::{text, when};
pub use command::run;
pub use error::Error;
