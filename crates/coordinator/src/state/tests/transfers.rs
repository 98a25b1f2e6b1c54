use super::*;

/// `a` holds zone 1, `b` zone 2.
fn world() -> World {
    let mut world = World::new();
    world.ok(&assign("1", "a"));
    world.ok(&assign("2", "b"));
    world
}

fn phase(world: &World, id: &str) -> Option<TransferPhase> {
    world.state.transfers().get(id).map(|transfer| transfer.phase)
}

fn machines(machines: &[TransferMachine]) -> Vec<&str> {
    machines.iter().map(|one| one.machine.as_str()).collect()
}

#[test]
fn kind_14_begin_transfer() {
    let mut world = world();
    assert_eq!(world.refused(&begin("t", "z", "a")), Refused::ShardNotFound("z".into()));
    assert_eq!(world.refused(&begin("t", "a", "z")), Refused::ShardNotFound("z".into()));
    assert_eq!(world.refused(&begin("t", "a", "own")), Refused::NotShared("own".into()));
    assert_eq!(world.refused(&begin("t", "own", "a")), Refused::NotShared("own".into()));
    assert_eq!(world.refused(&begin("t", "a", "a")), Refused::SameShard("a".into()));
    assert_eq!(world.touches(&begin("t", "a", "b")), ["a"]);
    world.no_op(&begin("t", "b", "c"));
    assert_eq!(phase(&world, "t"), Some(TransferPhase::Releasing));
    assert_eq!(world.state.assignment_of(&"a".into(), "").open_transfers, ["t".into()]);
    assert!(world.state.assignment_of(&"b".into(), "").machines_in.is_empty());
}

#[test]
fn kind_15_release_transfer_moves_the_machines() {
    let mut world = world();
    world.no_op(&release("t", "1", &["m"]));
    world.ok(&begin("t", "a", "b"));
    let many: Vec<String> = (0..101).map(|number| number.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(world.refused(&release("t", "1", &many)), Refused::TooManyMachines(101));
    assert_eq!(world.touches(&release("t", "1", &["m", "n"])), ["a", "b"]);
    assert_eq!(phase(&world, "t"), Some(TransferPhase::Moved));
    world.no_op(&release("t", "1", &["o"]));
    let (a, b) =
        (world.state.assignment_of(&"a".into(), ""), world.state.assignment_of(&"b".into(), ""));
    assert_eq!((machines(&a.machines_out), a.open_transfers.len()), (vec!["m", "n"], 0));
    assert_eq!((machines(&b.machines_in), b.machines_out.len()), (vec!["m", "n"], 0));
}

#[test]
fn kind_15_a_release_that_does_not_fit_ends_the_transfer() {
    for (why, home, machine) in [
        ("not the donor's", "2", "m"),
        ("nobody's", "9", "m"),
        ("releasing", "3", "m"),
        ("in another transfer", "1", "taken"),
        ("no machine", "1", ""),
        ("not of the ownership key", "rack", "m"),
    ] {
        let mut world = world();
        world.ok(&assign("3", "b"));
        world.ok(&move_domain("3", "b", "a"));
        let rack = Domain::new("rack", "rack");
        world.ok(&Command::AssignDomain { domain: rack.clone(), shard: "a".into() });
        world.ok(&begin("first", "a", "c"));
        world.ok(&release("first", "1", &["taken"]));
        world.ok(&begin("t", "a", "b"));
        let machine_ids = Some(machine).filter(|machine| !machine.is_empty()).map(Into::into);
        let home = if home == "rack" { rack } else { zone(home) };
        let machine_ids = machine_ids.into_iter().collect();
        let command = Command::ReleaseTransfer { id: "t".into(), home, machine_ids };
        assert_eq!(world.touches(&command), ["a"], "{why}");
        assert_eq!(phase(&world, "t"), None, "{why}");
        assert!(world.state.assignment_of(&"b".into(), "").machines_in.is_empty(), "{why}");
    }
}

#[test]
fn kind_16_end_transfer_only_while_releasing() {
    let mut world = world();
    let end = Command::EndTransfer { id: "t".into() };
    world.no_op(&end);
    world.ok(&begin("t", "a", "b"));
    assert!(world.touches(&end).contains(&"a".to_owned()));
    assert_eq!(phase(&world, "t"), None);
    world.no_op(&release("t", "1", &["m"]));
    world.ok(&begin("u", "a", "b"));
    world.ok(&release("u", "1", &["m"]));
    world.no_op(&Command::EndTransfer { id: "u".into() });
    assert_eq!(phase(&world, "u"), Some(TransferPhase::Moved));
}

#[test]
fn kind_18_settle_takes_machines_out() {
    let mut world = world();
    world.ok(&begin("t", "a", "b"));
    world.ok(&release("t", "1", &["m", "n"]));
    world.no_op(&settle("a", &[("t", "m")]));
    world.no_op(&settle("b", &[("u", "m"), ("t", "o")]));
    assert_eq!(world.touches(&settle("b", &[("t", "m")])), ["a", "b"]);
    assert_eq!(machines(&world.state.assignment_of(&"a".into(), "").machines_out), ["n"]);
    world.ok(&settle("b", &[("t", "n"), ("t", "n")]));
    assert_eq!(phase(&world, "t"), None, "the last one ends it");
}

#[test]
fn machines_out_follow_the_home() {
    let mut world = world();
    world.ok(&begin("t", "a", "b"));
    world.ok(&release("t", "1", &["m"]));
    world.ok(&move_domain("1", "a", "c"));
    let version = world.index;
    world.ok(&Command::Released { shard: "a".into(), keys: vec![zone_key("1")], version });
    assert!(world.state.assignment_of(&"a".into(), "").machines_out.is_empty());
    assert_eq!(machines(&world.state.assignment_of(&"c".into(), "").machines_out), ["m"]);
    assert_eq!(world.touches(&settle("b", &[("t", "m")])), ["b", "c"]);
    // Moved to the recipient itself, the machine is in, not out.
    world.ok(&begin("u", "b", "c"));
    world.ok(&release("u", "2", &["n"]));
    world.ok(&move_domain("2", "b", "c"));
    let version = world.index;
    world.ok(&Command::Released { shard: "b".into(), keys: vec![zone_key("2")], version });
    let c = world.state.assignment_of(&"c".into(), "");
    assert_eq!((machines(&c.machines_in), c.machines_out.len()), (vec!["n"], 0));
}

/// Its home is in nobody's domains any more: of another key, it would have two owners.
#[test]
fn kind_4_a_new_key_waits_for_machines_on_loan() {
    let mut world = world();
    world.ok(&begin("t", "a", "b"));
    world.ok(&release("t", "1", &["m"]));
    for value in ["1", "2"] {
        world.ok(&Command::UnassignDomain { domain: zone(value) });
    }
    let version = world.index;
    for (shard, value) in [("a", "1"), ("b", "2")] {
        let keys = vec![zone_key(value)];
        world.ok(&Command::Released { shard: shard.into(), keys, version });
    }
    assert_eq!(world.state.ownership_key(), None);
    let domain = Domain::new("rack", "r1");
    let rack = Command::AssignDomain { domain, shard: "c".into() };
    assert_eq!(world.refused(&rack), Refused::KeyOnLoan("zone".into()));
    let mut same = world.clone();
    same.ok(&assign("1", "c"));
    world.ok(&settle("b", &[("t", "m")]));
    world.ok(&rack);
}

#[test]
fn kind_2_remove_shard_ends_its_transfers() {
    let mut world = world();
    for (id, from, to) in [("asked", "a", "c"), ("to", "b", "a"), ("gave", "a", "b")] {
        world.ok(&begin(id, from, to));
    }
    world.ok(&release("to", "2", &["m"]));
    world.ok(&release("gave", "1", &["n"]));
    assert_eq!(world.touches(&remove("a")), ["b", "c"]);
    assert_eq!((phase(&world, "asked"), phase(&world, "to")), (None, None));
    assert_eq!(phase(&world, "gave"), Some(TransferPhase::Moved), "its recipient keeps it");
    assert!(world.state.assignment_of(&"b".into(), "").machines_out.is_empty(), "m went home");
}
