//! Errors: which status, and nothing moved.

use tonic::Code;

use super::smoke::fence::exact;
use crate::{
    case::{Answer, Binding, Case, Metadata, State},
    catalogue::rows,
    ensure,
    outcome::Outcome,
};

rows! { Errors:
    "ER-01" "Create of a bound machine is rejected and leaves the binding" [Core] [Slot] M er_01;
    "ER-02" "Configure of a slot is rejected and leaves no binding" [Core] [Slot] M er_02;
    "ER-03" "Drain of an idle machine does nothing" [Core] [] M er_03;
    "ER-04" "Delete of a slot does nothing, of a bound machine is rejected" [Core] [Slot] M er_04;
    "ER-05" "repetition at the target shows the target, never a transition" [Core] [] M er_05;
    "ER-06" "repetition at the target has the first id; kinds have different ids" [Core] [] M er_06;
    "ER-07" "mutations of an unknown machine are NOT_FOUND and do not make it" [Core] [] M er_07;
    "ER-08" "an empty id is INVALID_ARGUMENT" [Core] [] M er_08;
    "ER-09" "large metadata is echoed whole or refused whole" [Core] [] M er_09;
    "ER-10" "a negative grace is INVALID_ARGUMENT" [Core] [] M er_10;
    "ER-11" "negative tokens are ordinary small ones" [Core] [Slot] M er_11;
    "ER-12" "tokens reach to the end of i64" [Core] [] M er_12;
    "ER-13" "a large blob is taken whole or refused whole" [Core] [] M er_13;
    "ER-14" "every cycle has an id of its own" [Core] [Slot] M er_14;
    "ER-15" "an unknown machine cannot be read or deleted" [Cloud] [] M er_15;
}

async fn er_01(t: Case) -> Outcome {
    let m = t.configured().await?;
    t.rej(&m, t.create(&m)).await?;
    let bound = t.is_in(&m, State::Configured).await?;
    ensure!(bound.cluster == t.cluster("a"), "{m:?} is bound to {:?} now", bound.cluster);
    Ok(())
}

async fn er_02(t: Case) -> Outcome {
    let m = t.start().await?;
    t.rej(&m, t.configure(&m, Binding::to(t.cluster("a")))).await?;
    let slot = t.get(&m).await?;
    ensure!(slot.cluster.is_empty(), "{m:?} is bound to {:?} now", slot.cluster);
    Ok(())
}

async fn er_03(t: Case) -> Outcome {
    let m = t.idle().await?;
    t.rej_or_nothing(&m, t.drain(&m, 0)).await?;
    t.clean_idle(&m).await?;
    // Drained before: a provider may take this for a repetition.
    t.configure_and_wait(&m, Binding::to(t.cluster("a"))).await?;
    t.drain_and_wait(&m, 0).await?;
    t.rej_or_nothing(&m, t.drain(&m, 0)).await?;
    t.clean_idle(&m).await?;
    Ok(())
}

async fn er_04(t: Case) -> Outcome {
    let m = t.start().await?;
    t.rej_or_nothing(&m, t.delete(&m)).await?;
    t.is_in(&m, State::Speculative).await?;
    let bound = t.configured().await?;
    t.rej(&bound, t.delete(&bound)).await?;
    t.is_in(&bound, State::Configured).await?;
    Ok(())
}

/// The repetition shows the target, and the machine stays there.
async fn repeats(t: &Case, m: &str, target: State, call: impl Future<Output = Answer>) -> Outcome {
    let before = t.get(m).await?;
    let ack = call.await.accepted()?;
    ensure!(
        ack.machine.state() == target,
        "the repetition shows {m:?} in {:?}, not {target:?}",
        ack.machine.state()
    );
    t.stays(&before).await
}

async fn er_05(t: Case) -> Outcome {
    let m = t.idle().await?;
    if t.gates().slot {
        repeats(&t, &m, State::Idle, t.create(&m)).await?;
    }
    let binding = Binding::to(t.cluster("a"));
    t.configure_and_wait(&m, binding.clone()).await?;
    repeats(&t, &m, State::Configured, t.configure(&m, binding)).await
}

async fn er_06(t: Case) -> Outcome {
    let m = t.start().await?;
    let mut created = None;
    if t.gates().slot {
        let first = t.create_and_wait(&m).await?;
        let again = t.create(&m).await.accepted()?;
        ensure!(first.id == again.id, "Create at IDLE answers {:?}, not {:?}", again.id, first.id);
        created = Some(first.id);
    }
    let binding = Binding::to(t.cluster("a"));
    let first = t.configure_and_wait(&m, binding.clone()).await?;
    let again = t.configure(&m, binding).await.accepted()?;
    ensure!(
        first.id == again.id,
        "Configure at CONFIGURED answers {:?}, not {:?}",
        again.id,
        first.id
    );
    ensure!(created.as_ref() != Some(&first.id), "Create and Configure share {:?}", first.id);
    Ok(())
}

async fn er_07(t: Case) -> Outcome {
    for (name, kind) in ["create", "configure", "drain"].into_iter().enumerate() {
        let m = t.unknown(&name.to_string());
        let answer = match kind {
            "create" => t.create(&m).await,
            "configure" => t.configure(&m, Binding::to(t.cluster("a"))).await,
            _ => t.drain(&m, 0).await,
        };
        answer.refused(&[Code::NotFound])?;
        t.get_refused(&m, Code::NotFound).await?;
    }
    Ok(())
}

async fn er_08(t: Case) -> Outcome {
    let due = &[Code::InvalidArgument];
    t.get_refused("", Code::InvalidArgument).await?;
    t.create("").await.refused(due)?;
    t.configure("", Binding::to(t.cluster("a"))).await.refused(due)?;
    t.drain("", 0).await.refused(due)
}

/// Echoed exactly, or refused with one of these codes and not bound at all.
pub(super) async fn whole_or_nothing(t: &Case, binding: Binding, refusals: &[Code]) -> Outcome {
    let m = t.idle().await?;
    let answer = t.configure(&m, binding.clone()).await;
    if answer.code() != Code::Ok {
        answer.refused(refusals)?;
        let before = t.clean_idle(&m).await?;
        return t.stays(&before).await;
    }
    answer.accepted()?;
    let bound = t.settle(&m, State::Configured).await?;
    ensure!(bound.cluster == binding.cluster, "{m:?} is bound to {:?}", bound.cluster);
    exact("Get", &m, &bound.shard_metadata, &binding.metadata)?;
    t.drain_and_wait(&m, 0).await?;
    Ok(())
}

async fn er_09(t: Case) -> Outcome {
    let metadata: Metadata =
        (0..512).map(|key| (format!("key-{key:03}"), "v".repeat(1024))).collect();
    let binding = Binding::to(t.cluster("a")).with(metadata);
    whole_or_nothing(&t, binding, &[Code::InvalidArgument]).await
}

async fn er_10(t: Case) -> Outcome {
    let m = t.configured().await?;
    let answer = t.drain(&m, -5).await;
    if answer.code() == Code::Ok {
        t.settle(&m, State::Idle).await?;
        t.clean_idle(&m).await?;
        return Ok(());
    }
    answer.refused(&[Code::InvalidArgument])?;
    let before = t.is_in(&m, State::Configured).await?;
    t.stays(&before).await
}

async fn er_11(t: Case) -> Outcome {
    for (epoch, sequence) in [(-1, 5), (5, -1), (-7, -7)] {
        let (m, shard) = (t.start().await?, t.shard());
        let answer = t.create_as(&m, &shard.at(epoch, sequence)).await;
        if answer.code() == Code::Ok {
            t.settle(&m, State::Idle).await?;
        } else {
            answer.refused(&[Code::InvalidArgument])?;
            t.is_in(&m, State::Speculative).await?;
        }
    }
    Ok(())
}

async fn er_12(t: Case) -> Outcome {
    let (m, shard) = (t.idle().await?, t.shard());
    let top = shard.at(i64::MAX, i64::MAX);
    let binding = || Binding::to(t.cluster("a"));
    t.configure_as(&m, binding(), &top).await.accepted()?;
    t.configure_as(&m, binding(), &top).await.fenced()?;
    t.configure_as(&m, binding(), &shard.at(i64::MAX - 1, i64::MAX)).await.fenced()?;
    // From one end to the other: a difference would not fit.
    let (other, low) = (t.idle().await?, t.shard());
    t.configure_as(&other, binding(), &low.at(i64::MIN, i64::MIN)).await.passed_fence()?;
    t.configure_as(&other, binding(), &low.at(i64::MAX, i64::MAX)).await.passed_fence()?;
    t.configure_as(&other, binding(), &low.at(i64::MIN, i64::MAX)).await.fenced()
}

async fn er_13(t: Case) -> Outcome {
    let blob = vec![0x5a; 3 << 20];
    let binding = Binding { blob, ..Binding::to(t.cluster("a")) };
    whole_or_nothing(&t, binding, &[Code::InvalidArgument, Code::ResourceExhausted]).await
}

async fn er_14(t: Case) -> Outcome {
    let m = t.start().await?;
    let mut ids = vec![t.create_and_wait(&m).await?.id];
    for round in ["a", "b"] {
        ids.push(t.configure_and_wait(&m, Binding::to(t.cluster(round))).await?.id);
        ids.push(t.drain_and_wait(&m, 0).await?.id);
    }
    let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
    ensure!(distinct.len() == ids.len(), "five operations have the ids {ids:?}");
    let again = t.drain(&m, 0).await.accepted()?;
    ensure!(
        ids.last() == Some(&again.id),
        "the repetition of the last drain answers {:?}, not its own id of {ids:?}",
        again.id
    );
    Ok(())
}

async fn er_15(t: Case) -> Outcome {
    let m = t.unknown("a");
    t.get_refused(&m, Code::NotFound).await?;
    t.delete(&m).await.refused(&[Code::NotFound, Code::Unimplemented])?;
    t.get_refused(&m, Code::NotFound).await
}
