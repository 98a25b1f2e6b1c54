//! `bigfleet-web-dashboard`.

use std::process::ExitCode;

use bigfleet_dashboard::{flags::Flags, process};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    let flags: Flags = bigfleet_net::flags::parse();
    match process::run(&flags).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bigfleet-web-dashboard: {error}");
            if error.is_usage() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}
