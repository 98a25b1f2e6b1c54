//! Replicas that lose their disks.

use std::fs;

use crate::{
    fleet::{Fleet, REPLICAS},
    rig::process::until,
};

fn incarnation(fleet: &Fleet, replica: usize) -> String {
    fs::read_to_string(fleet.data_dir(replica).join("incarnation")).unwrap()
}

#[tokio::test]
async fn a_wiped_follower_comes_back_as_a_new_member() {
    let mut fleet = Fleet::open().await;
    let client = fleet.client();
    client.write("kept").await.unwrap();
    let fleet_id = fleet.until_open().await;
    let follower = (fleet.leader().await + 1) % REPLICAS;
    let before = incarnation(&fleet, follower);
    fleet.wipe(follower).await;
    fleet.start(follower);
    assert_eq!(fleet.until_open().await, fleet_id);
    assert_ne!(incarnation(&fleet, follower), before);
    let status = until("the same state at the wiped one", async || {
        let (one, all) = (client.status(follower).await.ok()?, fleet.leader_now(&client).await?);
        let leader = client.status(all).await.ok()?;
        (one.applied_index == leader.applied_index).then_some(one)
    })
    .await;
    assert_eq!(status.voters, ["c-0", "c-1", "c-2"], "its old vote is gone, its new one counts");
    assert_eq!(client.written().await.unwrap(), ["kept"]);
}

#[tokio::test]
async fn replica_0_wiped_joins_and_never_forms_a_second_fleet() {
    let mut fleet = Fleet::open().await;
    let client = fleet.client();
    client.write("kept").await.unwrap();
    let fleet_id = fleet.until_open().await;
    fleet.wipe(0).await;
    // Its names resolve, but for now nobody answers: it must wait, not form.
    fleet.kill(1).await;
    fleet.kill(2).await;
    fleet.start(0);
    until("a wait that says for whom", async || {
        let log = fleet.process(0).log();
        let status = client.status(0).await.ok()?;
        assert_eq!((status.phase, &*status.fleet_id), (0, ""), "{log}");
        log.rsplit("starting").next().filter(|log| log.contains("have not answered")).map(drop)
    })
    .await;
    fleet.start(1);
    // One of two is not "all empty" either.
    until("an answer of the second", async || client.status(1).await.ok()).await;
    assert_eq!(client.status(0).await.unwrap().phase, 0);
    fleet.start(2);
    assert_eq!(fleet.until_open().await, fleet_id);
    assert_eq!(client.written().await.unwrap(), ["kept"]);
}

#[tokio::test]
async fn a_replica_whose_place_was_taken_exits_1() {
    let mut fleet = Fleet::open().await;
    let follower = (fleet.leader().await + 1) % REPLICAS;
    fleet.kill(follower).await;
    let (place, aside) = (fleet.data_dir(follower), fleet.path("aside"));
    fs::rename(&place, &aside).unwrap();
    fleet.start(follower);
    fleet.until_open().await;
    fleet.kill(follower).await;
    fs::rename(&place, fleet.path("newer")).unwrap();
    fs::rename(&aside, &place).unwrap();
    fleet.start(follower);
    let ended = fleet.process(follower).ended().await;
    let said = fleet.process(follower).tail();
    assert_eq!(ended.code(), Some(1), "{said}");
    assert!(said.contains("empty its data directory"), "{said}");
}
