//! A volume from before a restore, put in place while the coordinator is there.

use bigfleet_across::{Step, World};
use bigfleet_model::{MachineState, machine::ZONE_LABEL};
use bigfleet_shard::holdings::Domain;

use crate::models::{commit, fleet, move_domain};

/// Whether the first shard may act, and by its file on the domain's machines, too.
fn is_open(world: &World) -> (bool, bool) {
    let shard = &world.shards[0];
    let open = shard.process.as_ref().is_some_and(|process| process.is_open());
    let domain = Domain::new(ZONE_LABEL.to_owned(), "a".to_owned()).unwrap();
    let holds = shard.holdings.held().is_some_and(|held| held.domains.contains(&domain));
    (open, open && holds)
}

#[test]
fn coordinator_inv_i1_an_old_volume_opens_with_what_is_still_its_own() {
    let mut world = fleet(2, &[("m", "a", MachineState::Idle)], &[("a", "s0")]);
    let old = world.shards[0].disk.file.clone();
    world.step(Step::Backup).unwrap();
    world.step(Step::Restore(false)).unwrap();
    for _ in 0..5 {
        world.round().unwrap();
    }
    assert_eq!(world.unsettled(), None, "confirmed");
    world.step(commit(move_domain("a", "s0", "s1"))).unwrap();
    for _ in 0..3 {
        world.round().unwrap();
    }
    assert_eq!(world.unsettled(), None);

    // The operator remembers the epoch: the provider takes it for the newest process.
    world.step(Step::Crash(0)).unwrap();
    world.shards[0].disk.file = old;
    // What a file says is held by two: so the world says at every step, until it is heard.
    drop(world.step(Step::Start(0)));
    drop(world.step(Step::Announce(0)));
    for _ in 0..2 {
        let answered = [Step::Report(0), Step::Deliver(0, false), Step::Forward(0, false)];
        for step in answered.into_iter().chain((0..3).map(|_| Step::Write(0))) {
            drop(world.step(step));
            assert!(!is_open(&world).1, "it would act on machines that are another shard's");
        }
    }
    assert!(is_open(&world).0, "its second report counted");
    for step in [Step::BeginList(0), Step::Read(0), Step::Merge(0), Step::Tend(0, false)] {
        drop(world.step(step));
    }
    world.step(Step::Write(0)).unwrap();
    world.settle().unwrap();
}
