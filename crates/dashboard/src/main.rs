//! `bigfleet-web-dashboard`.

use std::process::ExitCode;

use bigfleet_dashboard::{Error, flags::Flags, process};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let flags: Flags = bigfleet_net::flags::parse();
    match run(&flags) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bigfleet-web-dashboard: {error}");
            if error.is_usage() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

fn run(flags: &Flags) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Error::System(error.to_string()))?;
    let ended = runtime.block_on(process::run(flags));
    // A program that hangs over a cluster's credentials keeps nobody here.
    runtime.shutdown_background();
    ended
}
