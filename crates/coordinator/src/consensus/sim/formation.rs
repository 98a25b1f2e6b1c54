//! One fleet or a visible wait, never two.

use super::*;

const LONG: Duration = Duration::from_secs(400);

/// Fleets that replicas of a group are open in.
fn open_fleets(group: &Group, addresses: &[String]) -> Vec<String> {
    let replicas = addresses.iter().filter_map(|one| group.net.replica(one));
    let open = replicas.map(|one| one.status()).filter(|status| status.phase == Phase::Open);
    let mut fleets: Vec<String> = open.map(|status| status.fleet_id).collect();
    fleets.sort_unstable();
    fleets.dedup();
    fleets
}

fn addresses(size: usize) -> Vec<String> {
    (0..size).map(name).collect()
}

/// Each combination of wiped disks, each combination of names that resolve.
#[test]
fn coordinator_inv_i10_any_wiped_disks_end_in_one_fleet_or_a_wait() {
    for wiped in 0..8_u64 {
        for hidden in [None, Some(0), Some(1), Some(2)] {
            run(wiped, |seed| async move {
                let mut group = Group::new(seed, 3).await;
                let (_, leader) = group.opened().await;
                let first = leader.status().fleet_id;
                leader.propose(&put("k", 5), Duration::from_secs(5)).await.unwrap();
                drop(leader);
                sleep(Duration::from_secs(2)).await;
                (0..3).for_each(|ordinal| {
                    let wipe = wiped >> ordinal & 1 == 1;
                    if wipe { group.wipe(ordinal) } else { group.crash(ordinal) }
                });
                if let Some(hidden) = hidden {
                    group.net.resolve(&name(hidden), false);
                }
                for ordinal in 0..3 {
                    group.start(ordinal).await.unwrap();
                }
                sleep(LONG).await;
                let fleets = open_fleets(&group, &addresses(3));
                let kept = 3 - wiped.count_ones();
                let case = format!("wiped {wiped:03b}, hidden {hidden:?}: {:#?}", group.statuses());
                assert!(fleets.len() <= 1, "{case}");
                match kept {
                    // All names resolve in the end, so the wait ends too.
                    0 => assert!(hidden.is_some() || fleets.len() == 1, "{case}"),
                    // One disk of three: no quorum, nobody serves, nothing new opens.
                    1 => assert!(fleets == [first] && group.leader().is_none(), "{case}"),
                    _ => {
                        assert_eq!(fleets, [first], "{case}");
                        let (_, leader) = group.leader().unwrap_or_else(|| panic!("{case}"));
                        assert_eq!(get(&leader, "k"), Some(5), "{case}");
                        if hidden.is_none() {
                            assert_eq!(leader.status().voters, ["c-0", "c-1", "c-2"], "{case}");
                        }
                    }
                }
            });
        }
    }
}

#[test]
fn coordinator_inv_i10_two_empty_first_replicas_open_at_most_one_fleet() {
    let mut opened = 0;
    for seed in seeds(12) {
        let count = Arc::new(std::sync::Mutex::new(0));
        let counted = count.clone();
        run(seed, |seed| async move {
            let mut group = Group::stopped(seed, 3);
            let twin = group.config(0);
            let mut order = [0, 1, 2, 3];
            for nth in 0..4 {
                let other = usize::try_from(group.random.next() % 4).unwrap();
                order.swap(nth, other);
            }
            for ordinal in order {
                if ordinal == 3 {
                    let config = Config { raft_address: "twin".to_owned(), ..twin.clone() };
                    group.start_as("twin", config, MemoryDisk::new()).await.unwrap();
                } else {
                    group.start(ordinal).await.unwrap();
                }
                sleep(Duration::from_millis(group.random.next() % 3_000)).await;
            }
            let all = [addresses(3), vec!["twin".to_owned()]].concat();
            for _ in 0..20 {
                sleep(Duration::from_secs(10)).await;
                let fleets = open_fleets(&group, &all);
                assert!(fleets.len() <= 1, "{fleets:?}");
                *counted.lock().unwrap() = fleets.len();
            }
        });
        opened += *count.lock().unwrap();
    }
    assert!(opened > 0 || std::env::var("BIGFLEET_SEED").is_ok(), "no seed opens a fleet");
}

#[test]
fn the_first_replica_waits_for_all_others_to_say_that_they_are_empty() {
    run(8, |seed| async move {
        let mut group = Group::stopped(seed, 3);
        group.start(0).await.unwrap();
        group.start(1).await.unwrap();
        sleep(LONG).await;
        assert!(group.statuses().iter().all(|status| status.phase == Phase::Empty));
        group.start(2).await.unwrap();
        group.opened().await;
    });
}

#[test]
fn what_never_formed_starts_over_as_a_new_member() {
    run(9, |seed| async move {
        let mut group = Group::new(seed, 3).await;
        let forming = group.within(Duration::from_secs(30), || {
            let replica = group.replica(0)?;
            let status = replica.status();
            (status.phase == Phase::Forming && status.voters.len() == 1).then_some(replica)
        });
        let first = forming.await.unwrap();
        let before = first.shared.running().unwrap().me;
        // Its disk lives, the others come back empty and out of its sight.
        group.wipe(1);
        group.wipe(2);
        let old = first.status().fleet_id;
        drop(first);
        group.crash(0);
        let replica = group.start(0).await.unwrap();
        // Alone it leads its own half-formed fleet and waits, visibly.
        sleep(LONG).await;
        assert_eq!(replica.status().fleet_id, old);
        assert_eq!(replica.shared.running().unwrap().me, before);
        group.start(1).await.unwrap();
        group.start(2).await.unwrap();
        group.opened().await;
    });
}

#[test]
fn a_forming_pair_that_loses_one_starts_over() {
    run(10, |seed| async move {
        let mut group = Group::stopped(seed, 3);
        group.start(0).await.unwrap();
        group.start(1).await.unwrap();
        group.start(2).await.unwrap();
        // The third is never let in, so the fleet stays at two voters.
        group.net.isolate("c-2", ["c-0".to_owned(), "c-1".to_owned()]);
        group.net.heal();
        let two = group.within(LONG, || {
            group.net.isolate("c-2", ["c-1".to_owned()]);
            let status = group.replica(0)?.status();
            if status.phase == Phase::Forming {
                group.net.isolate("c-2", ["c-0".to_owned()]);
            }
            (status.voters.len() == 2).then_some(status.voters)
        });
        let two = two.await.unwrap_or_else(|| panic!("{:#?}", group.statuses()));
        let lost = if two.contains(&name(1)) { 1 } else { 2 };
        let old = group.replica(0).unwrap().shared.running().unwrap().me;
        group.wipe(lost);
        sleep(Duration::from_secs(70)).await;
        let new = group.replica(0).unwrap().shared.running().unwrap().me;
        assert_ne!(old, new, "no leader for 60 s: a new incarnation");
        group.net.heal();
        group.start(lost).await.unwrap();
        group.opened().await;
    });
}

#[test]
fn a_replaced_member_with_data_exits() {
    run(11, |seed| async move {
        let mut group = Group::new(seed, 3).await;
        let (first, leader) = group.opened().await;
        let gone = (first + 1) % 3;
        sleep(Duration::from_secs(2)).await;
        let old = group.disks[&name(gone)].after_crash(0);
        group.wipe(gone);
        let replacement = group.start(gone).await.unwrap();
        let back = group.within(LONG, || {
            let me = replacement.shared.running()?.me;
            let members = leader.shared.running()?.members();
            (members.nodes().count() == 3 && members.voter_ids().any(|id| id == me)).then_some(())
        });
        back.await.unwrap_or_else(|| panic!("{:#?}", group.statuses()));
        drop(replacement);
        group.crash(gone);
        group.disks.insert(name(gone), old);
        let returned = group.start(gone).await.unwrap();
        let fatal = group.within(LONG, || returned.fatal().borrow().clone());
        let fatal = fatal.await.unwrap_or_else(|| panic!("{:#?}", group.statuses()));
        assert!(fatal.contains("removed or replaced"), "{fatal}");
        assert!(leader.propose(&put("k", 1), Duration::from_secs(5)).await.is_ok());
    });
}

/// The leader that let it in dies before anybody else has heard of it.
#[test]
fn a_learner_whose_addition_was_lost_is_let_in_by_the_next_leader() {
    for seed in seeds(5) {
        run(seed, |seed| async move {
            let mut group = Group::new(seed, 3).await;
            let (first, leader) = group.opened().await;
            let adds = |envelope: &Envelope| match &envelope.request {
                Request::Append(append) => append.entries.iter().any(|entry| {
                    let openraft::EntryPayload::Membership(members) = &entry.payload else {
                        return false;
                    };
                    members.nodes().any(|(_, member)| member.node_id == "c-3")
                }),
                _ => false,
            };
            group.net.lose(move |to, envelope| to != "c-3" && adds(envelope));
            let config = Config { initial_replicas: 3, ..group.config(3) };
            let fourth = group.start_as("c-3", config, MemoryDisk::new()).await.unwrap();
            let entered = group.within(LONG, || {
                let running = fourth.shared.running()?;
                let learnt = running.members().nodes().any(|(id, _)| *id == running.me);
                (learnt && fourth.status().fleet_id == leader.status().fleet_id).then_some(())
            });
            entered.await.unwrap_or_else(|| panic!("{:#?}", fourth.status()));
            let before = fourth.shared.running().unwrap().me;
            drop(leader);
            group.crash(first);
            group.net.lose(|_, _| false);
            let voter = group.within(LONG, || {
                let (_, leader) = group.leader()?;
                assert_eq!(*fourth.fatal().borrow(), None);
                leader.status().voters.contains(&name(3)).then_some(leader)
            });
            let leader = voter.await.unwrap_or_else(|| panic!("{:#?}", group.statuses()));
            assert_eq!(fourth.shared.running().unwrap().me, before, "it is the same member");
            // Once removed, it is no more; but for what it asked while it was empty.
            sleep(Duration::from_secs(20)).await;
            leader.remove_server("c-3").await.unwrap();
            let exits = group.within(LONG, || fourth.fatal().borrow().clone());
            let exits = exits.await.unwrap_or_else(|| panic!("{:#?}", fourth.status()));
            assert!(exits.contains("removed or replaced"), "{exits}");
        });
    }
}

#[test]
fn servers_are_removed_explicitly_and_never_the_initial_ones() {
    run(12, |seed| async move {
        let mut group = Group::new(seed, 3).await;
        group.opened().await;
        for ordinal in 3..6 {
            let config = Config { initial_replicas: 3, ..group.config(ordinal) };
            group.start_as(&name(ordinal), config, MemoryDisk::new()).await.unwrap();
        }
        let (_, leader) = group.opened().await;
        let five = group.within(LONG, || (leader.status().voters.len() == 5).then_some(()));
        five.await.unwrap_or_else(|| panic!("{:#?}", leader.status()));
        sleep(LONG).await;
        assert_eq!(leader.status().voters.len(), 5, "a sixth is refused");
        let voters = leader.status().voters;
        let extra = voters.iter().find(|id| *id == "c-3" || *id == "c-4").unwrap().clone();
        assert!(matches!(leader.remove_server("c-1").await, Err(MembershipError::Aborted(_))));
        assert!(matches!(leader.remove_server("c-9").await, Err(MembershipError::NotFound(_))));
        leader.remove_server(&extra).await.unwrap();
        assert!(!leader.status().voters.contains(&extra));
        let exits = group.within(LONG, || group.net.replica(&extra)?.fatal().borrow().clone());
        assert!(exits.await.unwrap().contains("removed or replaced"));
    });
}

#[test]
fn an_older_history_is_superseded() {
    run(13, |seed| async move {
        let mut group = Group::new(seed, 3).await;
        let (_, leader) = group.opened().await;
        let fleet: FleetId = leader.status().fleet_id.parse().unwrap();
        let newer = FleetId::new(fleet.uuid(), 7);
        // A restored replica of the same uuid appears behind the same name.
        let mut config = group.config(7);
        config.raft_address = "restored".to_owned();
        let disk = MemoryDisk::new();
        {
            let dir =
                crate::log::DataDir::lock(Arc::new(disk.clone()), std::path::Path::new("/data"));
            dir.unwrap().set_fleet(&newer.to_string()).unwrap();
        }
        group.start_as("restored", config, disk).await.unwrap();
        sleep(Duration::from_secs(55)).await;
        let superseded = group.within(Duration::from_secs(30), || {
            let replicas = (0..3).filter_map(|i| group.replica(i));
            let done = replicas.filter(|one| one.status().phase == Phase::Superseded).count();
            (done == 3).then_some(())
        });
        superseded.await.unwrap_or_else(|| panic!("{:#?}", group.statuses()));
        let refused = leader.propose(&put("k", 1), Duration::from_secs(5)).await.unwrap_err();
        assert_eq!(refused.to_string(), format!("superseded by {newer}"));
        // The marker outlives the process.
        drop(leader);
        group.crash(0);
        assert_eq!(group.start(0).await.unwrap().status().phase, Phase::Superseded);
    });
}

#[test]
fn a_command_that_one_replica_cannot_apply_is_withheld() {
    run(14, |seed| async move {
        let mut group = Group::stopped(seed, 3);
        for ordinal in 0..3 {
            let mut config = group.config(ordinal);
            if ordinal == 2 {
                config.max_kind = 12;
            }
            let disk = group.disks[&name(ordinal)].clone();
            group.start_as(&name(ordinal), config, disk).await.unwrap();
        }
        let (_, leader) = group.opened().await;
        leader.propose(&put("k", 1), Duration::from_secs(5)).await.unwrap();
        let newer = Command::RemoveProvider { name: "k".to_owned() };
        let refused = leader.propose(&newer, Duration::from_secs(5)).await.unwrap_err();
        assert!(
            matches!(refused, ProposeError::TooNew { kind: 17, max_kind: 12, .. }),
            "{refused}"
        );
        // And whoever joins must know what is in use.
        let join = Joiner { node_id: "c-3".to_owned(), max_kind: 11, ..Joiner::default() };
        let refused = leader.join(&join).await.unwrap_err();
        assert!(refused.to_string().contains("kind 12 is in use"), "{refused}");
    });
}

#[test]
fn a_backup_becomes_a_newer_fleet_that_the_others_join() {
    run(15, |seed| async move {
        let mut group = Group::new(seed, 3).await;
        let (_, leader) = group.opened().await;
        leader.propose(&put("k", 5), Duration::from_secs(5)).await.unwrap();
        let backup = leader.snapshot().unwrap();
        let Leadership::Leader { term: old_term } = leader.leadership() else {
            panic!("no leader")
        };
        let old: FleetId = leader.status().fleet_id.parse().unwrap();
        leader.propose(&put("k", 6), Duration::from_secs(5)).await.unwrap();
        drop(leader);
        let restore = restore_of(Backup::from_snapshot(backup).unwrap());
        // A running replica holds its directory.
        let held = into_disk(restore.clone(), &group.disks["c-0"]).unwrap_err();
        assert!(held.to_string().contains("LOCK"), "{held}");
        group.crash(0);
        let fleet = into_disk(restore.clone(), &group.disks["c-0"]).unwrap();
        assert_eq!((fleet.uuid(), fleet.generation()), (old.uuid(), 1_700_000_000));
        let again = Restore { above: Some(fleet.generation()), ..restore };
        assert_eq!(into_disk(again, &MemoryDisk::new()).unwrap().generation(), 1_700_000_001);
        // The old two go on by themselves, until they see it.
        group.start(0).await.unwrap();
        sleep(Duration::from_secs(70)).await;
        let phases: Vec<Phase> = group.statuses().iter().map(|status| status.phase).collect();
        assert_eq!(phases, [Phase::Open, Phase::Superseded, Phase::Superseded]);
        for ordinal in [1, 2] {
            group.wipe(ordinal);
            group.start(ordinal).await.unwrap();
        }
        let all = group.within(LONG, || {
            let (_, leader) = group.leader()?;
            (leader.status().voters.len() == 3).then_some(leader)
        });
        let leader = all.await.unwrap_or_else(|| panic!("{:#?}", group.statuses()));
        assert_eq!(get(&leader, "k"), Some(5));
        assert_eq!(leader.read(|state| state.recovering()), Some(true));
        assert!(matches!(leader.leadership(), Leadership::Leader { term } if term > old_term));
    });
}
