//! Everybody at once, and everybody elsewhere.

use crate::{
    fleet::{Fleet, Place, REPLICAS},
    named::{self, Named},
    rig::{ports::port, process::until},
};

#[tokio::test]
async fn replicas_that_move_one_by_one_are_found() {
    let mut fleet = Fleet::open().await;
    fleet.client().write("kept").await.unwrap();
    let fleet_id = fleet.until_open().await;
    for replica in 0..REPLICAS {
        fleet.process(replica).signal("TERM").await;
        assert!(fleet.process(replica).ended().await.success());
        let id = fleet.places[replica].id.clone();
        fleet.places[replica] = Place { id, grpc: port(), raft: port(), http: port() };
        fleet.start(replica);
        assert_eq!(fleet.until_open().await, fleet_id);
    }
    assert_eq!(fleet.client().written().await.unwrap(), ["kept"]);
}

/// Where a replica is in a generation of addresses.
fn host(generation: usize, replica: usize) -> String {
    format!("127.0.{}.{}", generation + 1, replica + 1)
}

#[tokio::test]
async fn a_full_restart_with_all_addresses_changed_re_forms() {
    if !named::possible().await {
        return;
    }
    let hosts = |replica| (0..3).map(|generation| host(generation, replica)).collect();
    let mut named = Named::new(Fleet::new(), hosts);
    let mut fleets = Vec::new();
    for generation in 0..3 {
        for replica in 0..REPLICAS {
            named.start(replica, &host(generation, replica), |one| host(generation, one));
        }
        let client = named.client(|replica| host(generation, replica));
        let fleet_id = until("an open fleet", async || {
            for process in named.fleet.replicas.iter_mut().flatten() {
                assert!(process.is_running(), "{}", process.tail());
            }
            client.write(&format!("w-{generation}")).await.ok()?;
            client.status(0).await.ok().map(|status| status.fleet_id)
        })
        .await;
        fleets.push(fleet_id);
        let written = client.written().await.unwrap();
        assert_eq!(written, ["w-0", "w-1", "w-2"][..=generation]);
        for replica in 0..REPLICAS {
            named.fleet.kill(replica).await;
        }
    }
    fleets.dedup();
    assert_eq!(fleets.len(), 1, "{fleets:?}");
}
