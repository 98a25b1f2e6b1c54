//! A cloud that needs no account; see `bigfleet_provider_ec2::standin`.

use std::{net::SocketAddr, path::PathBuf, process::ExitCode};

use bigfleet_provider_ec2::standin::{Faults, Settings, StandIn};
use bigfleet_provider_kit::flags::{self, path_parser};
use clap::Parser;

/// A stand-in for an EC2-like API, on loopback
#[derive(Debug, Parser)]
#[command(name = "bigfleet-ec2-standin", version)]
struct Flags {
    /// Address of all services and of /admin/
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9480")]
    addr: SocketAddr,

    /// File that remembers instances over restarts; empty forgets them
    #[arg(long, value_name = "FILE", default_value = "", value_parser = path_parser())]
    state: PathBuf,

    /// How it behaves, as JSON; the fields are those of POST /admin/faults
    #[arg(long, value_name = "JSON", default_value = "{}")]
    faults: String,
}

#[tokio::main]
async fn main() -> ExitCode {
    let flags: Flags = flags::parse();
    match run(flags).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bigfleet-ec2-standin: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(flags: Flags) -> Result<(), String> {
    let patch = serde_json::from_str(&flags.faults);
    let faults = patch.and_then(|patch| Faults::default().patched(&patch));
    let faults = faults.map_err(|error| format!("--faults: {error}"))?;
    let file = (!flags.state.as_os_str().is_empty()).then_some(flags.state);
    let settings = Settings { file, faults };
    let standin = StandIn::start(settings, Some(flags.addr)).await;
    let standin = standin.map_err(|error| error.to_string())?;
    println!("{}", standin.url());
    // Killed, in tests; a terminal's interrupt ends it, too.
    std::future::pending().await
}
