//! Simulated clouds as a process.

use std::process::ExitCode;

use bigfleet_provider_kit::{flags, serve};
use bigfleet_provider_sim::{Error, Fleet, admin, flags::SimFlags};

fn main() -> ExitCode {
    let flags: SimFlags = flags::parse();
    serve::main("bigfleet-provider-sim", &flags.provider, async || {
        let fleet = Fleet::open(&flags.config()?, &flags.provider.state)?;
        let served = admin::start(&flags.sim.admin_addr, fleet.controls()).await?;
        // It lives as long as the process.
        drop(served.map(|served| served.detach()));
        Ok::<_, Error>(fleet.cloud)
    })
}
