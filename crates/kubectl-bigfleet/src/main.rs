//! The `kubectl-bigfleet` binary, which kubectl finds on the PATH.

use std::process::ExitCode;

use clap::Parser as _;
use kubectl_bigfleet::{cli::Cli, run};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Into::into)
        .and_then(|runtime| runtime.block_on(run(cli, &mut std::io::stdout())));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kubectl bigfleet: {error}");
            ExitCode::FAILURE
        }
    }
}
