//! The `kubectl-bigfleet` binary, which kubectl finds on the PATH.

use std::{
    io::{ErrorKind, Write as _, stderr, stdout},
    process::ExitCode,
};

use clap::Parser as _;
use kubectl_bigfleet::{Error, cli::Cli, run};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Into::into)
        .and_then(|runtime| runtime.block_on(run(cli, &mut stdout())));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Who has closed the pipe wants to read no more, not even this.
            let closed = matches!(&error, Error::Io(why) if why.kind() == ErrorKind::BrokenPipe);
            if !closed {
                let _ = writeln!(stderr(), "kubectl bigfleet: {error}");
            }
            ExitCode::FAILURE
        }
    }
}
