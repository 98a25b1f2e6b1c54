//! `bigfleet-operator`.

use std::process::ExitCode;

use bigfleet_net::flags;
use bigfleet_operator::{
    flags::OperatorFlags,
    process::{self, Error},
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let flags: OperatorFlags = flags::parse();
    match run(&flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("operator: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(flags: &OperatorFlags) -> Result<(), Error> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Error::Runtime)?;
    let ended = runtime.block_on(async { process::run(flags).await?.until_stopped().await });
    // Whatever still waits on a stream has been told.
    runtime.shutdown_background();
    ended
}
