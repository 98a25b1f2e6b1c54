//! Lifecycle: which states are passed, and what they show.

use std::time::Duration;

use crate::{
    case::{Binding, Case, Machine, Seen, State},
    catalogue::rows,
    ensure,
    outcome::Outcome,
    wire::state_name,
};

rows! { Lifecycle:
    "LC-01" "after each of four drains IDLE rests clean" [Core] [] M lc_01;
    "LC-02" "Configure passes CONFIGURING only" [Core] [] M lc_02;
    "LC-03" "Drain passes DRAINING only" [Core] [] M lc_03;
    "LC-04" "a walk passes adjacent states only" [Core] [] M lc_04;
    "LC-05" "the cluster is set from CONFIGURING to DRAINING and nowhere else" [Core] [] M lc_05;
    "LC-06" "the host is absent at SPECULATIVE and set from IDLE on" [Core] [Slot] M lc_06;
    "LC-07" "settled machines do not move" [Core] [] M lc_07;
    "LC-08" "Delete passes DELETING only and ends without host" [Cloud] [Slot Del] M lc_08;
}

async fn lc_01(t: Case) -> Outcome {
    let m = t.idle().await?;
    for round in 0..4 {
        t.configure_and_wait(&m, Binding::to(t.cluster(&round.to_string()))).await?;
        let bound = t.get(&m).await?;
        ensure!(!bound.cluster.is_empty(), "{m:?} in CONFIGURED has no cluster");
        t.drain_and_wait(&m, 0).await?;
        t.clean_idle(&m).await?;
    }
    Ok(())
}

async fn configuring(t: &Case, m: &str) -> Outcome<Seen> {
    let binding = Binding::to(t.cluster("a"));
    let call = async { t.configure(m, binding).await.accepted() };
    Ok(t.observe(m, State::Configured, call).await?.1)
}

async fn draining(t: &Case, m: &str) -> Outcome<Seen> {
    let call = async { t.drain(m, 0).await.accepted() };
    Ok(t.observe(m, State::Idle, call).await?.1)
}

async fn lc_02(t: Case) -> Outcome {
    let m = t.idle().await?;
    let binding = Binding::to(t.cluster("a"));
    let call = async { t.configure(&m, binding).await.accepted() };
    let (ack, seen) = t.observe(&m, State::Configured, call).await?;
    between(&ack.machine, &[State::Configuring, State::Configured])?;
    seen.only(&[State::Idle, State::Configuring, State::Configured])
}

async fn lc_03(t: Case) -> Outcome {
    let m = t.configured().await?;
    let call = async { t.drain(&m, 0).await.accepted() };
    let (ack, seen) = t.observe(&m, State::Idle, call).await?;
    between(&ack.machine, &[State::Draining, State::Idle])?;
    seen.only(&[State::Configured, State::Draining, State::Idle])
}

/// The ack shows the transition or its target.
fn between(ack: &Machine, allowed: &[State]) -> Outcome {
    let state = state_name(ack.state);
    ensure!(allowed.contains(&ack.state()), "the ack shows {:?} in {state}", ack.id);
    Ok(())
}

async fn lc_04(t: Case) -> Outcome {
    let m = t.start().await?;
    let mut states = Vec::new();
    if t.gates().slot {
        let call = async { t.create(&m).await.accepted() };
        states.extend(t.observe(&m, State::Idle, call).await?.1.states());
    }
    states.extend(configuring(&t, &m).await?.states());
    states.extend(draining(&t, &m).await?.states());
    states.dedup();
    let order = [
        State::Speculative,
        State::Creating,
        State::Idle,
        State::Configuring,
        State::Configured,
        State::Draining,
        State::Idle,
    ];
    // Each state is found after the one before; only transitional ones may be
    // jumped, for an instant provider shows none.
    let mut place = if t.gates().slot { 0 } else { 2 };
    for state in &states {
        while order.get(place) != Some(state) {
            let jumped = order.get(place);
            let transitional =
                matches!(jumped, Some(State::Creating | State::Configuring | State::Draining));
            ensure!(transitional, "{m:?} passed {states:?}");
            place += 1;
        }
        place += 1;
    }
    Ok(())
}

async fn lc_05(t: Case) -> Outcome {
    let m = t.idle().await?;
    t.clean_idle(&m).await?;
    let cluster = t.cluster("a");
    let seen = configuring(&t, &m).await?;
    for state in [State::Configuring, State::Configured] {
        for machine in seen.during(state) {
            ensure!(
                machine.cluster == cluster,
                "{m:?} in {} shows cluster {:?}, not {cluster:?}",
                state_name(machine.state),
                machine.cluster
            );
        }
    }
    for machine in draining(&t, &m).await?.during(State::Draining) {
        let shown = &machine.cluster;
        ensure!(*shown == cluster, "{m:?} in DRAINING shows cluster {shown:?}, not {cluster:?}");
    }
    t.clean_idle(&m).await?;
    Ok(())
}

async fn lc_06(t: Case) -> Outcome {
    let m = t.start().await?;
    let host = |machine: &Machine| machine.host.is_some();
    let slot = t.is_in(&m, State::Speculative).await?;
    ensure!(!host(&slot), "{m:?} in SPECULATIVE shows a host");
    t.create_and_wait(&m).await?;
    let idle = t.is_in(&m, State::Idle).await?;
    ensure!(host(&idle), "{m:?} in IDLE shows no host");
    t.configure_and_wait(&m, Binding::to(t.cluster("a"))).await?;
    let bound = t.is_in(&m, State::Configured).await?;
    ensure!(host(&bound), "{m:?} in CONFIGURED shows no host");
    t.drain_and_wait(&m, 0).await?;
    let drained = t.is_in(&m, State::Idle).await?;
    ensure!(host(&drained), "{m:?} in IDLE again shows no host");
    Ok(())
}

async fn lc_07(t: Case) -> Outcome {
    const UNTOUCHED: Duration = Duration::from_millis(300);
    let m = t.configured().await?;
    t.watch(&m, UNTOUCHED).await?.only(&[State::Configured])?;
    t.drain_and_wait(&m, 0).await?;
    t.watch(&m, UNTOUCHED).await?.only(&[State::Idle])
}

async fn lc_08(t: Case) -> Outcome {
    let m = t.idle().await?;
    let call = async { t.delete(&m).await.accepted() };
    let (ack, seen) = t.observe(&m, State::Speculative, call).await?;
    between(&ack.machine, &[State::Deleting, State::Speculative])?;
    seen.only(&[State::Idle, State::Deleting, State::Speculative])?;
    let slot = t.get(&m).await?;
    ensure!(slot.host.is_none(), "{m:?} in SPECULATIVE still shows a host");
    Ok(())
}
