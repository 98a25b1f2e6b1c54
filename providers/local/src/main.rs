//! `bigfleet-provider-local`; see the library.

use std::process::ExitCode;

use bigfleet_provider_kit::{flags, serve};
use bigfleet_provider_local::{LocalCloud, LocalFlags};

fn main() -> ExitCode {
    let flags: LocalFlags = flags::parse();
    let provider = flags.provider.clone();
    serve::main("bigfleet-provider-local", provider, async move || LocalCloud::open(&flags))
}
