//! Smoke: the fence and the binding.

use crate::{
    case::{Binding, Case, Listing, Metadata, State},
    catalogue::rows,
    ensure,
    outcome::{Outcome, Stop},
};

rows! { Smoke:
    "SM-17" "a new shard's token is accepted once" [Core] [] M sm_17;
    "SM-18" "an older epoch is fenced, whatever its sequence" [Core] [] M sm_18;
    "SM-19" "an equal or lower sequence is fenced" [Core] [] M sm_19;
    "SM-20" "marks are kept per machine" [Core] [] M sm_20;
    "SM-21" "a higher epoch frees the sequence" [Core] [] M sm_21;
    "SM-22" "reads are never fenced" [Core] [] M sm_22;
    "SM-23" "cluster and metadata are echoed byte for byte" [Core] [] M sm_23;
    "SM-24" "Drain clears cluster and metadata" [Core] [] M sm_24;
    "SM-25" "unknown keys, unicode, white space and empty values are echoed" [Core] [] M sm_25;
    "SM-26" "CONFIGURED only after the readiness signal" [] [] M sm_26;
}

async fn sm_17(t: Case) -> Outcome {
    let (m, shard) = (t.start().await?, t.shard());
    t.probe(&m, &shard.at(1, 1)).await.accepted()?;
    t.probe(&m, &shard.at(1, 1)).await.fenced()
}

async fn sm_18(t: Case) -> Outcome {
    let (m, shard) = (t.start().await?, t.shard());
    t.probe(&m, &shard.at(2, 1)).await.accepted()?;
    t.probe(&m, &shard.at(1, 99)).await.fenced()
}

async fn sm_19(t: Case) -> Outcome {
    let (m, shard) = (t.start().await?, t.shard());
    t.probe(&m, &shard.at(1, 5)).await.accepted()?;
    t.probe(&m, &shard.at(1, 5)).await.fenced()?;
    t.probe(&m, &shard.at(1, 4)).await.fenced()
}

async fn sm_20(t: Case) -> Outcome {
    let (machines, shard) = (t.starts(2).await?, t.shard());
    let [a, b] = &machines[..] else { return Ok(()) };
    t.probe(a, &shard.at(1, 30)).await.accepted()?;
    t.probe(b, &shard.at(1, 7)).await.accepted()?;
    t.probe(b, &shard.at(1, 7)).await.fenced()?;
    t.probe(b, &shard.at(0, 999)).await.fenced()
}

async fn sm_21(t: Case) -> Outcome {
    let (m, shard) = (t.start().await?, t.shard());
    t.probe(&m, &shard.at(1, 1000)).await.accepted()?;
    t.probe(&m, &shard.at(2, 1)).await.accepted()?;
    Ok(())
}

async fn sm_22(t: Case) -> Outcome {
    let (m, shard) = (t.start().await?, t.shard());
    t.probe(&m, &shard.at(9, 9)).await.accepted()?;
    t.probe(&m, &shard.at(9, 8)).await.fenced()?;
    t.get(&m).await?;
    let listed = t.fleet().await?.iter().any(|machine| machine.id == m);
    ensure!(listed, "{m:?} is not listed after a stale call");
    Ok(())
}

/// The machine shows exactly this binding, on Get and on List.
pub(crate) async fn shows(t: &Case, m: &str, binding: &Binding) -> Outcome {
    let got = t.get(m).await?;
    let listed = t.list(Listing::of(&[State::Configured])).await?.machines;
    let Some(listed) = listed.into_iter().find(|machine| machine.id == m) else {
        crate::fail!("{m:?} is not in the List of CONFIGURED");
    };
    for (read, machine) in [("Get", got), ("List", listed)] {
        ensure!(
            machine.cluster == binding.cluster,
            "{read} shows {m:?} bound to {:?}, not {:?}",
            machine.cluster,
            binding.cluster
        );
        exact(read, m, &machine.shard_metadata, &binding.metadata)?;
    }
    Ok(())
}

/// Both maps are equal; else the first key at fault.
pub(crate) fn exact(read: &str, m: &str, shown: &Metadata, sent: &Metadata) -> Outcome {
    for (key, value) in sent {
        match shown.get(key) {
            None => crate::fail!("{read} of {m:?} lacks the metadata key {key:?}"),
            Some(echo) => ensure!(
                echo == value,
                "{read} of {m:?} shows {key:?} with {} bytes instead of the {} sent",
                echo.len(),
                value.len()
            ),
        }
    }
    let extra = shown.keys().find(|key| !sent.contains_key(*key));
    ensure!(extra.is_none(), "{read} of {m:?} shows a key that was not sent: {extra:?}");
    Ok(())
}

pub(crate) fn map(entries: &[(&str, &str)]) -> Metadata {
    entries.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn known() -> Metadata {
    map(&[
        ("bigfleet.lucy.sh/assigned-priority", "1000000"),
        ("bigfleet.lucy.sh/assigned-interruption-penalty-dollars", "8192"),
        ("bigfleet.lucy.sh/assigned-group", ""),
        ("bigfleet.lucy.sh/assigned-need-fingerprint", "nul\0inside"),
        ("opaque", "anything"),
    ])
}

async fn sm_23(t: Case) -> Outcome {
    let binding = Binding::to(t.cluster("a")).with(known());
    let m = t.configured_to(binding.clone()).await?;
    shows(&t, &m, &binding).await
}

async fn sm_24(t: Case) -> Outcome {
    let m = t.configured_to(Binding::to(t.cluster("a")).with(known())).await?;
    t.drain_and_wait(&m, 0).await?;
    t.clean_idle(&m).await?;
    Ok(())
}

async fn sm_25(t: Case) -> Outcome {
    let metadata = map(&[
        ("example.org/nobody-knows-this", "kept"),
        ("snow-☃-ключ", "值 🦀"),
        ("tab", "\tin\tfront and behind\t"),
        ("spaces", "  kept  "),
        ("empty", ""),
    ]);
    let binding = Binding::to(t.cluster("a")).with(metadata);
    let m = t.configured_to(binding.clone()).await?;
    shows(&t, &m, &binding).await
}

/// The wire cannot hold back a readiness signal; the reference fake can.
async fn sm_26(_: Case) -> Outcome {
    Err(Stop::Skipped("runs in process, by self-test".into()))
}
