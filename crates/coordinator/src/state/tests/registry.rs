use std::collections::BTreeMap;

use super::*;

fn update(id: &str, epoch: i64, instance: u64, shared: bool) -> Command {
    Command::UpdateShard { id: id.into(), address: "new:1".into(), epoch, instance, shared }
}

fn quota(slices: &[(&str, i32)]) -> Command {
    Command::SetQuota {
        provider: "ec2".into(),
        region: "eu".into(),
        per_shard: slices.iter().map(|&(shard, slice)| (shard.into(), slice)).collect(),
    }
}

fn provider(name: &str, address: &str) -> Command {
    Command::UpsertProvider { name: name.into(), address: address.into(), region: "eu".into() }
}

fn replica(max_kind: u32) -> Command {
    Command::UpsertReplica {
        node_id: "node-1".into(),
        incarnation: 9,
        raft_address: "n1:7791".into(),
        grpc_address: "n1:7790".into(),
        max_kind,
    }
}

#[test]
fn kind_1_add_shard() {
    let mut world = World::default();
    assert_eq!(world.refused(&add_shard("", true)), Refused::EmptyShardId);
    assert_eq!(world.touches(&add_shard("a", true)), ["a"]);
    assert_eq!(world.refused(&add_shard("a", false)), Refused::ShardExists("a".into()));
    let shard = world.state.shard("a").unwrap();
    assert_eq!((shard.address.as_str(), shard.registered_at, shard.shared), ("a:7780", 7, true));
}

#[test]
fn kind_2_remove_shard_takes_all_that_names_it() {
    let mut world = World::new();
    assert_eq!(world.refused(&remove("z")), Refused::ShardNotFound("z".into()));
    world.ok(&bind("k", "a"));
    world.ok(&bind("other", "b"));
    world.ok(&assign("1", "a"));
    world.ok(&assign("2", "b"));
    // a has not let go of 3, which is b's to be; b not of 4, which is a's to be.
    world.ok(&assign("3", "a"));
    world.ok(&move_domain("3", "a", "b"));
    world.ok(&assign("4", "b"));
    world.ok(&move_domain("4", "b", "a"));
    world.ok(&quota(&[("a", 1), ("b", 2)]));
    assert_eq!(world.touches(&remove("a")), ["b"], "3 is b's now, 4 waits for b");
    assert!(world.state.shard("a").is_none());
    assert_eq!(world.row(&Key::Cluster("k".into())), "none");
    assert_eq!(world.row(&Key::Cluster("other".into())), "b");
    let rows = ["1", "2", "3", "4"].map(|value| world.row(&zone_key(value)));
    assert_eq!(rows, ["none", "b", "b", "-<b"]);
    assert_eq!(world.state.quotas.values().next().unwrap(), &BTreeMap::from([("b".into(), 2)]));
    world.ok(&remove("b"));
    assert_eq!(world.state.quotas.len(), 1, "no row would be no limit");
    assert_eq!(world.state.ownership_key, None);
}

#[test]
fn kind_2_a_shard_that_returns_owns_nothing() {
    let mut world = World::new();
    world.ok(&assign("1", "a"));
    world.ok(&remove("a"));
    assert_eq!(world.touches(&add_shard("a", true)), ["a"], "it is told so");
    assert!(world.state.assignment_of(&"a".into(), "").domains.is_empty());
}

#[test]
fn kind_6_set_quota() {
    let mut world = World::new();
    assert_eq!(world.refused(&quota(&[("a", 1), ("z", 1)])), Refused::ShardNotFound("z".into()));
    let negative = Refused::NegativeSlice { shard: "b".into(), slice: -1 };
    assert_eq!(world.refused(&quota(&[("a", 1), ("b", -1)])), negative);
    assert_eq!(world.touches(&quota(&[("a", 0), ("b", 5)])).len(), 4, "a row limits all");
    world.no_op(&quota(&[("a", 0), ("b", 5)]));
    world.ok(&quota(&[("c", 1)]));
    assert_eq!(world.state.quotas.values().next().unwrap().len(), 1, "replaces the whole row");
    world.ok(&quota(&[]));
    assert!(world.state.quotas.is_empty());
    world.no_op(&quota(&[]));
}

#[test]
fn kinds_7_and_17_providers() {
    let mut world = World::new();
    assert_eq!(world.refused(&provider("", "x")), Refused::EmptyProviderName);
    assert_eq!(world.touches(&provider("ec2", "p:9000")).len(), 4);
    world.no_op(&provider("ec2", "p:9000"));
    world.ok(&provider("ec2", "q:9000"));
    assert_eq!(world.state.providers["ec2"].address, "q:9000");
    let remove = Command::RemoveProvider { name: "ec2".into() };
    assert_eq!(world.touches(&remove).len(), 4);
    world.no_op(&remove);
}

#[test]
fn kind_8_update_shard() {
    let mut world = World::new();
    assert_eq!(world.refused(&update("z", 1, 1, false)), Refused::ShardNotFound("z".into()));
    world.ok(&update("own", 5, 1, false));
    let stale = Refused::StaleEpoch { shard: "own".into(), known: 5 };
    for (epoch, instance, refused) in
        [(4, 1, true), (5, 2, true), (5, 1, false), (6, 2, false), (0, 2, true)]
    {
        let mut world = world.clone();
        if refused {
            assert_eq!(world.refused(&update("own", epoch, instance, false)), stale);
        } else {
            world.ok(&update("own", epoch, instance, false));
            let shard = world.state.shard("own").unwrap();
            assert_eq!((shard.epoch, shard.instance), (epoch, instance));
        }
    }
    // Unspecified epochs say nothing about which process is the newer.
    let mut unspecified = World::new();
    unspecified.ok(&update("own", 0, 1, false));
    unspecified.ok(&update("own", 0, 2, false));
    assert_eq!(world.state.shard("own").unwrap().address, "new:1");
    assert_eq!(world.touches(&update("own", 5, 1, true)), ["own"], "it gets Assignments now");
    assert!(world.touches(&update("own", 6, 1, false)).is_empty());
    assert!(world.state.shard("own").unwrap().shared, "never falls");
    world.no_op(&update("own", 6, 1, false));
}

#[test]
fn kind_9_batch() {
    let mut world = World::default();
    let batch = |commands: Vec<Command>| Command::Batch { commands };
    let many = vec![remove("z"); MAX_BATCH + 1];
    assert_eq!(world.refused(&batch(many)), Refused::BatchTooLarge(1_001));
    let nested = batch(vec![add_shard("a", true), batch(vec![])]);
    assert_eq!(world.refused(&nested), Refused::NestedBatch);
    let effect =
        world.ok(&batch(vec![add_shard("a", true), add_shard("a", true), assign("1", "a")]));
    let Effect::Batch(results) = effect else { panic!("{effect:?}") };
    assert_eq!(results[0], Ok(Effect::Changed));
    assert_eq!(results[1], Err(Refused::ShardExists("a".into())));
    assert!(matches!(results[2], Ok(Effect::DomainMoved { .. })), "in order");
    assert_eq!(world.state.shard("a").unwrap().changed_at, world.index, "one index for all");
    assert_eq!(world.state.kind_in_use, 9);
    assert_eq!(batch(vec![move_domain("1", "a", "b"), remove("a")]).kind(), 19);
    world.ok(&batch(vec![remove("z"); MAX_BATCH]));
}

#[test]
fn kind_10_init_fleet() {
    let mut world = World::default();
    let init = |fleet: &str| Command::InitFleet { fleet_id: fleet.into() };
    assert_eq!(world.refused(&init("")), Refused::EmptyFleetId);
    world.ok(&init("u.00000000"));
    world.no_op(&init("u.00000000"));
    assert_eq!(world.refused(&init("v.00000000")), Refused::OtherFleet("u.00000000".into()));
}

#[test]
fn kinds_12_and_13_replicas_know_what_the_log_holds() {
    let mut world = World::new();
    let remove = Command::RemoveReplica { node_id: "node-1".into() };
    world.no_op(&remove);
    assert_eq!(world.state.kind_in_use, 13);
    world.ok(&replica(13));
    world.no_op(&replica(13));
    world.ok(&Command::EndTransfer { id: "t".into() });
    assert!(matches!(world.refused(&replica(15)), Refused::ReplicaTooOld { in_use: 16, .. }));
    world.ok(&replica(16));
    // Refused, but in the log: whoever joins must read it.
    world.refused(&Command::MoveCluster { cluster: "k".into(), from: "a".into(), to: "b".into() });
    assert!(matches!(world.refused(&replica(22)), Refused::ReplicaTooOld { in_use: 23, .. }));
    world.ok(&replica(23));
    world.ok(&remove);
    assert!(world.state.replicas.is_empty());
}

/// A row limits every shard of its provider; no row limits nobody.
#[test]
fn quota_slices_follow_the_address_that_was_reported() {
    let mut world = World::new();
    world.ok(&provider("ec2", "p:9000"));
    world.ok(&quota(&[("a", 3)]));
    let slices = |shard: &str, address: &str| {
        let slices = world.state.assignment_of(&shard.into(), address).quota_slices;
        slices.iter().map(|slice| slice.slice).collect::<Vec<_>>()
    };
    assert_eq!(slices("a", "p:9000"), [3]);
    assert_eq!(slices("b", "p:9000"), [0]);
    assert!(slices("a", "q:9000").is_empty());
    assert!(slices("a", "").is_empty());
}
