//! Waiting for one pod, and telling what happens meanwhile.

use std::{io::Write, time::Duration};

use tokio::time::{Instant, sleep_until};

use crate::{
    Error,
    cluster::Cluster,
    picture::Picture,
    why::{name, verdict},
};

/// Between two looks.
const EVERY: Duration = Duration::from_secs(1);

/// Returns when the pod runs or has succeeded.
pub(crate) async fn until_running(
    cluster: &Cluster,
    pod: &str,
    timeout: Duration,
    out: &mut (dyn Write + Send),
) -> Result<(), Error> {
    let begun = Instant::now();
    let mut told = String::new();
    loop {
        let looked = Instant::now();
        let picture = match cluster.glance(pod).await {
            Ok(picture) => picture,
            // A server that is away for a moment is no reason to stop waiting.
            Err(error @ Error::Read { .. }) if begun.elapsed() < timeout => {
                let said = error.to_string();
                if said != told {
                    writeln!(out, "{:>5}s  {said}", begun.elapsed().as_secs())?;
                    told = said;
                }
                sleep_until((looked + EVERY).min(begun + timeout)).await;
                continue;
            }
            Err(error) => return Err(error),
        };
        let state = verdict(&picture).state;
        if state != told {
            writeln!(out, "{:>5}s  {}: {state}", begun.elapsed().as_secs(), name(&picture))?;
            told = state;
        }
        match phase(&picture) {
            "Running" | "Succeeded" => return Ok(()),
            "Failed" => return Err(Error::PodFailed(name(&picture))),
            _ => {}
        }
        if begun.elapsed() >= timeout {
            let verdict = verdict(&picture);
            let reason = format!("it {}; {}", verdict.state, verdict.advice);
            return Err(Error::TimedOut { pod: name(&picture), after: timeout, reason });
        }
        sleep_until((looked + EVERY).min(begun + timeout)).await;
    }
}

fn phase(picture: &Picture) -> &str {
    let status = picture.pod.status.as_ref();
    status.and_then(|status| status.phase.as_deref()).unwrap_or_default()
}
