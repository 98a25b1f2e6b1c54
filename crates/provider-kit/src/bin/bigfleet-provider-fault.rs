//! The fault target of the conformance suite; see `bigfleet_provider_kit::fault`.

use std::process::ExitCode;

use bigfleet_provider_kit::fault::{self, FaultFlags};

fn main() -> ExitCode {
    let flags: FaultFlags = bigfleet_net::flags::parse();
    fault::main(&flags)
}
