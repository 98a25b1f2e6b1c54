//! What no command may break.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_coordinator::state::{
    Assignment, Command, Key, QuotaKey, ShardId, State, TransferPhase,
};
use bigfleet_model::FleetId;

use crate::{
    draw::{Random, command},
    seeds,
};

/// Runs random logs; `check` sees each state before and after a command.
fn run(few: u64, mut check: impl FnMut(&State, &State, u64, &Command)) {
    for seed in seeds(few) {
        println!("seed {seed}");
        let mut random = Random::new(seed ^ 0x5eed);
        let mut state = State::default();
        if random.chance(20) {
            state.begin_recovery(&FleetId::new("u", 7), 1_700_000_000_000);
        }
        for index in 1..=200 {
            let entry = command(&mut random, &state);
            let before = state.clone();
            let _ = state.apply(index, &entry);
            check(&before, &state, index, &entry);
        }
    }
}

/// Every command, those of a Batch one by one.
fn commands(command: &Command) -> &[Command] {
    match command {
        Command::Batch { commands } => commands,
        one => std::slice::from_ref(one),
    }
}

fn quota_sums(state: &State) -> BTreeMap<&QuotaKey, i64> {
    let sum = |row: &BTreeMap<ShardId, i32>| row.values().map(|slice| i64::from(*slice)).sum();
    state.quotas().iter().map(|(key, row)| (key, sum(row))).collect()
}

#[test]
fn coordinator_inv_i5_only_set_quota_and_remove_shard_change_quota_sums() {
    let mut changed = 0;
    run(120, |before, after, index, entry| {
        if quota_sums(before) != quota_sums(after) {
            changed += 1;
            let may = |one: &Command| {
                matches!(one, Command::SetQuota { .. } | Command::RemoveShard { .. })
            };
            assert!(commands(entry).iter().any(may), "index {index}: {entry:?}");
        }
    });
    assert!(changed > 0);
}

fn assignments(state: &State) -> BTreeMap<ShardId, Assignment> {
    let shards = state.shards().iter().filter(|(_, shard)| shard.shared);
    shards.map(|(id, _)| (id.clone(), state.assignment_of(id, "host-1"))).collect()
}

/// I1, as far as it is the state's: no key and no machine is in two Assignments, and
/// none in one while another shard has not let go of it.
#[test]
fn coordinator_inv_i1_never_two_owners() {
    run(120, |_, after, index, entry| {
        let mut keys = BTreeSet::new();
        let mut machines = BTreeSet::new();
        for (shard, assignment) in assignments(after) {
            let clusters = assignment.clusters.iter().cloned().map(Key::Cluster);
            for key in clusters.chain(assignment.domains.iter().cloned().map(Key::Domain)) {
                let row = after.row(&key).expect("what is assigned has a row");
                assert_eq!(row.owner.as_ref(), Some(&shard));
                assert_eq!(row.releasing, None, "index {index} {entry:?}: {key} is held twice");
                assert!(keys.insert(key.clone()), "index {index} {entry:?}: {key}");
            }
            for machine in &assignment.machines_in {
                let id = machine.machine.clone();
                assert!(machines.insert(id), "index {index} {entry:?}: {machine:?}");
            }
            let mine: BTreeSet<_> = assignment.machines_in.iter().map(|one| &one.machine).collect();
            let away = assignment.machines_out.iter();
            assert!(away.clone().all(|one| !mine.contains(&one.machine)));
        }
        // Whoever holds the home is told of every machine that is away.
        for (id, transfer) in after.transfers() {
            let Some(home) = &transfer.home else { continue };
            let row = after.row(&Key::Domain(home.clone()));
            let holder = row.and_then(|row| row.held_by()).filter(|holder| {
                **holder != transfer.to && after.shard(holder).is_some_and(|shard| shard.shared)
            });
            if let Some(holder) = holder
                && after.ownership_key() == Some(&home.key)
            {
                let out = after.assignment_of(holder, "").machines_out;
                let told = out.iter().filter(|one| one.transfer == *id).count();
                assert_eq!(told, transfer.machine_ids.len(), "index {index} {entry:?}");
            }
        }
    });
}

/// A hold ends by the holder's own word, by its owning the key again, by its removal or,
/// after a restore, by what shards hold.
#[test]
fn a_hold_is_never_overwritten() {
    let mut holds = 0;
    run(120, |before, after, index, entry| {
        for (key, row) in before.rows() {
            let Some(mark) = &row.releasing else { continue };
            holds += 1;
            let now = after.row(key);
            let kept = now.and_then(|row| row.releasing.as_ref());
            if kept.is_some_and(|kept| kept.from == mark.from) {
                continue;
            }
            let ended = commands(entry).iter().any(|one| match one {
                Command::Released { shard, keys, version } => {
                    *shard == mark.from && keys.contains(key) && mark.since <= *version
                }
                Command::RemoveShard { id } => *id == mark.from,
                Command::AdoptHoldings { .. } => true,
                _ => now.is_some_and(|now| now.held_by() == Some(&mark.from)),
            });
            assert!(ended, "index {index} {entry:?}: {key} was {row:?}, is {now:?}");
        }
    });
    assert!(holds > 0);
}

/// An Assignment is due by index: whatever alters one sets `changed_at`.
#[test]
fn what_alters_an_assignment_makes_it_due() {
    let mut altered = 0;
    run(120, |before, after, index, entry| {
        let was = assignments(before);
        for (shard, now) in assignments(after) {
            let same = was.get(&shard).is_some_and(|was| was.digest == now.digest);
            if !same {
                altered += 1;
                let changed_at = after.shard(&shard).map(|shard| shard.changed_at);
                assert_eq!(changed_at, Some(index), "{entry:?}: {shard}");
            }
        }
    });
    assert!(altered > 0);
}

/// Every transfer can end: it has a donor to ask, or machines to settle.
#[test]
fn no_transfer_is_orphaned() {
    let mut moved = 0;
    run(120, |_, after, index, entry| {
        let mut seen = BTreeSet::new();
        for (id, transfer) in after.transfers() {
            assert!(after.shard(&transfer.to).is_some(), "index {index} {entry:?}: {id}");
            match transfer.phase {
                TransferPhase::Releasing => {
                    assert!(after.shard(&transfer.from).is_some(), "index {index} {entry:?}: {id}");
                    assert!(transfer.machine_ids.is_empty());
                }
                TransferPhase::Moved => {
                    moved += 1;
                    assert!(!transfer.machine_ids.is_empty() && transfer.home.is_some(), "{id}");
                }
            }
            for machine in &transfer.machine_ids {
                assert!(seen.insert(machine), "index {index} {entry:?}: {machine} twice");
            }
        }
    });
    assert!(moved > 0);
}
