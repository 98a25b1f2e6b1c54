//! Calls and words that come late, and processes that outlive their time (coordinator chapter
//! §16, shard chapter §11).

use std::fs;

use bigfleet_scripted::member::Standing;
use tonic::Code;

use crate::{
    neighbourhood::{Neighbourhood, THREE, TWO, met, whole},
    rig::process::{PATIENCE, get, until},
    sharing::{NO_LOANS, half, zones},
    site::Site,
    stock::four_and_four,
};

/// A shard is killed and what it asked for has not arrived yet; its domain moves at once.
/// The next process lets go when the provider has heard its epoch and not before, and what
/// arrives from then on is refused.
#[tokio::test]
async fn fault_calls_of_a_killed_shard_arrive_when_its_domain_has_moved() {
    let mut all = Neighbourhood::open(&four_and_four(2), NO_LOANS, TWO).await;
    let witness = all.witness();
    all.tap.keep_changes(true);
    let member = all.shard("one").member("c", &half(), 12);
    until("calls on their way", async || (all.tap.calls().len() >= 4).then_some(())).await;
    all.kill("one").await;
    let late = all.tap.calls();
    all.move_domain("zone-a", "one", "two").await;

    all.tap.keep_words(true);
    all.start("one");
    until("reports of the next process", async || {
        (all.shard("one").reported().await >= 4.0).then_some(())
    })
    .await;
    let waits = all.on_the_way().await.unwrap().releasing;
    assert_eq!(waits.len(), 1, "nobody has it while the dead one's calls may arrive");
    let shown = all.ctl(&["list-releasing"]).await;
    let row = shown.lines().nth(1).expect("it is listed");
    assert!(row.contains("zone=zone-a") && row.contains("one") && row.contains("two"), "{shown}");

    all.tap.keep_words(false);
    all.until_settled().await;
    assert!(all.shard("two").holdings().held().is_some_and(|held| held.domains.len() == 2));
    all.tap.keep_changes(false);
    until("an answer to each of them", async || {
        let answered = all.tap.calls();
        answered[..late.len()].iter().all(|call| call.code.is_some()).then_some(())
    })
    .await;
    for call in &all.tap.calls()[..late.len()] {
        assert_eq!(call.code, Some(Code::FailedPrecondition), "{call:?}");
    }
    all.move_domain("zone-b", "two", "one").await;
    member.wait_for("met demand", met, PATIENCE).await.unwrap();
    all.until_settled().await;
    witness.end().await;
}

/// A domain goes from A to B and on to C while A, which is dead, may still be at work on it:
/// C waits for A, and B never has it.
#[tokio::test]
async fn fault_domain_moved_on_before_it_was_let_go() {
    let mut all = Neighbourhood::open(&four_and_four(3), NO_LOANS, THREE).await;
    let witness = all.witness();
    all.kill("one").await;
    all.move_domain("zone-a", "one", "two").await;
    all.move_domain("zone-a", "two", "three").await;
    // Both would use it.
    let second = all.shard("two").member("c2", &whole(), 12);
    let third = all.shard("three").member("c3", &whole(), 12);
    for (shard, member) in [("two", &second), ("three", &third)] {
        let own = |now: &Standing| now.machines == 8;
        member.wait_for("all of its own zone", own, PATIENCE).await.unwrap();
        let (shard, reported) = (all.shard(shard), all.shard(shard).reported().await);
        until("reports that could be taken for a release", async || {
            (shard.reported().await > reported + 4.0).then_some(())
        })
        .await;
    }
    let waits = all.on_the_way().await.unwrap().releasing;
    let [row] = &waits[..] else { panic!("{waits:?}") };
    assert_eq!((&*row.from_shard_id, &*row.to_shard_id), ("one", "three"));
    assert_eq!(all.zones_of("three").await, zones(&["zone-c"]));

    all.start("one");
    third.wait_for("those of the other zone", met, PATIENCE).await.unwrap();
    all.until_settled().await;
    assert_eq!(all.zones_of("three").await, zones(&["zone-a", "zone-c"]));
    assert_eq!(all.zones_of("two").await, zones(&["zone-b"]));
    assert!(!met(&second.standing()));
    witness.end().await;
}

/// A second process with the id of the first, on a copy of its volume. Without a coordinator
/// the provider stops the older one; with one, every report of its is refused.
#[tokio::test]
async fn fault_two_processes_with_one_shard_id() {
    let mut all = Neighbourhood::open(&four_and_four(2), NO_LOANS, TWO).await;
    let member = all.shard("one").member("c", &half(), 4);
    member.wait_for("met demand", met, PATIENCE).await.unwrap();
    let [older] = all.tap.announced("one").into_iter().collect::<Vec<_>>()[..] else {
        panic!("one process, one epoch");
    };
    all.kill_coordinators().await;
    let twin = Site::new();
    let (from, to) = (all.shard("one").site.path("data"), twin.path("data"));
    fs::create_dir(&to).unwrap();
    for file in ["epoch", "assignment"] {
        fs::copy(from.join(file), to.join(file)).unwrap();
    }
    let mut second = all.start_in(&twin, "one", "500ms");
    until("the word of the second", async || {
        all.tap.announced("one").contains(&(older + 1)).then_some(())
    })
    .await;

    let before = all.tap.calls().len();
    member.cluster().scale(0, 8);
    let fenced = async |site: &Site| site.metric("bigfleet_shard_fenced").await;
    until("the first is stopped", async || {
        fenced(&all.shard("one").site).await.filter(|fenced| *fenced == 1.0)
    })
    .await;
    let since = all.tap.calls().split_off(before);
    let of_the_first: Vec<_> = since.iter().filter(|call| call.epoch == older).collect();
    assert!(!of_the_first.is_empty(), "it tried: {since:?}");
    for call in &of_the_first {
        assert_eq!(call.code, Some(Code::FailedPrecondition), "{call:?}");
    }
    assert_eq!(all.serving("c").await.len(), 2);

    all.start_coordinators().await;
    let refused = async || all.metric("bigfleet_coordinator_stale_epoch_total", &[]).await;
    until("a report that is refused", async || (refused().await > 0.0).then_some(())).await;
    let reported = all.shard("one").reported().await;
    assert!(second.is_running(), "{}", second.tail());
    assert_eq!(fenced(&twin).await, Some(0.0), "{}", second.tail());
    // Its cluster goes where it is served.
    {
        let mut operator = member.operator().await;
        operator.set_addr(&twin.shard);
        operator.abort().await;
    }
    member.wait_for("the rest of its machines", met, PATIENCE).await.unwrap();
    let first = all.shard("one");
    assert_eq!(first.reported().await, reported, "none of its reports is taken");
    assert_eq!(get(&first.site.shard_http, "/readyz").await.unwrap().0, 503);
    assert_eq!(get(&first.site.shard_http, "/healthz").await.unwrap().0, 200, "a human decides");
    assert!(
        all.tap.calls()[before..]
            .iter()
            .all(|call| { call.epoch != older || call.code == Some(Code::FailedPrecondition) })
    );
}
