//! Failure: wire-driven faults of the target, with a transition timeout of 2 s.

use std::time::Duration;

use crate::{
    case::{Binding, Case, Listing, Machine, SETTLE, State},
    catalogue::rows,
    ensure,
    outcome::Outcome,
    wire::state_name,
};

rows! { Failure:
    "FA-01" "a refused bootstrap ends in FAILED with its reason" [Fault] [Flt] M fa_01;
    "FA-02" "a refused creation ends in FAILED with its reason" [Fault] [Flt Slot] M fa_02;
    "FA-03" "a hanging Configure fails at its timeout" [Fault] [Flt] M fa_03;
    "FA-04" "a success after the timeout is discarded" [Fault] [Flt] M fa_04;
    "FA-05" "FAILED refuses Configure" [Fault] [Flt] M fa_05;
    "FA-06" "a drain that fails ends in FAILED or IDLE" [Fault] [Flt] M fa_06;
    "FA-07" "FAILED tells the same reason every time" [Fault] [Flt] M fa_07;
    "FA-08" "never CONFIGURED without readiness" [Fault] [Flt] M fa_08;
}

/// The transition timeout of a fault target.
pub(super) const TIMEOUT: Duration = Duration::from_secs(2);

/// What the timeout of the specification leaves for the rest.
const MARGIN: Duration = Duration::from_secs(3);

async fn failed(t: &Case, cluster: &str) -> Outcome<Machine> {
    let m = t.idle().await?;
    t.configure(&m, Binding::to(cluster)).await.accepted()?;
    t.fails(&m, TIMEOUT + MARGIN).await
}

async fn fa_01(t: Case) -> Outcome {
    let seen = failed(&t, "fault-error").await?;
    t.watch(&seen.id, Duration::from_millis(500)).await?.only(&[State::Failed])
}

async fn fa_02(t: Case) -> Outcome {
    let m = t.faulty("error").await?;
    t.create(&m).await.accepted()?;
    t.fails(&m, SETTLE).await?;
    t.watch(&m, Duration::from_millis(500)).await?.only(&[State::Failed])
}

async fn fa_03(t: Case) -> Outcome {
    failed(&t, "fault-timeout").await?;
    Ok(())
}

async fn fa_04(t: Case) -> Outcome {
    let seen = failed(&t, "fault-slow-ok").await?;
    // The late success arrives one second after the timeout.
    t.watch(&seen.id, Duration::from_secs(2)).await?.only(&[State::Failed])
}

async fn fa_05(t: Case) -> Outcome {
    let seen = failed(&t, "fault-error").await?;
    t.rej(&seen.id, t.configure(&seen.id, Binding::to(t.cluster("a")))).await?;
    let after = t.is_in(&seen.id, State::Failed).await?;
    ensure!(after.last_error == seen.last_error, "last_error is {:?} now", after.last_error);
    Ok(())
}

async fn fa_06(t: Case) -> Outcome {
    let m = t.configured_to(Binding::to("fault-drain-error")).await?;
    t.drain(&m, 0).await.accepted()?;
    let over = |seen: &Machine| seen.state() != State::Draining;
    let (seen, took) = t.until(&m, TIMEOUT + MARGIN, over).await?;
    match seen.state() {
        State::Idle => Ok(()),
        State::Failed => {
            ensure!(!seen.last_error.is_empty(), "{m:?} is FAILED without last_error");
            Ok(())
        }
        state => crate::fail!("{m:?} is {} after {took:.1?}", state_name(state.into())),
    }
}

async fn fa_07(t: Case) -> Outcome {
    let seen = failed(&t, "fault-error").await?;
    for _ in 0..3 {
        let again = t.is_in(&seen.id, State::Failed).await?.last_error;
        ensure!(again == seen.last_error, "last_error was {:?} and is {again:?}", seen.last_error);
    }
    let listed = t.list(Listing::of(&[State::Failed])).await?.machines;
    let listed = listed.into_iter().find(|machine| machine.id == seen.id);
    let listed = listed.map(|machine| machine.last_error);
    ensure!(
        listed.as_ref() == Some(&seen.last_error),
        "List shows last_error {listed:?}, Get {:?}",
        seen.last_error
    );
    Ok(())
}

async fn fa_08(t: Case) -> Outcome {
    let m = t.idle().await?;
    let configure = t.configure(&m, Binding::to("fault-readiness-block"));
    let watch = t.watch(&m, TIMEOUT + MARGIN);
    let (answer, seen) = tokio::join!(configure, watch);
    answer.accepted()?;
    let early = seen?.during(State::Configured).count();
    ensure!(early == 0, "{m:?} was CONFIGURED although its node never became Ready");
    t.fails(&m, MARGIN).await?;
    Ok(())
}
