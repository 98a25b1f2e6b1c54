//! Strict: what needs a fault, an identity or a load.

use std::time::Duration;

use tokio::time::sleep;
use tonic::Code;

use super::{holds, st_11, st_14, st_15};
use crate::{
    case::{Binding, Case, Listing, Machine, SETTLE, State},
    catalogue::rows,
    ensure,
    outcome::Outcome,
    wire::state_name,
};

rows! { Strict:
    "ST-07" "a host destroyed behind its back is noticed" [Strict] [Flt Slot] M st_07;
    "ST-08" "a FAILED machine is repaired and leaks no host" [Strict] [Flt Slot] M st_08;
    "ST-09" "the host of a late Create is destroyed" [Strict] [Flt Slot] M st_09;
    "ST-10" "a store that fails is UNAVAILABLE and changes nothing" [Strict] [Flt Slot] M st_10;
    "ST-11" "a shard cannot speak for another" [Strict] [] M st_11;
    "ST-12" "a drain has as long as its grace" [Strict] [Flt] M st_12;
    "ST-13" "an interruption notice raises the probability" [Strict] [Flt] M st_13;
    "ST-14" "marks of unknown machines are bounded, real ones kept" [Strict] [] M st_14;
    "ST-15" "1,000 mutations a second for 30 s with p99 below 250 ms" [Strict] [Slot] W st_15;
}

/// A fault target repairs after 8 s and looks every half second.
const REPAIR: Duration = Duration::from_secs(20);

async fn st_07(t: Case) -> Outcome {
    let idle = t.faulty("vanish").await?;
    t.create(&idle).await.accepted()?;
    t.settle(&idle, State::Idle).await?;
    let bound = t.idle().await?;
    t.configure(&bound, Binding::to("fault-vanish")).await.accepted()?;
    let lost = t.fails(&bound, SETTLE).await?;
    ensure!(lost.last_error.contains("lost"), "last_error is {:?}", lost.last_error);
    let slot = t.settle(&idle, State::Speculative).await?;
    ensure!(slot.host.is_none(), "{idle:?} in SPECULATIVE still shows its lost host");
    Ok(())
}

/// FAILED ends in S or I, with nothing left of what was.
async fn repaired(t: &Case, m: &str) -> Outcome {
    let over = |seen: &Machine| matches!(seen.state(), State::Speculative | State::Idle);
    let (seen, took) = t.until(m, REPAIR, over).await?;
    ensure!(over(&seen), "{m:?} is {} after {took:.1?}", state_name(seen.state));
    ensure!(
        seen.cluster.is_empty() && seen.shard_metadata.is_empty() && seen.last_error.is_empty(),
        "{m:?} was repaired and shows cluster {:?}, error {:?}",
        seen.cluster,
        seen.last_error
    );
    let slot = seen.state() == State::Speculative;
    ensure!(slot != seen.host.is_some(), "{m:?} in {} has the wrong host", state_name(seen.state));
    holds(t, m, if slot { "0" } else { "1" }).await
}

async fn st_08(t: Case) -> Outcome {
    let m = t.faulty("ok").await?;
    t.create_and_wait(&m).await?;
    t.configure(&m, Binding::to("fault-error")).await.accepted()?;
    t.fails(&m, SETTLE).await?;
    repaired(&t, &m).await
}

async fn st_09(t: Case) -> Outcome {
    let m = t.faulty("late").await?;
    t.create(&m).await.accepted()?;
    t.fails(&m, SETTLE).await?;
    // The host arrives one second after the timeout: on record, or it is
    // forgotten.
    let (seen, _) = t.until(&m, Duration::from_secs(4), |seen| seen.host.is_some()).await?;
    ensure!(
        seen.state() == State::Failed && seen.host.is_some(),
        "{m:?} is {} and shows no host although a late one came",
        state_name(seen.state)
    );
    repaired(&t, &m).await?;
    // And it is still gone when the cloud has been looked at again.
    sleep(Duration::from_secs(2)).await;
    holds(&t, &m, "0").await
}

async fn st_10(t: Case) -> Outcome {
    let (broken, other) = (t.idle().await?, t.start().await?);
    let before = t.get(&other).await?;
    t.configure(&broken, Binding::to("fault-store")).await.accepted()?;
    let bound = |seen: &Machine| seen.state() == State::Configured;
    t.until(&broken, Duration::from_secs(1), bound).await?;
    t.create(&other).await.refused(&[Code::Unavailable])?;
    let ready = t.wire().is_ready().await.unwrap_or(false);
    ensure!(!ready, "a target whose store fails says that it is ready");
    t.stays(&before).await?;
    // It recovers by itself.
    for _ in 0..100 {
        if t.create(&other).await.code() == Code::Ok {
            t.settle(&other, State::Idle).await?;
            return Ok(());
        }
        sleep(Duration::from_millis(100)).await;
    }
    crate::fail!("10 s after its store failed the target still refuses")
}

async fn st_12(t: Case) -> Outcome {
    // 15 minutes and 11, at a hundredth of the size.
    let m = t.configured_to(Binding::to("fault-drain-slow-5")).await?;
    t.drain(&m, 9).await.accepted()?;
    t.settle(&m, State::Idle).await?;
    t.clean_idle(&m).await?;
    Ok(())
}

async fn st_13(t: Case) -> Outcome {
    let m = t.idle().await?;
    let before = t.get(&m).await?.interruption_probability;
    let cursor = t.head().await?;
    t.configure(&m, Binding::to("fault-notice")).await.accepted()?;
    t.settle(&m, State::Configured).await?;
    let raised = |seen: &Machine| seen.interruption_probability >= 0.99;
    let (seen, _) = t.until(&m, SETTLE, raised).await?;
    ensure!(
        raised(&seen),
        "after a termination notice the probability of {m:?} is {}, before it was {before}",
        seen.interruption_probability
    );
    t.is_in(&m, State::Configured).await?;
    let delta = t.list(Listing::default().since(&cursor)).await?.machines;
    let told = delta.iter().find(|machine| machine.id == m).is_some_and(raised);
    ensure!(told, "the delta does not show the notice of {m:?}");
    Ok(())
}
