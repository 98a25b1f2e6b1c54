//! Concurrency: sixteen callers at once.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use tonic::Code;

use super::smoke::fence::shows;
use crate::{
    case::{Ack, Answer, Binding, Case, Listing, State},
    catalogue::rows,
    ensure,
    outcome::Outcome,
    wire::state_name,
};

rows! { Concurrency:
    "CO-01" "equal Creates have one id and one effect" [Core] [Slot] M co_01;
    "CO-02" "equal Configures have one id and one effect" [Core] [] M co_02;
    "CO-03" "equal Drains have one id and one effect" [Core] [] M co_03;
    "CO-04" "Configure against Drain has one result" [Core] [] M co_04;
    "CO-05" "of two epochs at once only the new one passes" [Core] [] M co_05;
    "CO-06" "equal Configures over two connections have one id" [Core] [] M co_06;
    "CO-07" "machines created at once do not bleed into each other" [Core] [Slot] M co_07;
    "CO-08" "no snapshot in a burst of Configures is torn" [Core] [] M co_08;
    "CO-09" "equal Deletes have one id and one effect" [Cloud] [Slot Del] M co_09;
}

const PARALLEL: usize = 16;

/// Equal calls at once, each by a shard of its own, for order between the
/// tokens of one shard is not given. All of one operation.
async fn one_id(answers: Vec<Answer>) -> Outcome<String> {
    let mut acks = Vec::new();
    for answer in answers {
        acks.push(answer.accepted()?);
    }
    let ids: BTreeSet<_> = acks.into_iter().map(|ack: Ack| ack.id).collect();
    ensure!(ids.len() == 1, "equal calls have the ids {ids:?}");
    Ok(ids.into_iter().next().unwrap_or_default())
}

async fn listed_once(t: &Case, m: &str) -> Outcome {
    let times = t.fleet().await?.iter().filter(|machine| machine.id == m).count();
    ensure!(times == 1, "{m:?} is listed {times} times");
    Ok(())
}

async fn co_01(t: Case) -> Outcome {
    let m = t.start().await?;
    let calls = (0..PARALLEL).map(|_| async { t.create_as(&m, &t.shard().next()).await });
    let id = one_id(join_all(calls).await).await?;
    t.settle(&m, State::Idle).await?;
    let again = t.create(&m).await.accepted()?;
    ensure!(again.id == id, "after the burst Create answers {:?}, not {id:?}", again.id);
    listed_once(&t, &m).await
}

async fn configures(t: &Case, m: &str, binding: &Binding, count: usize) -> Vec<Answer> {
    let call = |_| async { t.configure_as(m, binding.clone(), &t.shard().next()).await };
    join_all((0..count).map(call)).await
}

async fn co_02(t: Case) -> Outcome {
    let m = t.idle().await?;
    let metadata = [("key".to_owned(), "value".to_owned())].into();
    let binding = Binding::to(t.cluster("a")).with(metadata);
    let id = one_id(configures(&t, &m, &binding, PARALLEL).await).await?;
    t.settle(&m, State::Configured).await?;
    let again = t.configure(&m, binding.clone()).await.accepted()?;
    ensure!(again.id == id, "after the burst Configure answers {:?}, not {id:?}", again.id);
    shows(&t, &m, &binding).await?;
    listed_once(&t, &m).await
}

async fn co_03(t: Case) -> Outcome {
    let m = t.configured().await?;
    let calls = (0..PARALLEL).map(|_| async { t.drain_as(&m, 0, &t.shard().next()).await });
    let id = one_id(join_all(calls).await).await?;
    t.settle(&m, State::Idle).await?;
    let again = t.drain(&m, 0).await.accepted()?;
    ensure!(again.id == id, "after the burst Drain answers {:?}, not {id:?}", again.id);
    t.clean_idle(&m).await?;
    listed_once(&t, &m).await
}

/// The distinct ids of what was accepted.
fn ids(answers: Vec<Answer>) -> Outcome<BTreeSet<String>> {
    let accepted = answers.into_iter().filter(|answer| answer.code() == Code::Ok);
    accepted.map(|answer| Ok(answer.accepted()?.id)).collect()
}

async fn co_04(t: Case) -> Outcome {
    let binding = Binding::to(t.cluster("a"));
    let m = t.idle().await?;
    let first = t.configure_and_wait(&m, binding.clone()).await?.id;
    let drains = (0..PARALLEL / 2).map(|_| async { t.drain_as(&m, 0, &t.shard().next()).await });
    let (configured, drained) =
        tokio::join!(configures(&t, &m, &binding, PARALLEL / 2), join_all(drains));
    for answer in configured.iter().chain(&drained) {
        answer.passed_fence()?;
    }
    // An instant provider may go round more than once, but drains and bindings
    // take turns: two drains without a binding between them are a race.
    let bindings = ids(configured)?.into_iter().filter(|id| *id != first).count();
    let drained = ids(drained)?;
    ensure!(
        drained.len() == bindings || drained.len() == bindings + 1,
        "{} drains ({drained:?}) and {bindings} new bindings of {m:?} cannot take turns",
        drained.len()
    );
    let resting = |seen: &crate::case::Machine| {
        matches!(seen.state(), State::Idle | State::Configured | State::Failed)
    };
    let (seen, _) = t.until(&m, crate::case::SETTLE, resting).await?;
    match seen.state() {
        State::Idle => {
            t.clean_idle(&m).await?;
        }
        State::Configured => ensure!(
            seen.cluster == binding.cluster,
            "{m:?} in CONFIGURED is bound to {:?}",
            seen.cluster
        ),
        state => crate::fail!("{m:?} ended in {}", state_name(state.into())),
    }
    t.stays(&seen).await
}

async fn co_05(t: Case) -> Outcome {
    let (m, shard) = (t.start().await?, t.shard());
    t.probe(&m, &shard.at(1, 1000)).await.accepted()?;
    let calls = (1..=PARALLEL as i64).map(|number| {
        let old = number % 2 == 0;
        let token = if old { shard.at(1, number) } else { shard.at(2, number) };
        let (t, m) = (&t, &m);
        async move { (old, t.probe(m, &token).await) }
    });
    let mut passed = 0;
    for (old, answer) in join_all(calls).await {
        if old {
            answer.fenced()?;
        } else if answer.code() == Code::Ok {
            passed += 1;
        } else {
            answer.fenced()?;
        }
    }
    ensure!(passed > 0, "no token of the new epoch was accepted");
    t.probe(&m, &shard.at(1, 9)).await.fenced()?;
    t.probe(&m, &shard.at(2, 9999)).await.accepted()?;
    Ok(())
}

async fn co_06(t: Case) -> Outcome {
    let m = t.idle().await?;
    let other = t.second_connection();
    let binding = Binding::to(t.cluster("a"));
    let (mut answers, others) = tokio::join!(
        configures(&t, &m, &binding, PARALLEL / 2),
        configures(&other, &m, &binding, PARALLEL / 2)
    );
    answers.extend(others);
    let id = one_id(answers).await?;
    t.settle(&m, State::Configured).await?;
    for road in [&t, &other] {
        let again = road.configure(&m, binding.clone()).await.accepted()?;
        ensure!(again.id == id, "after settling a connection answers {:?}, not {id:?}", again.id);
    }
    Ok(())
}

/// Creates all at once: ids are distinct, every machine is its own.
pub(super) async fn created_at_once(t: &Case, count: usize) -> Outcome {
    let machines = t.starts(count).await?;
    let answers = join_all(machines.iter().map(|m| t.create(m))).await;
    let mut ids = BTreeSet::new();
    for answer in answers {
        ids.insert(answer.accepted()?.id);
    }
    ensure!(ids.len() == count, "{count} machines share {} operation ids", ids.len());
    let mut hosts = BTreeSet::new();
    for m in &machines {
        t.settle(m, State::Idle).await?;
        let seen = t.clean_idle(m).await?;
        hosts.extend(seen.host.map(|host| host.r#ref));
    }
    ensure!(hosts.len() == count, "{count} machines have {} hosts", hosts.len());
    Ok(())
}

async fn co_07(t: Case) -> Outcome {
    created_at_once(&t, 8).await
}

async fn co_08(t: Case) -> Outcome {
    let m = t.idle().await?;
    let binding = Binding::to(t.cluster("a"));
    for answer in configures(&t, &m, &binding, PARALLEL).await {
        let snapshot = answer.accepted()?.machine;
        let state = state_name(snapshot.state);
        ensure!(
            matches!(snapshot.state(), State::Configuring | State::Configured),
            "the ack of a Configure shows {m:?} in {state}"
        );
        ensure!(
            snapshot.cluster == binding.cluster,
            "the ack shows {m:?} in {state} with cluster {:?}",
            snapshot.cluster
        );
    }
    t.settle(&m, State::Configured).await?;
    Ok(())
}

async fn co_09(t: Case) -> Outcome {
    let m = t.idle().await?;
    let calls = (0..PARALLEL).map(|_| async { t.delete_as(&m, &t.shard().next()).await });
    one_id(join_all(calls).await).await?;
    t.settle(&m, State::Speculative).await?;
    let slots = t.list(Listing::of(&[State::Speculative])).await?.machines;
    let times = slots.iter().filter(|machine| machine.id == m).count();
    ensure!(times == 1, "{m:?} is listed {times} times as a slot");
    Ok(())
}
