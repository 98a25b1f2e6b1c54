//! `bigfleet-provider-local`; see the library.

use std::process::ExitCode;

use bigfleet_provider_kit::{flags, serve};
use bigfleet_provider_local::{LocalCloud, LocalFlags};

fn main() -> ExitCode {
    let flags: LocalFlags = flags::parse();
    serve::main("bigfleet-provider-local", &flags.provider, async || LocalCloud::open(&flags))
}
