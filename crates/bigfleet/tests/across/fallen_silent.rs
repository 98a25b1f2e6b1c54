//! Whoever takes part in a transfer falls silent for long (coordinator chapter §16). Tests
//! begin in the order of their names: what takes longest is to be the first.

use std::{fs, time::Duration};

use bigfleet_scripted::member::Standing;

use crate::{
    kills::{QUICK, Step},
    neighbourhood::{Neighbourhood, REPLICAS, TWO, met, whole},
    rig::process::{PATIENCE, until, until_or},
    stock,
};

/// A leader asks a donor for two minutes, and the next one begins anew.
const GIVES_UP: Duration = Duration::from_secs(400);

/// Two machines of the first shard, and four of a type that only the second has.
fn provider() -> Vec<String> {
    let machines = [stock::idle("own", 2, &["zone-a"]), stock::idle("lent", 4, &["zone-b"])];
    [stock::zones(2), machines.into()].concat()
}

/// The recipient dies with a machine that it was given and did not use: nobody else has it,
/// how long this takes is told, and once the shard is removed for good it goes home.
#[tokio::test]
async fn fault_recipient_silent_mid_transfer() {
    let mut all = Neighbourhood::open(&provider(), QUICK, TWO).await;
    let witness = all.witness();
    let needy = all.shard("one").member("c", &whole().instance_types(&["own"]), 1);
    needy.wait_for("met demand", met, PATIENCE).await.unwrap();
    all.tap.keep_changes(true);
    needy.cluster().deploy(&whole().instance_types(&["lent"]), 1);
    let moving = all.begins_to_move("lent").await;
    all.reaches(&moving, Step::Received).await;
    all.kill("one").await;
    all.tap.lose();
    drop(needy);

    let donor = all.shard("two");
    let wants_all = donor.member("d", &whole().instance_types(&["lent"]), 4);
    let but_one = |now: &Standing| now.machines == 3;
    wants_all.wait_for("all but the one", but_one, PATIENCE).await.unwrap();
    let reported = donor.reported().await;
    until("a donor that could have taken it", async || {
        (donor.reported().await > reported + 10.0).then_some(())
    })
    .await;
    let open = all.transfers().await.unwrap();
    let [lent] = &open[..] else { panic!("{open:?}") };
    assert_eq!((&lent.transfer_id, &*lent.phase), (&moving.id, "moved"));
    let [machine] = &lent.machine_ids[..] else { panic!("{lent:?}") };
    let calls = all.tap.calls();
    assert!(!calls.iter().any(|call| call.shard == "two" && call.machine == *machine), "{calls:?}");
    assert!(but_one(&wants_all.standing()));

    // Who looks sees it, and how long it has been so.
    let shown = all.ctl(&["list-transfers"]).await;
    let row = shown.lines().find(|line| line.contains(&moving.id)).expect("it is listed");
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells[1..6], ["idle", "moved", "two", "one", "1"], "{shown}");
    assert_ne!(cells[8], "0s", "{shown}");
    for (gauge, with) in [("transfers", &["moved"][..]), ("transfer_machines", &[][..])] {
        let gauge = format!("bigfleet_coordinator_{gauge}");
        // Every replica tells what is replicated.
        until("a gauge of it", async || {
            (all.metric(&gauge, with).await == REPLICAS as f64).then_some(())
        })
        .await;
    }

    // The operator's word: it is gone, and its volume is empty.
    fs::remove_dir_all(all.shard("one").site.path("data")).unwrap();
    all.ctl(&["remove-shard", "--shard", "one", "--force", "--yes"]).await;
    let home = |now: &Standing| met(now) && now.machines == 4;
    wants_all.wait_for("the one that came home", home, PATIENCE).await.unwrap();
    assert!(all.transfers().await.unwrap().is_empty());
    all.tap.nobody_meddles();
    witness.end().await;
}

/// The donor dies when it has let go of a machine and has not said so: it is given up after
/// its time, nobody has the machine meanwhile, and on its return the donor has it again.
#[tokio::test]
async fn fault_donor_silent_mid_transfer() {
    let mut all = Neighbourhood::open(&provider(), QUICK, TWO).await;
    let witness = all.witness();
    let needy = all.shard("one").member("c", &whole().instance_types(&["own"]), 1);
    needy.wait_for("met demand", met, PATIENCE).await.unwrap();
    // From its letting go to its saying so it takes a while.
    all.kill("two").await;
    all.start_reporting("two", "10s");
    let lacking = needy.cluster().deploy(&whole().instance_types(&["lent"]), 1);
    let moving = all.begins_to_move("lent").await;
    all.reaches(&moving, Step::LetGo).await;
    all.kill("two").await;
    assert_eq!(all.step(&moving).await, Some(Step::LetGo), "it had no time to say so");
    let out = all.shard("two").holdings().out.into_values();
    let let_go: Vec<String> = out.flat_map(|out| out.machines).map(|id| id.to_string()).collect();
    assert_eq!(let_go.len(), 1);

    let what = || "a transfer that is given up".to_owned();
    let mut given_up = async || all.transfers().await?.is_empty().then_some(());
    until_or(&what, GIVES_UP, &mut given_up).await;
    let name = "bigfleet_coordinator_rebalance_moves_total";
    until("it is counted", async || {
        (all.metric(name, &["outcome=\"given_up\""]).await >= 1.0).then_some(())
    })
    .await;
    let calls = all.tap.calls();
    assert!(!calls.iter().any(|call| let_go.contains(&call.machine)), "{calls:?}");
    let owners = all.owners().await;
    assert!(let_go.iter().all(|machine| owners[machine].is_empty()), "{owners:?}");

    needy.cluster().scale(lacking, 0);
    all.start("two");
    all.until_settled().await;
    let owners = all.owners().await;
    assert!(let_go.iter().all(|machine| owners[machine] == ["two"]), "{owners:?}");
    needy.cluster().scale(lacking, 1);
    let more = |now: &Standing| met(now) && now.machines == 2;
    needy.wait_for("a machine after all", more, PATIENCE).await.unwrap();
    all.until_settled().await;
    all.tap.nobody_meddles();
    witness.end().await;
}
