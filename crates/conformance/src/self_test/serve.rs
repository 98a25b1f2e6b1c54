//! The targets of the self-test, served by this very program.

use std::{path::Path, process::ExitCode};

use bigfleet_net::flags;
use bigfleet_provider_kit::fault::{self, FaultFlags};
use clap::Args;

use crate::target::TargetCommand;

/// Flags of the hidden subcommand `serve`: those of the target.
#[derive(Debug, Clone, Args)]
pub struct ServeFlags {
    /// Flags of the fault target
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// Serves the fault target until it is killed.
#[must_use]
pub fn serve(serve: &ServeFlags) -> ExitCode {
    let words = std::iter::once("fault").chain(serve.words.iter().map(String::as_str));
    match flags::try_parse_from::<FaultFlags>(words) {
        Ok(flags) => fault::main(&flags),
        Err(error) => error.exit(),
    }
}

/// The command that serves the fault target from this program.
pub(super) fn command(program: &Path, further: &[String]) -> TargetCommand {
    let fixed = ["serve", "--", "--addr={addr}", "--seed-count={seed}", "--log-level=warn"];
    let words = std::iter::once(program.display().to_string())
        .chain(fixed.iter().map(|&word| word.to_owned()))
        .chain(further.iter().cloned());
    TargetCommand::of_words(words.collect())
}
