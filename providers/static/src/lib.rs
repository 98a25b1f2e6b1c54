//! Bare metal from a file: machines that somebody owns, brought into clusters by
//! executables that somebody else wrote. See `README.md` for the inventory and for what
//! a hook must do.
//!
//! Everything of the protocol is the kit's; here are the [`Inventory`], the hooks that
//! act on it, and the [`Spool`] that a join secret passes through.

mod cloud;
mod fake;
pub mod flags;
mod hooks;
pub mod inventory;
mod shelf;
mod spool;

use std::process::ExitCode;

use bigfleet_provider_kit::serve;
pub use cloud::StaticCloud;
pub use flags::StaticFlags;
pub use inventory::{Inventory, InventoryError};
use rustix::process::{Resource, getrlimit, setrlimit};
pub use spool::{Spool, SpoolError};

const NAME: &str = "bigfleet-provider-static";

/// Serves the machines that the flags name.
#[must_use]
pub fn main(flags: &StaticFlags) -> ExitCode {
    room_for_hooks();
    match flags.prepare() {
        Ok((provider, cloud)) => serve::main(NAME, &provider, async || cloud.open()),
        Err(error) => {
            eprintln!("{NAME}: {error}");
            ExitCode::from(2)
        }
    }
}

/// Each running hook holds pipes: as many files as the system gives.
fn room_for_hooks() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Where it is refused, hooks that find no room are tried again.
    let _ = setrlimit(Resource::Nofile, limit);
}
