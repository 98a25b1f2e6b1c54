//! Where the dashboard is started.

use bigfleet_net::shutdown::Shutdown;

use crate::{Error, fleet::Fleet};

/// Starts the dashboard for the fleet until the stop; says where it is, if there is one.
pub(crate) async fn start(fleet: &Fleet, stop: &Shutdown) -> Result<Option<String>, Error> {
    // The web dashboard is not part of this binary yet.
    let (_, _) = (fleet, stop);
    Ok(None)
}
