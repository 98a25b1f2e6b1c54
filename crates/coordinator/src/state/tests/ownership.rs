use super::*;

fn unassign(value: &str) -> Command {
    Command::UnassignDomain { domain: zone(value) }
}

fn released(shard: &str, keys: &[Key], version: u64) -> Command {
    Command::Released { shard: shard.into(), keys: keys.to_vec(), version }
}

fn move_cluster(cluster: &str, from: &str, to: &str) -> Command {
    Command::MoveCluster { cluster: cluster.into(), from: from.into(), to: to.into() }
}

fn domains(world: &World, shard: &str) -> Vec<String> {
    let assignment = world.state.assignment_of(&shard.into(), "");
    assignment.domains.iter().map(ToString::to_string).collect()
}

#[test]
fn kind_3_bind_cluster_first_contact_wins() {
    let mut world = World::new();
    assert_eq!(world.refused(&bind("k", "z")), Refused::ShardNotFound("z".into()));
    assert_eq!(world.touches(&bind("k", "a")), ["a"]);
    world.no_op(&bind("k", "a"));
    let owner = Some("a".into());
    let bound = Refused::ClusterAlreadyBound { cluster: "k".into(), owner };
    assert_eq!(world.refused(&bind("k", "b")), bound);
    assert_eq!(world.row(&Key::Cluster("k".into())), "a");
}

#[test]
fn kind_4_assign_domain() {
    let mut world = World::new();
    assert_eq!(world.refused(&assign("1", "z")), Refused::ShardNotFound("z".into()));
    assert_eq!(world.touches(&assign("1", "a")).len(), 4, "the ownership key is set");
    assert_eq!(world.state.ownership_key(), Some(&"zone".into()));
    world.no_op(&assign("1", "a"));
    let owner = Some("a".into());
    let assigned = Refused::DomainAlreadyAssigned { domain: zone("1"), owner };
    assert_eq!(world.refused(&assign("1", "b")), assigned);
    assert_eq!(world.touches(&assign("2", "b")), ["b"]);
    let moved = Effect::DomainMoved { domain: zone("3"), from: None, to: Some("b".into()) };
    assert_eq!(world.ok(&assign("3", "b")), moved);
}

#[test]
fn kind_4_only_rows_of_the_ownership_key_are_held() {
    let mut world = World::new();
    world.ok(&assign("1", "a"));
    let rack = Domain::new("rack", "7");
    world.ok(&Command::AssignDomain { domain: rack, shard: "a".into() });
    assert_eq!(domains(&world, "a"), ["zone=1"]);
    world.ok(&unassign("1"));
    assert_eq!(world.state.ownership_key(), Some(&"zone".into()), "a has not let go of it");
    let version = world.index;
    assert_eq!(world.touches(&released("a", &[zone_key("1")], version)).len(), 4, "unset");
    assert_eq!(world.state.ownership_key(), None);
    assert!(domains(&world, "a").is_empty());
    // The next one assigned sets it, and older rows of that key count.
    let other = Domain::new("rack", "8");
    world.ok(&Command::AssignDomain { domain: other, shard: "b".into() });
    assert_eq!(domains(&world, "a"), ["rack=7"]);
}

#[test]
fn kind_5_unassign_domain_always_succeeds() {
    let mut world = World::new();
    world.no_op(&unassign("1"));
    world.ok(&assign("1", "a"));
    world.ok(&assign("2", "own"));
    let moved = Effect::DomainMoved { domain: zone("1"), from: Some("a".into()), to: None };
    assert_eq!(world.ok(&unassign("1")), moved);
    assert_eq!(world.row(&zone_key("1")), "-<a");
    world.no_op(&unassign("1"));
    world.ok(&unassign("2"));
    assert_eq!(world.row(&zone_key("2")), "none", "a shard of its own scope holds nothing");
    assert_eq!(world.state.domains_after(None).count(), 0, "rows without owner are not listed");
}

#[test]
fn kind_19_move_domain() {
    let mut world = World::new();
    world.ok(&assign("1", "a"));
    world.no_op(&move_domain("1", "b", "a"));
    let owner = Some("a".into());
    let assigned = Refused::DomainAlreadyAssigned { domain: zone("1"), owner };
    assert_eq!(world.refused(&move_domain("1", "b", "c")), assigned);
    assert_eq!(world.refused(&move_domain("1", "a", "z")), Refused::ShardNotFound("z".into()));
    let nobody = Refused::DomainAlreadyAssigned { domain: zone("9"), owner: None };
    assert_eq!(world.refused(&move_domain("9", "a", "b")), nobody);
    assert_eq!(world.touches(&move_domain("1", "a", "b")), ["a", "b"]);
    assert_eq!(world.row(&zone_key("1")), "b<a");
    assert!(domains(&world, "a").is_empty() && domains(&world, "b").is_empty(), "nobody holds it");
}

#[test]
fn kind_23_move_cluster() {
    let mut world = World::new();
    world.ok(&bind("k", "a"));
    world.no_op(&move_cluster("k", "b", "a"));
    let owner = Some("a".into());
    let bound = Refused::ClusterAlreadyBound { cluster: "k".into(), owner };
    assert_eq!(world.refused(&move_cluster("k", "b", "c")), bound);
    assert_eq!(world.refused(&move_cluster("k", "a", "z")), Refused::ShardNotFound("z".into()));
    assert_eq!(world.touches(&move_cluster("k", "a", "b")), ["a", "b"]);
    assert_eq!(world.row(&Key::Cluster("k".into())), "b<a");
    let version = world.index;
    assert_eq!(world.touches(&released("a", &[Key::Cluster("k".into())], version)), ["b"]);
    assert_eq!(world.state.assignment_of(&"b".into(), "").clusters, ["k".into()]);
}

/// Fault matrix: moved A→B→C before A let go, C waits for A.
#[test]
fn a_hold_is_never_overwritten() {
    let mut world = World::new();
    world.ok(&assign("1", "a"));
    world.ok(&move_domain("1", "a", "b"));
    let first = world.index;
    assert_eq!(world.touches(&move_domain("1", "b", "c")), ["a", "b", "c"]);
    assert_eq!(world.row(&zone_key("1")), "c<a");
    world.no_op(&released("a", &[zone_key("1")], first));
    world.no_op(&released("b", &[zone_key("1")], world.index + 1));
    assert_eq!(world.row(&zone_key("1")), "c<a", "word from before the last move");
    let version = world.index;
    assert_eq!(world.touches(&released("a", &[zone_key("1")], version)), ["c"]);
    assert_eq!(domains(&world, "c"), ["zone=1"]);
}

#[test]
fn moved_back_before_it_was_let_go() {
    let mut world = World::new();
    world.ok(&assign("1", "a"));
    world.ok(&move_domain("1", "a", "b"));
    assert_eq!(world.touches(&move_domain("1", "b", "a")), ["a", "b"]);
    assert_eq!(world.row(&zone_key("1")), "a", "it never left");
}

#[test]
fn a_removed_owner_leaves_the_hold() {
    let mut world = World::new();
    world.ok(&assign("1", "a"));
    world.ok(&move_domain("1", "a", "b"));
    world.ok(&remove("b"));
    assert_eq!(world.row(&zone_key("1")), "-<a");
    world.ok(&assign("1", "c"));
    assert_eq!(world.row(&zone_key("1")), "c<a", "an assignment waits, too");
}

#[test]
fn kind_20_released_touches_nothing_else() {
    let mut world = World::new();
    world.ok(&assign("1", "a"));
    world.ok(&assign("2", "a"));
    world.ok(&move_domain("1", "a", "b"));
    let keys = [zone_key("1"), zone_key("2"), zone_key("9"), Key::Cluster("k".into())];
    let version = world.index;
    assert_eq!(world.touches(&released("a", &keys, version)), ["b"]);
    assert_eq!(world.row(&zone_key("2")), "a");
    world.no_op(&released("a", &keys, version));
}

#[test]
fn domains_come_in_pages() {
    let mut world = World::new();
    for (value, shard) in [("3", "b"), ("1", "b"), ("2", "a"), ("4", "own")] {
        world.ok(&assign(value, shard));
    }
    world.ok(&bind("k", "a"));
    let all: Vec<_> = world.state.domains_after(None).collect();
    let texts: Vec<_> = all.iter().map(|(shard, domain)| format!("{shard} {domain}")).collect();
    assert_eq!(texts, ["a zone=2", "b zone=1", "b zone=3", "own zone=4"]);
    for (position, (shard, domain)) in all.iter().enumerate() {
        let after = ((*shard).clone(), (*domain).clone());
        let rest: Vec<_> = world.state.domains_after(Some(&after)).collect();
        assert_eq!(rest, all[position + 1..]);
    }
}
