//! Smoke: the walk, repetition, reads.

pub(super) mod fence;

use std::time::Duration;

use tonic::Code;

use crate::{
    case::{Binding, Case, Listing, State},
    catalogue::{Profile, rows},
    ensure,
    outcome::Outcome,
    shape,
    wire::state_name,
};

rows! { Smoke:
    "SM-01" "a walk through Create, Configure, Drain, Delete ends each step in time" [Core] [] M sm_01;
    "SM-02" "Create sent twice has one id" [Core] [Slot] M sm_02;
    "SM-03" "Configure sent twice has one id" [Core] [] M sm_03;
    "SM-04" "Drain sent twice has one id" [Core] [] M sm_04;
    "SM-05" "Delete sent twice has one id" [Core] [Slot Del] M sm_05;
    "SM-06" "Get of an unknown machine is NOT_FOUND" [Core] [] M sm_06;
    "SM-07" "Delete of an unknown machine is NOT_FOUND or UNIMPLEMENTED" [Core] [] M sm_07;
    "SM-08" "List of IDLE holds only IDLE" [Core] [] M sm_08;
    "SM-09" "List of at most one holds at most one" [Core] [] M sm_09;
    "SM-10" "every machine has a type and a known state" [Core] [] M sm_10;
    "SM-11" "every price and probability is a number in its bounds" [Core] [] M sm_11;
    "SM-12" "the revision differs after a change, unless there is none at all" [Core] [] M sm_12;
    "SM-13" "Drain of a slot is rejected" [Core] [Slot] M sm_13;
    "SM-14" "Create passes SPECULATIVE, CREATING, IDLE and nothing else" [Core] [Slot] M sm_14;
    "SM-15" "Drain with grace 0 ends in IDLE or FAILED, never back in CONFIGURED" [Core] [] M sm_15;
    "SM-16" "Delete of a bound machine is rejected" [Core] [] M sm_16;
}

async fn sm_01(t: Case) -> Outcome {
    const TEN: Duration = Duration::from_secs(10);
    let m = t.start().await?;
    if t.gates().slot {
        t.create(&m).await.accepted()?;
        t.settle_within(&m, State::Idle, TEN).await?;
    }
    t.configure(&m, Binding::to(t.cluster("a"))).await.accepted()?;
    t.settle_within(&m, State::Configured, TEN).await?;
    t.drain(&m, 5).await.accepted()?;
    t.settle_within(&m, State::Idle, TEN * 3).await?;
    let deleted = t.delete(&m).await;
    if t.options().profiles.contains(&Profile::BareMetal) {
        return deleted.refused(&[Code::Unimplemented]);
    }
    if deleted.code() == Code::Unimplemented {
        return Ok(());
    }
    deleted.accepted()?;
    t.settle_within(&m, State::Speculative, TEN).await?;
    Ok(())
}

/// Two acks of one operation.
fn same(first: &crate::case::Ack, second: &crate::case::Ack) -> Outcome {
    ensure!(
        first.id == second.id,
        "sent twice, {:?} has two operation ids: {:?} and {:?}",
        first.machine.id,
        first.id,
        second.id
    );
    Ok(())
}

async fn sm_02(t: Case) -> Outcome {
    let m = t.start().await?;
    same(&t.create(&m).await.accepted()?, &t.create(&m).await.accepted()?)?;
    t.settle(&m, State::Idle).await?;
    Ok(())
}

async fn sm_03(t: Case) -> Outcome {
    let m = t.idle().await?;
    let binding = Binding::to(t.cluster("a"));
    let first = t.configure(&m, binding.clone()).await.accepted()?;
    same(&first, &t.configure(&m, binding).await.accepted()?)?;
    t.settle(&m, State::Configured).await?;
    Ok(())
}

async fn sm_04(t: Case) -> Outcome {
    let m = t.configured().await?;
    same(&t.drain(&m, 30).await.accepted()?, &t.drain(&m, 30).await.accepted()?)?;
    t.settle_within(&m, State::Idle, Duration::from_secs(30)).await?;
    Ok(())
}

async fn sm_05(t: Case) -> Outcome {
    let m = t.idle().await?;
    same(&t.delete(&m).await.accepted()?, &t.delete(&m).await.accepted()?)?;
    t.settle(&m, State::Speculative).await?;
    Ok(())
}

async fn sm_06(t: Case) -> Outcome {
    t.get_refused(&t.unknown("a"), Code::NotFound).await
}

async fn sm_07(t: Case) -> Outcome {
    t.delete(&t.unknown("a")).await.refused(&[Code::NotFound, Code::Unimplemented])
}

async fn sm_08(t: Case) -> Outcome {
    t.idle().await?;
    let idle = t.list(Listing::of(&[State::Idle])).await?.machines;
    ensure!(!idle.is_empty(), "List of IDLE is empty although a machine is IDLE");
    for machine in idle {
        let state = state_name(machine.state);
        ensure!(machine.state() == State::Idle, "List of IDLE holds {:?} in {state}", machine.id);
    }
    Ok(())
}

async fn sm_09(t: Case) -> Outcome {
    let count = t.list(Listing::default().max(1)).await?.machines.len();
    ensure!(count <= 1, "List of at most one holds {count}");
    Ok(())
}

async fn sm_10(t: Case) -> Outcome {
    t.fleet().await?.iter().try_for_each(shape::typed)
}

async fn sm_11(t: Case) -> Outcome {
    t.fleet().await?.iter().try_for_each(shape::cost)
}

async fn sm_12(t: Case) -> Outcome {
    let m = t.start().await?;
    let before = t.head().await?;
    if t.gates().slot {
        t.create_and_wait(&m).await?;
    } else {
        t.configure_and_wait(&m, Binding::to(t.cluster("a"))).await?;
    }
    let after = t.head().await?;
    ensure!(
        before != after || (before.is_empty() && after.is_empty()),
        "the revision is {before:?} before and after a change"
    );
    Ok(())
}

async fn sm_13(t: Case) -> Outcome {
    let m = t.start().await?;
    t.rej(&m, t.drain(&m, 0)).await
}

async fn sm_14(t: Case) -> Outcome {
    let m = t.start().await?;
    let watch = t.watch(&m, Duration::from_secs(1));
    let (seen, acked) = tokio::join!(watch, t.create(&m));
    acked.accepted()?;
    seen?.only(&[State::Speculative, State::Creating, State::Idle])?;
    t.settle(&m, State::Idle).await?;
    Ok(())
}

async fn sm_15(t: Case) -> Outcome {
    let m = t.configured().await?;
    t.drain(&m, 0).await.accepted()?;
    let over = |seen: &crate::case::Machine| seen.state() != State::Draining;
    let (seen, _) = t.until(&m, Duration::from_secs(10), over).await?;
    match seen.state() {
        State::Failed => {
            ensure!(!seen.last_error.is_empty(), "{m:?} is FAILED without last_error");
        }
        State::Idle => t.stays(&seen).await?,
        state => crate::fail!("{m:?} is {} after Drain with grace 0", state_name(state.into())),
    }
    Ok(())
}

async fn sm_16(t: Case) -> Outcome {
    let m = t.configured().await?;
    t.rej(&m, t.delete(&m)).await?;
    t.is_in(&m, State::Configured).await?;
    Ok(())
}
