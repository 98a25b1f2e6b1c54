//! Serves bare metal from an inventory file.

use std::process::ExitCode;

use bigfleet_provider_kit::flags;
use bigfleet_provider_static::StaticFlags;

fn main() -> ExitCode {
    let flags: StaticFlags = flags::parse();
    bigfleet_provider_static::main(&flags)
}
