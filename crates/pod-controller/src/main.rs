//! `bigfleet-unschedulable-pod-controller`.

use std::process::ExitCode;

use bigfleet_unschedulable_pod_controller::{flags::Flags, process};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    let flags: Flags = bigfleet_net::flags::parse();
    match process::run(&flags).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("unschedulable-pod-controller: {error}");
            ExitCode::FAILURE
        }
    }
}
