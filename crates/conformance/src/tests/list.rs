//! List: filters, caps, cursors.

use std::{collections::BTreeSet, time::Duration};

use bigfleet_wire::v1alpha1::MachineList;
use tokio::time::sleep;

use crate::{
    case::{Case, Listing, Machine, State},
    catalogue::rows,
    ensure,
    outcome::Outcome,
    wire::state_name,
};

rows! { List:
    "LI-01" "filters are pure; several states are their union" [Core] [] M li_01;
    "LI-02" "max_results is a hard cap; 0 is none" [Core] [] M li_02;
    "LI-03" "a change is in the delta" [Core] [Rev] M li_03;
    "LI-04" "the delta at head is empty" [Core] [Rev] M li_04;
    "LI-05" "a delta holds all that changed after its cursor" [Core] [Rev] M li_05;
    "LI-06" "any bytes are a cursor" [Core] [] M li_06;
    "LI-07" "cut pages stay within the delta and, continued, complete it" [Core] [Rev] M li_07;
    "LI-08" "nothing changes by itself" [Core] [Rev] M li_08;
    "LI-09" "a spoilt cursor gives a full list" [Core] [Rev] M li_09;
}

pub(super) fn ids(machines: &[Machine]) -> BTreeSet<String> {
    machines.iter().map(|machine| machine.id.clone()).collect()
}

/// A response is a set.
pub(super) fn unique(list: &MachineList) -> Outcome<BTreeSet<String>> {
    let ids = ids(&list.machines);
    ensure!(ids.len() == list.machines.len(), "a List holds a machine twice");
    Ok(ids)
}

async fn li_01(t: Case) -> Outcome {
    use State::{Configured, Idle, Speculative};
    // So that all three states are there.
    t.idle().await?;
    t.configured().await?;
    unique(&t.list(Listing::default()).await?)?;
    let mut union = BTreeSet::new();
    for state in [Speculative, Idle, Configured] {
        let list = t.list(Listing::of(&[state])).await?;
        for machine in &list.machines {
            let shown = state_name(machine.state);
            ensure!(
                machine.state() == state,
                "List of {state:?} holds {:?} in {shown}",
                machine.id
            );
        }
        union.extend(unique(&list)?);
    }
    let all = unique(&t.list(Listing::of(&[Speculative, Idle, Configured])).await?)?;
    ensure!(
        all == union,
        "List of three states holds {} machines, their union {}",
        all.len(),
        union.len()
    );
    Ok(())
}

async fn li_02(t: Case) -> Outcome {
    let all = unique(&t.list(Listing::default().max(0)).await?)?;
    ensure!(!all.is_empty(), "List without a cap is empty");
    for max in 1..=3 {
        let page = unique(&t.list(Listing::default().max(max)).await?)?;
        let count = page.len();
        ensure!(count <= max as usize, "List of at most {max} holds {count}");
        ensure!(count > 0, "List of at most {max} is empty");
        ensure!(page.is_subset(&all), "List of at most {max} holds machines that List does not");
    }
    Ok(())
}

/// Changes one machine and lets it rest.
async fn change(t: &Case) -> Outcome<String> {
    if t.gates().slot { t.idle().await } else { t.configured().await }
}

async fn li_03(t: Case) -> Outcome {
    t.calm().await?;
    let before = t.head().await?;
    let m = change(&t).await?;
    let after = t.head().await?;
    ensure!(before != after, "the revision did not change with a machine");
    let delta = t.list(Listing::default().since(&before)).await?;
    ensure!(unique(&delta)?.contains(&m), "the delta lacks {m:?}");
    Ok(())
}

async fn li_04(t: Case) -> Outcome {
    t.calm().await?;
    change(&t).await?;
    let head = t.head().await?;
    // Reads change nothing.
    t.fleet().await?;
    let delta = t.list(Listing::default().since(&head)).await?;
    ensure!(delta.machines.is_empty(), "the delta at head holds {:?}", ids(&delta.machines));
    let again = t.list(Listing::default().since(&delta.revision)).await?;
    ensure!(again.machines.is_empty(), "the second delta at head is not empty");
    Ok(())
}

async fn li_05(t: Case) -> Outcome {
    t.calm().await?;
    let mut cursors = vec![t.head().await?];
    let mut changed = Vec::new();
    for _ in 0..4 {
        changed.push(change(&t).await?);
        cursors.push(t.head().await?);
    }
    let distinct: BTreeSet<_> = cursors.iter().collect();
    ensure!(distinct.len() == cursors.len(), "five revisions are not distinct: {cursors:?}");
    for (place, cursor) in cursors.iter().enumerate() {
        let delta = unique(&t.list(Listing::default().since(cursor)).await?)?;
        for m in &changed[place..] {
            ensure!(delta.contains(m), "the delta from cursor {place} lacks {m:?}");
        }
        for m in &changed[..place] {
            ensure!(!delta.contains(m), "the delta from cursor {place} repeats {m:?}");
        }
    }
    Ok(())
}

/// The cursor must give a full list, and no error.
async fn is_full(t: &Case, cursor: &[u8], what: &str) -> Outcome {
    let all = unique(&t.list(Listing::default()).await?)?;
    let list = unique(&t.list(Listing::default().since(cursor)).await?)?;
    ensure!(list == all, "a cursor of {what} gives {} of {} machines", list.len(), all.len());
    Ok(())
}

async fn li_06(t: Case) -> Outcome {
    is_full(&t, &[0], "one NUL").await?;
    is_full(&t, b"", "nothing").await?;
    is_full(&t, b"not a cursor", "text").await?;
    is_full(&t, &[0xff, 0x00, 0xfe, 0x80, 0x01], "bytes").await?;
    let junk: Vec<u8> = t.random(|random| (0..4096).map(|_| random.draw() as u8).collect());
    is_full(&t, &junk, "4 KiB junk").await
}

async fn li_07(t: Case) -> Outcome {
    t.calm().await?;
    let start = t.head().await?;
    let mut changed = BTreeSet::new();
    for _ in 0..5 {
        changed.insert(change(&t).await?);
    }
    let whole = unique(&t.list(Listing::default().since(&start)).await?)?;
    ensure!(changed.is_subset(&whole), "the delta lacks some of five changes");
    let (mut cursor, mut seen) = (start, BTreeSet::new());
    for _ in 0..10 {
        let page = t.list(Listing::default().since(&cursor).max(2)).await?;
        let page_ids = unique(&page)?;
        ensure!(page_ids.len() <= 2, "a page of 2 holds {}", page_ids.len());
        ensure!(page_ids.is_subset(&whole), "a page holds machines that the delta does not");
        if page_ids.is_empty() {
            break;
        }
        ensure!(page_ids.is_disjoint(&seen), "a page repeats a machine");
        seen.extend(page_ids);
        cursor = page.revision;
    }
    if t.gates().page {
        ensure!(seen == whole, "the pages hold {} of {} changes", seen.len(), whole.len());
    }
    Ok(())
}

async fn li_08(t: Case) -> Outcome {
    t.calm().await?;
    change(&t).await?;
    let head = t.head().await?;
    for _ in 0..3 {
        sleep(Duration::from_millis(750)).await;
        let delta = t.list(Listing::default().since(&head)).await?;
        ensure!(
            delta.machines.is_empty(),
            "without a call these changed: {:?}",
            ids(&delta.machines)
        );
    }
    Ok(())
}

async fn li_09(t: Case) -> Outcome {
    let cursor = t.head().await?;
    let m = change(&t).await?;
    let exact = unique(&t.list(Listing::default().since(&cursor)).await?)?;
    ensure!(exact.contains(&m), "the exact cursor misses {m:?}");
    for tail in [&b"!"[..], b"~", &[0x00, 0xff]] {
        is_full(&t, &[&cursor, tail].concat(), &format!("a cursor with {tail:?} added")).await?;
    }
    let all = ids(&t.fleet().await?);
    let mut flipped = cursor.clone();
    if let Some(byte) = flipped.first_mut() {
        *byte ^= 1;
    }
    let list = unique(&t.list(Listing::default().since(&flipped)).await?)?;
    ensure!(list.is_subset(&all), "a flipped bit makes unknown machines");
    Ok(())
}
