//! Two changes at once.

use super::*;

const IDLE: MachineState = MachineState::Idle;

/// One mishap at a time; more of them with `BIGFLEET_ALL_WAYS`.
fn look_at(what: &str, world: &World, commands: &[Command]) {
    let all = std::env::var("BIGFLEET_ALL_WAYS").is_ok();
    let none = Limits {
        commands: commands.to_vec(),
        settle_every: 100,
        states: 2_000_000,
        ..Limits::default()
    };
    let acts = Limits { acts: 1, ..none.clone() };
    let slow = Limits { slow_reports: 1, ..none.clone() };
    let few = [("no mishap", none.clone())];
    let more = [
        ("a slow report", slow.clone()),
        ("a crash", Limits { crashes: 1, ..none.clone() }),
        ("a new leader", Limits { leaders: 1, ..none.clone() }),
        ("a lost disk", Limits { disks: 1, ..none }),
        ("an act", acts.clone()),
        ("a crash and an act", Limits { crashes: 1, ..acts }),
        ("a crash and a slow report", Limits { crashes: 1, ..slow.clone() }),
        ("a new leader and a slow report", Limits { leaders: 1, ..slow }),
    ];
    for (mishap, limits) in few.into_iter().chain(more.into_iter().filter(|_| all)) {
        look(&format!("{what}, {mishap}"), world, limits);
    }
}

#[test]
fn two_domains_change_places() {
    let world = world(&[("m", "a", IDLE), ("n", "b", IDLE)]);
    look_at(
        "two domains change places",
        &world,
        &[move_domain("a", "s0", "s1"), move_domain("b", "s1", "s0")],
    );
}

#[test]
fn a_machine_is_lent_while_another_domain_moves() {
    let world = world(&[("m", "a", IDLE), ("n", "b", IDLE)]);
    look_at(
        "lent while another domain moves",
        &world,
        &[transfer(TransferKind::Idle), move_domain("b", "s1", "s0")],
    );
}

#[test]
fn a_machine_is_lent_while_its_home_moves() {
    let world = fleet(3, &[("m", "a", IDLE)], &[("a", "s0")]);
    look_at(
        "lent while its home moves",
        &world,
        &[transfer(TransferKind::Idle), move_domain("a", "s0", "s2")],
    );
}

/// Fault matrix: a domain moved A→B→C before A let go.
#[test]
fn a_domain_moves_on() {
    let world = fleet(3, &[("m", "a", IDLE)], &[("a", "s0")]);
    look_at(
        "a domain moves on",
        &world,
        &[move_domain("a", "s0", "s1"), move_domain("a", "s1", "s2")],
    );
}

#[test]
fn a_domain_moves_back() {
    let world = world(&[("m", "a", IDLE)]);
    look_at(
        "a domain moves back",
        &world,
        &[move_domain("a", "s0", "s1"), move_domain("a", "s1", "s0")],
    );
}

#[test]
fn a_domain_and_a_cluster_move() {
    let mut world = world(&[("m", "a", IDLE)]);
    bind(&mut world);
    look_at(
        "a domain and a cluster move",
        &world,
        &[move_domain("a", "s0", "s1"), move_cluster("s0", "s1")],
    );
}
