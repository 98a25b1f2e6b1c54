//! Fencing. The probe is Create, harmless when repeated.

use tonic::Code;

use crate::{
    case::{Binding, Case, Listing, State},
    catalogue::rows,
    ensure,
    outcome::Outcome,
    shard::Token,
};

rows! { Fencing:
    "FE-01" "the fence comes before existence, on all four calls" [Core] [] M fe_01;
    "FE-02" "marks cross neither shards nor machines" [Core] [] M fe_02;
    "FE-03" "around the mark (2,5) exactly the newer tokens pass" [Core] [] M fe_03;
    "FE-04" "a stale call moves nothing and stops no read" [Core] [] M fe_04;
    "FE-05" "a zombie gets no id of an applied Configure" [Core] [] M fe_05;
    "FE-06" "a zombie gets no id of an applied Drain" [Core] [] M fe_06;
    "FE-07" "the zero token asks for no fence" [Core] [Zero] M fe_07;
    "FE-08" "a session's rising tokens pass; its first is stale later" [Core] [] M fe_08;
    "FE-09" "tokens of an old epoch are stale after a new one" [Core] [Slot Del] M fe_09;
    "FE-10" "a rejected call still moves the mark" [Core] [Slot] M fe_10;
    "FE-11" "200 tokens near the mark pass exactly when newer" [Core] [] M fe_11;
}

async fn fe_01(t: Case) -> Outcome {
    let (m, shard) = (t.unknown("a"), t.shard());
    t.create_as(&m, &shard.at(5, 5)).await.refused(&[Code::NotFound])?;
    let stale = shard.at(1, 1);
    t.create_as(&m, &stale).await.fenced()?;
    t.configure_as(&m, Binding::to(t.cluster("a")), &stale).await.fenced()?;
    t.drain_as(&m, 0, &stale).await.fenced()?;
    t.delete_as(&m, &stale).await.refused(&[Code::FailedPrecondition, Code::Unimplemented])?;
    t.create_as(&m, &shard.at(9, 9)).await.refused(&[Code::NotFound])
}

async fn fe_02(t: Case) -> Outcome {
    let machines = t.starts(3).await?;
    let shards = [t.shard(), t.shard(), t.shard()];
    for (index, (m, shard)) in machines.iter().zip(&shards).enumerate() {
        // Falling marks: whoever shares one sees the second as stale.
        let sequence = 30 - 10 * index as i64;
        t.probe(m, &shard.at(5, sequence)).await.accepted()?;
        t.probe(m, &shard.at(5, sequence)).await.fenced()?;
    }
    let (a, b, shard) = (&machines[0], &machines[1], t.shard());
    t.probe(a, &shard.at(5, 30)).await.accepted()?;
    t.probe(b, &shard.at(5, 7)).await.accepted()?;
    t.probe(a, &shard.at(5, 30)).await.fenced()?;
    t.probe(b, &shard.at(5, 7)).await.fenced()?;
    t.probe(b, &shard.at(4, 999)).await.fenced()
}

async fn fe_03(t: Case) -> Outcome {
    let (m, shard) = (t.start().await?, t.shard());
    t.probe(&m, &shard.at(2, 5)).await.accepted()?;
    for (epoch, sequence, newer) in [
        (2, 5, false),
        (2, 4, false),
        (2, 0, false),
        (1, 6, false),
        (1, 999, false),
        (0, 5, false),
        (2, 6, true),
        (2, 6, false),
        (2, 5, false),
        (3, 0, true),
        (3, 0, false),
        (2, 999, false),
        (3, 1, true),
        (4, 0, true),
        (10, 7, true),
        (9, 999, false),
    ] {
        let answer = t.probe(&m, &shard.at(epoch, sequence)).await;
        if newer {
            answer.accepted()?;
        } else {
            answer.fenced()?;
        }
    }
    Ok(())
}

async fn fe_04(t: Case) -> Outcome {
    let (m, shard) = (t.start().await?, t.shard());
    t.probe(&m, &shard.at(5, 5)).await.accepted()?;
    let target = if t.gates().slot { State::Idle } else { State::Configured };
    let before = t.settle(&m, target).await?;
    for sequence in 1..=4 {
        t.probe(&m, &shard.at(5, sequence)).await.fenced()?;
        let after = t.get(&m).await?;
        ensure!(after == before, "a stale call changed {m:?}");
        t.fleet().await?;
        t.list(Listing::of(&[target])).await?;
    }
    t.stays(&before).await
}

async fn fe_05(t: Case) -> Outcome {
    let (m, shard) = (t.idle().await?, t.shard());
    let binding = || Binding::to(t.cluster("a"));
    let first = t.configure_as(&m, binding(), &shard.at(5, 5)).await.accepted()?;
    t.settle(&m, State::Configured).await?;
    t.configure_as(&m, binding(), &shard.at(1, 1)).await.fenced()?;
    let again = t.configure_as(&m, binding(), &shard.at(5, 6)).await.accepted()?;
    ensure!(again.id == first.id, "the repetition answers {:?}, not {:?}", again.id, first.id);
    Ok(())
}

async fn fe_06(t: Case) -> Outcome {
    let (m, shard) = (t.configured().await?, t.shard());
    let first = t.drain_as(&m, 0, &shard.at(5, 5)).await.accepted()?;
    t.settle(&m, State::Idle).await?;
    t.drain_as(&m, 0, &shard.at(1, 1)).await.fenced()?;
    let again = t.drain_as(&m, 0, &shard.at(5, 6)).await.accepted()?;
    ensure!(again.id == first.id, "the repetition answers {:?}, not {:?}", again.id, first.id);
    Ok(())
}

async fn fe_07(t: Case) -> Outcome {
    let machines = t.starts(2).await?;
    t.probe(&machines[0], &Token::zero()).await.accepted()?;
    t.probe(&machines[0], &Token::zero()).await.accepted()?;
    t.probe(&machines[1], &Token::zero()).await.accepted()?;
    Ok(())
}

async fn fe_08(t: Case) -> Outcome {
    let (m, shard) = (t.start().await?, t.shard());
    let first = shard.next();
    if t.gates().slot {
        t.create_as(&m, &first).await.accepted()?;
        t.settle(&m, State::Idle).await?;
    }
    for round in ["a", "b"] {
        t.configure_as(&m, Binding::to(t.cluster(round)), &shard.next()).await.accepted()?;
        t.settle(&m, State::Configured).await?;
        t.drain_as(&m, 0, &shard.next()).await.accepted()?;
        t.settle(&m, State::Idle).await?;
    }
    t.probe(&m, &first).await.fenced()
}

async fn fe_09(t: Case) -> Outcome {
    let (m, shard) = (t.start().await?, t.shard());
    t.create_as(&m, &shard.at(1, 1)).await.accepted()?;
    t.settle(&m, State::Idle).await?;
    t.delete_as(&m, &shard.at(1, 2)).await.accepted()?;
    t.settle(&m, State::Speculative).await?;
    t.create_as(&m, &shard.at(1, 3)).await.accepted()?;
    t.settle(&m, State::Idle).await?;
    // The successor has spoken once; its predecessor must be silent.
    t.create_as(&m, &shard.at(2, 0)).await.accepted()?;
    for sequence in [1, 2, 3, 4, 99] {
        t.create_as(&m, &shard.at(1, sequence)).await.fenced()?;
    }
    t.configure_as(&m, Binding::to(t.cluster("a")), &shard.at(2, 1)).await.accepted()?;
    Ok(())
}

async fn fe_10(t: Case) -> Outcome {
    let (m, shard) = (t.start().await?, t.shard());
    t.rej(&m, t.drain_as(&m, 0, &shard.at(5, 5))).await?;
    t.create_as(&m, &shard.at(5, 4)).await.fenced()?;
    t.create_as(&m, &shard.at(5, 6)).await.accepted()?;
    Ok(())
}

/// Tokens near the running mark; each passes exactly when it is newer, and what
/// is refused does not move the mark.
pub(super) async fn near_the_mark(t: &Case, count: usize) -> Outcome {
    let (m, shard) = (t.start().await?, t.shard());
    let mut mark = (1_i64, 1_i64);
    t.probe(&m, &shard.at(mark.0, mark.1)).await.accepted()?;
    for _ in 0..count {
        let token = t.random(|random| match random.below(8) {
            0 => mark,
            1 => (mark.0, mark.1 - 1),
            2 => (mark.0, mark.1 + 1),
            3 => (mark.0 - 1, mark.1 + random.between(0, 100)),
            // Newer by its epoch, however low its sequence: rarely, or the
            // numbers would run away.
            4 if random.below(4) == 0 => (mark.0 + 1, random.between(-2, 2)),
            _ => (mark.0 + random.between(-2, 0), mark.1 + random.between(-3, 3)),
        });
        let answer = t.probe(&m, &shard.at(token.0, token.1)).await;
        if token > mark {
            mark = token;
            answer.passed_fence()?;
            answer.accepted()?;
        } else {
            answer.fenced()?;
        }
    }
    Ok(())
}

async fn fe_11(t: Case) -> Outcome {
    near_the_mark(&t, 200).await
}
