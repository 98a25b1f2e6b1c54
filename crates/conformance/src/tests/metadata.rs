//! Metadata: echoed byte for byte, never read.

use super::{
    errors::whole_or_nothing,
    smoke::fence::{exact, map, shows},
};
use crate::{
    case::{Binding, Case, Metadata, State},
    catalogue::rows,
    outcome::Outcome,
};
use tonic::Code;

rows! { Metadata:
    "MD-01" "55 keys with odd characters are echoed exactly" [Core] [] M md_01;
    "MD-02" "the next Configure shows its own map only" [Core] [] M md_02;
    "MD-03" "values of 8 KiB are echoed whole or refused whole" [Core] [] M md_03;
    "MD-04" "metadata is exact from CONFIGURING on" [Core] [] M md_04;
    "MD-05" "what the caller does with its map later changes nothing" [Core] [] M md_05;
}

/// Fifty-five entries with everything that UTF-8 allows.
fn odd() -> Metadata {
    let mut odd = map(&[
        ("nul", "a\0b"),
        ("\0", "nul as key"),
        ("control", "\u{1}\u{7}\u{1b}[31m\u{7f}"),
        ("c1", "\u{80}\u{85}\u{9f}"),
        ("newlines", "\r\n\n"),
        ("unicode", "Zażółć gęślą jaźń 漢字 🚀 \u{202e}"),
        ("combining", "e\u{301} is not é"),
        ("bom", "\u{feff}x"),
        ("empty", ""),
        ("", "empty key"),
    ]);
    for number in odd.len()..55 {
        odd.insert(format!("plain-{number}"), format!("value {number}"));
    }
    odd
}

async fn md_01(t: Case) -> Outcome {
    let binding = Binding::to(t.cluster("a")).with(odd());
    let m = t.configured_to(binding.clone()).await?;
    for _ in 0..4 {
        exact("Get", &m, &t.get(&m).await?.shard_metadata, &binding.metadata)?;
    }
    shows(&t, &m, &binding).await
}

async fn md_02(t: Case) -> Outcome {
    let m = t.idle().await?;
    let first = map(&[("first-a", "1"), ("first-b", "2")]);
    t.configure_and_wait(&m, Binding::to(t.cluster("a")).with(first)).await?;
    t.drain_and_wait(&m, 0).await?;
    t.clean_idle(&m).await?;
    let second = Binding::to(t.cluster("b")).with(map(&[("second", "3")]));
    t.configure_and_wait(&m, second.clone()).await?;
    shows(&t, &m, &second).await
}

async fn md_03(t: Case) -> Outcome {
    let metadata =
        (0..256).map(|key| (format!("key-{key:03}"), "0123456789abcdef".repeat(512))).collect();
    let large = Binding::to(t.cluster("a")).with(metadata);
    whole_or_nothing(&t, large, &[Code::InvalidArgument]).await?;
    // Within every documented cap: a single such value must be taken.
    let one = map(&[("one", &"0123456789abcdef".repeat(512))]);
    let small = Binding::to(t.cluster("b")).with(one);
    whole_or_nothing(&t, small, &[Code::InvalidArgument]).await
}

async fn md_04(t: Case) -> Outcome {
    let m = t.idle().await?;
    let binding = Binding::to(t.cluster("a")).with(odd());
    let call = async { t.configure(&m, binding.clone()).await.accepted() };
    let (ack, seen) = t.observe(&m, State::Configured, call).await?;
    exact("the ack", &m, &ack.machine.shard_metadata, &binding.metadata)?;
    for state in [State::Configuring, State::Configured] {
        for machine in seen.during(state) {
            exact("Get", &m, &machine.shard_metadata, &binding.metadata)?;
        }
    }
    shows(&t, &m, &binding).await
}

/// Over the wire the caller's map is a copy anyway; in process (self-test) it
/// need not be.
async fn md_05(t: Case) -> Outcome {
    let m = t.idle().await?;
    let sent = map(&[("key", "as sent")]);
    let mut own = sent.clone();
    t.configure(&m, Binding::to(t.cluster("a")).with(own.clone())).await.accepted()?;
    own.insert("key".to_owned(), "changed".to_owned());
    own.insert("later".to_owned(), "added".to_owned());
    t.settle(&m, State::Configured).await?;
    for _ in 0..2 {
        exact("Get", &m, &t.get(&m).await?.shard_metadata, &sent)?;
    }
    Ok(())
}
