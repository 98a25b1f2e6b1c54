//! `bigfleet demo`, and the processes that it is made of.

use std::{ffi::OsString, path::Path, process::ExitCode};

use bigfleet_demo::{flags::DemoFlags, leash};
use bigfleet_net::flags::try_parse_from;
use clap::Args;

use crate::{Cli, error::Error};

/// Runs a whole fleet until it is told to stop.
pub(crate) fn run(flags: &DemoFlags) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(bigfleet_demo::run(flags));
    runtime.shutdown_background();
    Ok(ended?)
}

/// What a process of the demo is, in the words of this binary.
#[derive(Args)]
pub(crate) struct PartArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    words: Vec<OsString>,
}

/// Runs a part of a demo, and ends with it.
pub(crate) fn part(args: &PartArgs) -> ExitCode {
    let held = match args.words.as_slice() {
        [keep, directory] if keep == leash::KEEP => {
            return match leash::keep(Path::new(directory)) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => failed(&error),
            };
        }
        [lead, program, args @ ..] if lead == leash::LEAD => {
            return match leash::lead(program, args) {
                Ok(status) if status.success() => ExitCode::SUCCESS,
                Ok(_) => ExitCode::FAILURE,
                Err(error) => failed(&error),
            };
        }
        _ => leash::hold(),
    };
    if let Err(error) = held {
        return failed(&error);
    }
    let words = std::iter::once(OsString::from("bigfleet")).chain(args.words.iter().cloned());
    match try_parse_from::<Cli>(words) {
        Ok(cli) => crate::run(cli.command),
        Err(error) => error.exit(),
    }
}

fn failed(error: &std::io::Error) -> ExitCode {
    eprintln!("bigfleet {}: {error}", leash::PART);
    ExitCode::FAILURE
}
