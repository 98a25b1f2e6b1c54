//! Property: random calls against a small oracle; the seed replays them.

use std::collections::BTreeMap;

use bigfleet_net::grpc::code_name;
use tonic::Code;

use super::{
    fencing::near_the_mark,
    smoke::fence::{exact, shows},
};
use crate::{
    case::{Answer, Binding, Case, Machine, Metadata, SETTLE, State},
    catalogue::rows,
    ensure, fail,
    outcome::Outcome,
    random::Random,
    wire::state_name,
};

rows! { Property:
    "PR-01" "240 tokens at the boundary follow the oracle" [Core] [] M pr_01;
    "PR-02" "20 random maps are echoed exactly" [Core] [] M pr_02;
    "PR-03" "random calls take legal edges or nothing" [Core] [] M pr_03;
    "PR-04" "marks follow an oracle per shard and machine" [Core] [] M pr_04;
    "PR-05" "bad requests get the code that is due" [Core] [] M pr_05;
}

async fn pr_01(t: Case) -> Outcome {
    near_the_mark(&t, 240).await
}

fn text(random: &mut Random, longest: u64) -> String {
    let length = random.below(longest + 1);
    (0..length)
        .map(|_| match random.below(6) {
            0 => ' ',
            1 => char::from(random.below(32) as u8),
            2 => char::from_u32(0x80 + random.below(0x700) as u32).unwrap_or('x'),
            3 => char::from_u32(random.below(0x11_0000) as u32).unwrap_or('\u{fffd}'),
            _ => char::from(b'a' + random.below(26) as u8),
        })
        .collect()
}

fn random_map(random: &mut Random) -> Metadata {
    (0..random.below(30)).map(|_| (text(random, 20), text(random, 60))).collect()
}

async fn pr_02(t: Case) -> Outcome {
    let m = t.idle().await?;
    for round in 0..20 {
        let metadata = t.random(random_map);
        let binding = Binding::to(t.cluster(&round.to_string())).with(metadata);
        t.configure_and_wait(&m, binding.clone()).await?;
        exact("Get", &m, &t.get(&m).await?.shard_metadata, &binding.metadata)?;
        shows(&t, &m, &binding).await?;
        t.drain_and_wait(&m, 0).await?;
        t.clean_idle(&m).await?;
    }
    Ok(())
}

const KINDS: [(&str, State, State); 4] = [
    ("Create", State::Speculative, State::Idle),
    ("Configure", State::Idle, State::Configured),
    ("Drain", State::Configured, State::Idle),
    ("Delete", State::Idle, State::Speculative),
];

async fn call(t: &Case, m: &str, kind: &str) -> Answer {
    match kind {
        "Create" => t.create(m).await,
        "Configure" => t.configure(m, Binding::to(t.cluster("a"))).await,
        "Drain" => t.drain(m, 0).await,
        _ => t.delete(m).await,
    }
}

async fn pr_03(t: Case) -> Outcome {
    for _ in 0..5 {
        let m = t.start().await?;
        let mut state = t.get(&m).await?.state();
        for _ in 0..9 {
            let (kind, from, to) = t.random(|random| *random.one_of(&KINDS));
            let optional = kind == "Delete" && !t.gates().del;
            if from == state && !optional {
                call(&t, &m, kind).await.accepted()?;
                t.settle(&m, to).await?;
                state = to;
            } else if to == state {
                t.rej_or_nothing(&m, call(&t, &m, kind)).await?;
            } else {
                t.rej(&m, call(&t, &m, kind)).await?;
            }
        }
    }
    Ok(())
}

async fn pr_04(t: Case) -> Outcome {
    let machines = t.starts(4).await?;
    let shards = [t.shard(), t.shard(), t.shard()];
    let mut marks: BTreeMap<(usize, usize), (i64, i64)> = BTreeMap::new();
    for _ in 0..200 {
        let (s, m, token) = t.random(|random| {
            let (s, m) = (random.below(3) as usize, random.below(4) as usize);
            (s, m, (random.between(1, 4), random.between(1, 12)))
        });
        let answer = t.probe(&machines[m], &shards[s].at(token.0, token.1)).await;
        let mark = marks.get(&(s, m));
        if mark.is_none_or(|mark| token > *mark) {
            answer.passed_fence()?;
            answer.accepted()?;
            marks.insert((s, m), token);
        } else {
            answer.fenced()?;
        }
    }
    t.probe(&machines[0], &t.shard().at(1, 1)).await.accepted()?;
    Ok(())
}

/// An accepted call on a sound machine must still end well.
async fn rests(t: &Case, m: &str) -> Outcome<Machine> {
    let resting = |seen: &Machine| {
        !matches!(
            seen.state(),
            State::Creating | State::Configuring | State::Draining | State::Deleting
        )
    };
    let (seen, _) = t.until(m, SETTLE, resting).await?;
    let state = state_name(seen.state);
    ensure!(resting(&seen) && seen.state() != State::Failed, "{m:?} ended in {state}");
    Ok(seen)
}

async fn pr_05(t: Case) -> Outcome {
    let m = t.idle().await?;
    for round in 0..40 {
        match t.random(|random| random.below(6)) {
            0 => {
                let kind = t.random(|random| random.one_of(&KINDS[..3]).0);
                call(&t, "", kind).await.refused(&[Code::InvalidArgument])?;
            }
            1 => {
                let kind = t.random(|random| random.one_of(&KINDS[..3]).0);
                let unknown = t.unknown(&round.to_string());
                call(&t, &unknown, kind).await.refused(&[Code::NotFound])?;
                t.get_refused(&unknown, Code::NotFound).await?;
            }
            2 => {
                let grace = -t.random(|random| random.between(1, i64::from(i32::MAX)));
                // Idle: out of position is as good a reason as the grace.
                let answer = t.drain(&m, grace).await;
                answer.passed_fence()?;
                t.clean_idle(&m).await?;
            }
            3 => {
                let keys = t.random(|random| random.between(400, 800));
                let metadata = (0..keys).map(|key| (format!("k{key}"), "v".to_owned())).collect();
                odd_configure(&t, &m, Binding::to(t.cluster("a")).with(metadata)).await?;
            }
            4 => {
                let size = t.random(|random| random.between(64 << 10, 128 << 10));
                let blob = vec![b'b'; size as usize];
                odd_configure(&t, &m, Binding { blob, ..Binding::to(t.cluster("a")) }).await?;
            }
            _ => {
                let (epoch, sequence) =
                    t.random(|random| (random.draw() as i64, random.draw() as i64));
                let answer = t.drain_as(&m, 0, &t.shard().at(epoch, sequence)).await;
                answer.passed_fence()?;
                t.clean_idle(&m).await?;
            }
        }
    }
    Ok(())
}

/// Taken whole, or refused as too large; never as fenced.
async fn odd_configure(t: &Case, m: &str, binding: Binding) -> Outcome {
    let answer = t.configure(m, binding.clone()).await;
    match answer.code() {
        Code::Ok => {
            answer.accepted()?;
            let bound = rests(t, m).await?;
            exact("Get", m, &bound.shard_metadata, &binding.metadata)?;
            t.drain_and_wait(m, 0).await?;
        }
        Code::InvalidArgument | Code::ResourceExhausted => {
            t.clean_idle(m).await?;
        }
        code => fail!("a large Configure of {m:?} answers {}", code_name(code)),
    }
    Ok(())
}
