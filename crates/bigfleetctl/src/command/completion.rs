//! `completion SHELL`.

use clap_complete::Shell;

use crate::{Error, cli, console::Console};

/// Flags.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Shell to complete in
    shell: Shell,
}

pub(super) fn run(args: &Args, console: &mut Console) -> Result<(), Error> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut cli::command(), "bigfleetctl", &mut script);
    console.text(&String::from_utf8_lossy(&script))
}
