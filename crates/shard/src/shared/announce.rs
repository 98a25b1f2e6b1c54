//! The first words to a shared provider (§11): from now on it refuses every process
//! before this one, on every machine; and it proves that it does.

use std::time::Duration;

use bigfleet_model::MachineId;
use bigfleet_provider::Error;
use tokio::time::{Instant, sleep, timeout_at};

use super::Shared;
use crate::{shard::Shard, supply::Supply};

/// A provider that does not answer is asked again after so long.
const PAUSE: Duration = Duration::from_secs(1);

/// Why a shard must not share this provider.
#[derive(Debug, thiserror::Error)]
#[error(
    "--shared-provider: the provider did not refuse a call of an older epoch ({0}); start it with \
     --strict-epoch, or give each shard a provider of its own"
)]
pub(crate) struct NotStrict(String);

async fn delete(supply: &dyn Supply, shard: &Shard, id: &str) -> Result<(), Error> {
    let deadline = Instant::now() + shard.options.execute_timeout;
    let late = || Error::DeadlineExceeded("no answer from the provider in time".to_owned());
    let machine = MachineId::from(id);
    let answer = timeout_at(deadline, supply.delete(&machine, deadline)).await;
    answer.unwrap_or_else(|_| Err(late())).map(drop)
}

/// Announces this process's epoch and tries the one before. Returns once that is proven,
/// or once somebody else turned out to be newer.
pub(crate) async fn announce(
    shard: &Shard,
    shared: &Shared,
    predecessor: &dyn Supply,
) -> Result<(), NotStrict> {
    let id = &shard.options.id;
    let own = format!("epoch.{id}");
    // A token that passes counts even if the call fails, as this one must.
    while let Err(error) = delete(&*shard.supply, shard, &own).await {
        match error {
            Error::Fenced(text) => {
                shard.latch(&format!("the provider knows a newer epoch of {id}: {text}")).await;
                return Ok(());
            }
            error if is_silence(&error) => silence(&error).await,
            _ => break,
        }
    }
    let probe = format!("epoch-probe.{id}");
    loop {
        match delete(predecessor, shard, &probe).await {
            Err(Error::Fenced(_)) => break,
            Err(error) if is_silence(&error) => silence(&error).await,
            Err(error) => return Err(NotStrict(error.to_string())),
            Ok(()) => return Err(NotStrict("it accepted".to_owned())),
        }
    }
    shared.announced.store(true, std::sync::atomic::Ordering::Release);
    tracing::info!(epoch = shard.epoch, "the provider refuses every earlier epoch of this shard");
    shard.wake();
    Ok(())
}

fn is_silence(error: &Error) -> bool {
    error.is_unanswered() || matches!(error, Error::Exhausted(_))
}

async fn silence(error: &Error) {
    tracing::warn!(%error, "the provider does not answer; nothing is done before it has");
    sleep(PAUSE).await;
}
