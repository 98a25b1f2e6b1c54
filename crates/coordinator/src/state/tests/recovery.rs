use bigfleet_model::FleetId;

use super::*;

fn holdings(domains: &[&str], clusters: &[&str], machines: &[(&str, &str)]) -> Holdings {
    Holdings {
        domains: domains.iter().map(|value| zone(value)).collect(),
        clusters: clusters.iter().map(|&cluster| cluster.into()).collect(),
        machines_in: machines
            .iter()
            .map(|&(transfer, machine)| MachineIn {
                transfer: transfer.into(),
                machine: machine.into(),
                home: zone("1"),
                from: "gone".into(),
            })
            .collect(),
    }
}

fn adopt(shard: &str, holdings: Holdings) -> Command {
    Command::AdoptHoldings { shard: shard.into(), holdings }
}

/// A backup with transfers and marks, just restored.
fn restored() -> World {
    let mut world = World::new();
    world.ok(&assign("1", "a"));
    world.ok(&assign("2", "b"));
    world.ok(&bind("k", "a"));
    world.ok(&begin("t", "a", "b"));
    world.ok(&assign("3", "c"));
    world.ok(&move_domain("3", "c", "b"));
    world.state.begin_recovery(&FleetId::new("u", 5), 1_700_000_000_000);
    world
}

const CONFIRM: Command = Command::ConfirmRestore {};

#[test]
fn a_restore_begins_a_generation() {
    let world = restored();
    assert_eq!(world.state.fleet_id(), Some("u.00000005"));
    assert!(world.state.recovering() && world.state.transfers().is_empty());
    assert_eq!(world.state.not_adopted(), ["a".into(), "b".into(), "c".into()]);
}

#[test]
fn while_recovering_nothing_changes_hands_by_command() {
    let mut world = restored();
    let unassign = Command::UnassignDomain { domain: zone("1") };
    let move_cluster =
        Command::MoveCluster { cluster: "k".into(), from: "a".into(), to: "b".into() };
    for command in [assign("9", "a"), unassign, move_domain("1", "a", "b"), move_cluster] {
        assert_eq!(world.refused(&command), Refused::Recovering);
    }
    world.ok(&Command::UpsertProvider {
        name: "p".into(),
        address: "p:1".into(),
        region: String::new(),
    });
    world.ok(&remove("c"));
    assert_eq!(world.row(&zone_key("3")), "b");
}

#[test]
fn kind_22_adopt_holdings() {
    let mut world = World::new();
    assert_eq!(world.refused(&adopt("a", holdings(&[], &[], &[]))), Refused::NotRecovering);
    let mut world = restored();
    let unknown = adopt("z", holdings(&[], &[], &[]));
    assert_eq!(world.refused(&unknown), Refused::ShardNotFound("z".into()));
    // a reports without 1; b holds it, over the backup's row.
    assert_eq!(world.ok(&adopt("a", holdings(&[], &["k"], &[]))), Effect::Adopted { conflicts: 0 });
    assert_eq!(world.row(&zone_key("1")), "a", "rows nobody holds go to the backup's owner");
    let machines = [("old", "m"), ("old", "n")];
    let of_b = adopt("b", holdings(&["1", "2"], &["k", "new"], &machines));
    assert_eq!(world.ok(&of_b), Effect::Adopted { conflicts: 1 }, "k stays with a");
    assert_eq!(world.row(&Key::Cluster("k".into())), "a");
    assert_eq!(world.row(&Key::Cluster("new".into())), "b");
    assert_eq!(world.row(&zone_key("1")), "b");
    assert_eq!(world.row(&zone_key("3")), "b<c", "c has not been heard");
    let moved = &world.state.transfers()["old"];
    assert_eq!(
        (&moved.to, moved.phase, moved.machine_ids.len()),
        (&"b".into(), TransferPhase::Moved, 2)
    );
    // c does not hold 3: its mark goes. What b received is not c's.
    let of_c = adopt("c", holdings(&["1"], &[], &[("other", "m"), ("old", "o")]));
    assert_eq!(world.ok(&of_c), Effect::Adopted { conflicts: 3 });
    assert_eq!(world.row(&zone_key("3")), "b");
    assert_eq!(world.row(&zone_key("1")), "b");
    assert!(world.state.not_adopted().is_empty());
}

#[test]
fn kind_22_said_twice_is_said_once() {
    let mut world = restored();
    let command = adopt("b", holdings(&["1", "2"], &["new"], &[("old", "m")]));
    world.ok(&command);
    let once = world.state.clone();
    assert_eq!(world.ok(&command), Effect::Adopted { conflicts: 0 });
    assert_eq!(world.state.transfers(), once.transfers());
    assert!(world.state.rows().eq(once.rows()));
}

/// The backup is from before the first domain.
#[test]
fn kind_22_brings_the_ownership_key() {
    let mut world = World::new();
    world.state.begin_recovery(&FleetId::new("u", 5), 1_700_000_000_000);
    world.ok(&adopt("a", holdings(&["1"], &[], &[])));
    assert_eq!(world.state.ownership_key(), Some(&"zone".into()));
}

#[test]
fn a_shard_removed_while_recovering_frees_what_it_held() {
    let mut world = restored();
    world.ok(&adopt("b", holdings(&["1"], &[], &[])));
    world.ok(&remove("b"));
    assert_eq!(world.ok(&adopt("c", holdings(&["1"], &[], &[]))), Effect::Adopted { conflicts: 0 });
    assert_eq!(world.row(&zone_key("1")), "c");
}

#[test]
fn kind_21_confirm_restore() {
    let mut world = restored();
    world.ok(&adopt("a", holdings(&["1"], &[], &[])));
    let missing = Refused::HoldingsMissing(vec!["b".into(), "c".into()]);
    assert_eq!(world.refused(&CONFIRM), missing);
    world.ok(&adopt("b", holdings(&[], &[], &[])));
    world.ok(&remove("c"));
    assert_eq!(world.touches(&CONFIRM), ["a", "b", "own"]);
    assert!(!world.state.recovering() && !world.state.adopted("a"));
    world.no_op(&CONFIRM);
}

#[test]
fn kind_21_names_every_key_that_changed_hands() {
    let mut world = restored();
    world.ok(&adopt("a", holdings(&["2"], &["k"], &[])));
    world.ok(&adopt("c", holdings(&["3", "9"], &[], &[("old", "m")])));
    // What goes through other hands and comes back has not changed.
    world.ok(&adopt("b", holdings(&["1"], &["new"], &[])));
    world.ok(&remove("b"));
    world.ok(&adopt("a", holdings(&["1", "2"], &["k"], &[])));
    let Effect::Confirmed(recovered) = world.ok(&CONFIRM) else { panic!("not confirmed") };
    let hands = |key: Key, from: &str, to: &str| {
        let shard = |id: &str| (!id.is_empty()).then(|| ShardId::from(id));
        ChangedHands { key, from: shard(from), to: shard(to) }
    };
    let changed = vec![
        hands(zone_key("2"), "b", "a"),
        hands(zone_key("3"), "b", "c"),
        hands(zone_key("9"), "", "c"),
    ];
    let expected = Recovered {
        backup_unix_ms: 1_700_000_000_000,
        shards: 3,
        domains: 4,
        clusters: 1,
        machines: 1,
        changed,
    };
    assert_eq!(*recovered, expected);
}

/// What a removed shard had in the backup, and nobody holds, has changed hands too.
#[test]
fn kind_21_names_what_nobody_has_any_more() {
    let mut world = restored();
    world.ok(&remove("b"));
    world.ok(&remove("c"));
    world.ok(&adopt("a", holdings(&["1"], &["k"], &[])));
    let Effect::Confirmed(recovered) = world.ok(&CONFIRM) else { panic!("not confirmed") };
    let lost = |value| ChangedHands { key: zone_key(value), from: Some("b".into()), to: None };
    assert_eq!(recovered.changed, [lost("2"), lost("3")]);
}
