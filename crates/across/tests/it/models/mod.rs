//! Every way through small worlds: two or three shards, one or two domains, one or two
//! changes, and one of each mishap at any time. The largest of them, minutes in all, are
//! looked at with `BIGFLEET_ALL_WAYS`.

mod two;

use std::time::Instant;

use bigfleet_across::{Act, Limits, Step, World, search};
use bigfleet_coordinator::{
    rebalance::Settings,
    state::{Command, Domain, TransferKind, TransferRequest},
};
use bigfleet_model::{MachineState, Stamp, machine::ZONE_LABEL};
use bigfleet_wire::v1alpha1::PenaltyBucket;

/// Zone `a` and cluster `x` are the first shard's, zone `b`, if there is a machine of it,
/// and cluster `y` the second's.
fn world(machines: &[(&str, &str, MachineState)]) -> World {
    let zones: Vec<(&str, &str)> = [("a", "s0"), ("b", "s1")]
        .into_iter()
        .filter(|(zone, _)| machines.iter().any(|(_, of, _)| of == zone))
        .collect();
    fleet(2, machines, &zones)
}

/// So many shards, of which the first two have a cluster, and whose the zones are.
pub(crate) fn fleet(
    shards: usize,
    machines: &[(&str, &str, MachineState)],
    zones: &[(&str, &str)],
) -> World {
    let mut world = World::new(shards, Settings::default()).timeless();
    for (id, zone, state) in machines {
        world.provider.add(id, zone, *state).unwrap();
    }
    world.shards[0].operators.insert("x".into());
    world.shards[1].operators.insert("y".into());
    for shard in 0..shards {
        world.step(Step::Start(shard)).unwrap();
        world.exchange(shard).unwrap();
    }
    for (zone, shard) in zones {
        let domain = Domain::new(ZONE_LABEL, zone);
        let shard = (*shard).into();
        world.step(commit(Command::AssignDomain { domain, shard })).unwrap();
    }
    for _ in 0..3 {
        world.round().unwrap();
    }
    assert_eq!(world.unsettled(), None);
    world
}

pub(crate) fn commit(command: Command) -> Step {
    Step::Commit(Box::new(command))
}

pub(crate) fn move_domain(zone: &str, from: &str, to: &str) -> Command {
    let domain = Domain::new(ZONE_LABEL, zone);
    Command::MoveDomain { domain, from: from.into(), to: to.into() }
}

fn move_cluster(from: &str, to: &str) -> Command {
    Command::MoveCluster { cluster: "x".into(), from: from.into(), to: to.into() }
}

fn transfer(kind: TransferKind) -> Command {
    let request = TransferRequest {
        count: 1,
        preemptor_priority: 7,
        preemptor_penalty_bucket: PenaltyBucket::PenaltyBucket8.into(),
        ..TransferRequest::default()
    };
    Command::BeginTransfer { id: "t".into(), kind, from: "s0".into(), to: "s1".into(), request }
}

fn look(what: &str, world: &World, limits: Limits) {
    let began = Instant::now();
    match search(world.clone(), limits) {
        Ok(found) => {
            let took = began.elapsed();
            eprintln!("{what}: {found:?} in {took:?}");
            assert!(found.complete, "{what} is larger than it may be: {found:?}");
        }
        Err(broken) => panic!("{what}: {broken}"),
    }
}

/// The world whose largest ways are gone whatever is asked for, and the one that has the most.
const DOMAIN: &str = "a domain moves";
const DRAIN: &str = "a machine is drained and lent";

/// One mishap of each kind; those that depend on calls together with one.
fn mishaps() -> Vec<(&'static str, Limits)> {
    let none = Limits { settle_every: 100, states: 2_000_000, ..Limits::default() };
    let acts = Limits { acts: 1, ..none.clone() };
    let slow = Limits { slow_reports: 1, ..none.clone() };
    vec![
        ("a slow List", Limits { slow_lists: 1, ..acts.clone() }),
        ("a call that is lost", Limits { losses: 1, ..acts.clone() }),
        ("a crash", Limits { crashes: 1, ..acts.clone() }),
        ("a crash between two reports", Limits { crashes: 1, ..none }),
        ("a crash and a slow report", Limits { crashes: 1, ..slow.clone() }),
        ("a lost disk", Limits { disks: 1, ..acts }),
        ("a loss and a double", Limits { losses: 1, doubles: 1, ..slow.clone() }),
        ("a new leader", Limits { leaders: 1, ..slow }),
    ]
}

fn every_mishap(what: &str, world: &World, commands: &[Command]) {
    let all = std::env::var("BIGFLEET_ALL_WAYS").is_ok() || what == DOMAIN;
    for (mishap, limits) in mishaps() {
        let starts_again = limits.crashes + limits.disks > 0;
        let large = limits.acts > 0 || what == DRAIN && limits.slow_reports > 0;
        if starts_again && large && !all {
            continue;
        }
        let limits = Limits { commands: commands.to_vec(), ..limits };
        look(&format!("{what}, {mishap}"), world, limits);
    }
}

#[test]
fn a_domain_moves() {
    let world = world(&[("m", "a", MachineState::Idle)]);
    every_mishap(DOMAIN, &world, &[move_domain("a", "s0", "s1")]);
}

#[test]
fn a_cluster_moves() {
    let mut world = world(&[("m", "a", MachineState::Idle)]);
    bind(&mut world);
    every_mishap("a cluster moves", &world, &[move_cluster("s0", "s1")]);
}

#[test]
fn an_idle_machine_is_lent() {
    let world = world(&[("m", "a", MachineState::Idle)]);
    every_mishap("an idle machine is lent", &world, &[transfer(TransferKind::Idle)]);
}

#[test]
fn a_slot_is_lent() {
    let world = world(&[("m", "a", MachineState::Speculative)]);
    every_mishap("a slot is lent", &world, &[transfer(TransferKind::Speculative)]);
}

#[test]
fn a_machine_is_drained_and_lent() {
    let mut world = world(&[("m", "a", MachineState::Idle)]);
    bind(&mut world);
    every_mishap(DRAIN, &world, &[transfer(TransferKind::Drain)]);
}

/// The machine serves cluster `x` of the first shard.
fn bind(world: &mut World) {
    let stamp = Stamp { priority: Some(0), ..Stamp::default() };
    let steps = [
        Step::Act(0, "m".into(), Act::Configure("x".into(), stamp.into())),
        Step::Send(0, "m".into()),
        Step::Arrive(0),
        Step::Arrive(0),
        Step::Finish("m".into()),
    ];
    for step in steps {
        world.step(step).unwrap();
    }
    world.list(0).unwrap();
    world.list(1).unwrap();
    assert_eq!(world.count(MachineState::Configured), 1);
}
