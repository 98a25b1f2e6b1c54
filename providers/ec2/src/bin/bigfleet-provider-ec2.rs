//! Machines of an EC2-like query API; see the library.

use std::process::ExitCode;

use bigfleet_provider_ec2::{flags::Ec2Flags, start};
use bigfleet_provider_kit::{flags, serve};

fn main() -> ExitCode {
    let flags: Ec2Flags = flags::parse();
    serve::main("bigfleet-provider-ec2", &flags.provider, async || start(&flags).await)
}
