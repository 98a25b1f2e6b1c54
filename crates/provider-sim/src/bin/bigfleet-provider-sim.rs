//! Simulated clouds as a process.

use std::process::ExitCode;

use bigfleet_provider_kit::serve;
use bigfleet_provider_sim::{Error, Fleet, admin, flags::SimFlags};

fn main() -> ExitCode {
    let flags: SimFlags = bigfleet_net::flags::parse();
    let provider = flags.provider.clone();
    serve::main("bigfleet-provider-sim", provider, async move || {
        let fleet = Fleet::open(&flags.config()?, &flags.provider.state)?;
        let served = admin::start(&flags.sim.admin_addr, fleet.controls()).await?;
        // For as long as the process lives.
        served.map(|served| served.detach());
        Ok::<_, Error>(fleet.cloud)
    })
}
