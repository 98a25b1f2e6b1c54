//! Forming, failing over, handing over, staying silent.

use super::*;

const LIMIT: Duration = Duration::from_secs(5);

#[test]
fn three_replicas_form_open_and_commit() {
    run(1, |seed| async move {
        let group = Group::new(seed, 3).await;
        let (_, leader) = group.opened().await;
        let done = leader.propose(&put("k", 7), LIMIT).await.unwrap();
        assert!(done.outcome.is_ok());
        assert_eq!(get(&leader, "k"), Some(7));
        assert_eq!(leader.status().voters, ["c-0", "c-1", "c-2"]);
    });
}

#[test]
fn a_dead_leader_is_followed_within_two_seconds() {
    for seed in seeds(20) {
        run(seed, |seed| async move {
            let mut group = Group::new(seed, 3).await;
            let (old, leader) = group.opened().await;
            let Leadership::Leader { term } = leader.leadership() else { panic!("no leader") };
            leader.propose(&put("k", 1), LIMIT).await.unwrap();
            drop(leader);
            group.crash(old);
            let begun = Instant::now();
            let (new, leader) = group.opened().await;
            let took = begun.elapsed();
            assert!(took < Duration::from_secs(2), "{took:?}");
            assert_ne!(old, new);
            assert!(matches!(leader.leadership(), Leadership::Leader { term: now } if now > term));
            assert_eq!(get(&leader, "k"), Some(1));
            drop(leader);
            group.start(old).await.unwrap();
            let back = group.within(LIMIT, || {
                let status = group.replica(old)?.status();
                (status.leader_id == name(new)).then_some(status)
            });
            assert_eq!(back.await.unwrap().role, "follower");
        });
    }
}

#[test]
fn a_leader_without_quorum_is_silent_within_its_lease() {
    run(3, |seed| async move {
        let group = Group::new(seed, 3).await;
        let (old, leader) = group.opened().await;
        group.net.isolate(&name(old), (0..3).filter(|i| *i != old).map(name));
        sleep(group.config(0).timers.lease).await;
        assert_eq!(leader.leadership(), Leadership::None);
        assert_eq!(get(&leader, "k"), None);
        let refused = leader.propose(&put("k", 1), LIMIT).await;
        assert_eq!(refused.unwrap_err(), ProposeError::NotLeader);
        let next = group.within(LIMIT, || group.leader().filter(|(i, _)| *i != old));
        let (_, next) = next.await.unwrap();
        next.propose(&put("k", 2), LIMIT).await.unwrap();
        group.net.heal();
        let follows = group.within(LIMIT, || {
            matches!(leader.leadership(), Leadership::Follower { .. }).then_some(())
        });
        follows.await.unwrap();
        // A pre-vote kept the parted replica from raising the term.
        assert_eq!(leader.status().term, next.status().term);
    });
}

/// What it says arrives, and no answer comes back.
#[test]
fn a_leader_that_is_heard_and_does_not_hear_is_replaced() {
    for seed in seeds(10) {
        run(seed, |seed| async move {
            let group = Group::new(seed, 3).await;
            let (old, leader) = group.opened().await;
            for other in (0..3).filter(|other| *other != old) {
                group.net.cut(&name(other), &name(old));
            }
            sleep(group.config(0).timers.lease).await;
            assert_eq!(leader.leadership(), Leadership::None);
            let next = group.within(LIMIT, || group.leader().filter(|(i, _)| *i != old));
            next.await.unwrap_or_else(|| panic!("{:#?}", group.statuses()));
        });
    }
}

/// A voter promises the leader its silence, dies, and is back at once: it has forgotten, and
/// the lease has not run out.
#[test]
fn a_voter_that_has_just_started_keeps_the_word_of_its_predecessor() {
    for seed in seeds(10) {
        run(seed, |seed| async move {
            let mut group = Group::new(seed, 3).await;
            let (first, leader) = group.opened().await;
            let (voter, candidate) = ((first + 1) % 3, (first + 2) % 3);
            // The candidate hears nobody for long enough to stand; its log is as long as any.
            let timers = group.config(0).timers;
            let rival = group.replica(candidate).unwrap();
            let settled = group.within(LIMIT, || {
                let last = |one: &Consensus| one.shared.running().unwrap().log.last();
                (last(&rival) == last(&leader)).then_some(())
            });
            settled.await.unwrap();
            group.net.isolate(&name(candidate), [name(first)]);
            sleep(timers.election).await;
            let running = rival.shared.running().unwrap();
            // The leader's last word to the voter, which then forgets it.
            sleep(Duration::from_millis(group.random.next() % 200)).await;
            group.net.isolate(&name(first), [name(voter)]);
            group.crash(voter);
            let voter = group.start(voter).await.unwrap();
            // Stands as soon as anybody lets it, as one does whom a leader has named.
            assert!(matches!(running.answer(Request::Campaign).await, Ok(Response::Campaign)));
            let leads = |one: &Consensus| matches!(one.leadership(), Leadership::Leader { .. });
            let end = Instant::now() + LIMIT;
            while !leads(&rival) && !leads(&voter) {
                assert!(Instant::now() < end, "{:#?}", group.statuses());
                sleep(Duration::from_millis(1)).await;
            }
            assert!(!leads(&leader), "{:#?}", group.statuses());
        });
    }
}

/// A voter elects another, restarts, and is then within reach of the old leader alone.
#[test]
fn a_voter_promises_nothing_to_whom_it_voted_out_before_it_started() {
    for seed in seeds(20) {
        run(seed, |seed| async move {
            let mut group = Group::new(seed, 3).await;
            let (old, leader) = group.opened().await;
            group.net.isolate(&name(old), (0..3).filter(|i| *i != old).map(name));
            let next = group.within(LIMIT, || group.leader().filter(|(i, _)| *i != old));
            let (new, _) = next.await.unwrap();
            let voter = 3 - old - new;
            sleep(Duration::from_millis(group.random.next() % 3_000)).await;
            group.crash(voter);
            group.start(voter).await.unwrap();
            group.net.heal();
            group.net.isolate(&name(new), [name(old), name(voter)]);
            for _ in 0..1_000 {
                let now = leader.leadership();
                assert!(!matches!(now, Leadership::Leader { term: 1 }), "{:#?}", group.statuses());
                sleep(Duration::from_millis(1)).await;
            }
        });
    }
}

#[test]
fn a_parted_follower_disturbs_nobody_when_it_returns() {
    run(4, |seed| async move {
        let group = Group::new(seed, 3).await;
        let (first, leader) = group.opened().await;
        let parted = (first + 1) % 3;
        let before = leader.leadership();
        group.net.isolate(&name(parted), (0..3).filter(|i| *i != parted).map(name));
        sleep(Duration::from_secs(20)).await;
        group.net.heal();
        sleep(Duration::from_secs(5)).await;
        assert_eq!(leader.leadership(), before);
    });
}

#[test]
fn leadership_is_handed_over_at_shutdown() {
    for seed in seeds(10) {
        run(seed, |seed| async move {
            let group = Group::new(seed, 3).await;
            let (old, leader) = group.opened().await;
            leader.propose(&put("k", 1), LIMIT).await.unwrap();
            let begun = Instant::now();
            leader.shutdown().await;
            group.net.detach(&name(old));
            let (new, leader) = group.opened().await;
            assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
            assert_ne!(old, new);
            assert_eq!(get(&leader, "k"), Some(1));
        });
    }
}

#[test]
fn a_full_disk_hands_leadership_away() {
    run(5, |seed| async move {
        let group = Group::new(seed, 3).await;
        let (old, leader) = group.opened().await;
        group.disks[&name(old)].set_free(1 << 20);
        let next =
            group.within(Duration::from_secs(20), || group.leader().filter(|(i, _)| *i != old));
        next.await.unwrap();
        assert!(!leader.is_ready());
        group.disks[&name(old)].set_free(u64::MAX);
        let ready = group.within(Duration::from_secs(20), || leader.is_ready().then_some(()));
        ready.await.unwrap();
    });
}

#[test]
fn a_full_restart_forms_again_and_keeps_all() {
    run(6, |seed| async move {
        let mut group = Group::new(seed, 3).await;
        let (_, leader) = group.opened().await;
        leader.propose(&put("k", 9), LIMIT).await.unwrap();
        drop(leader);
        (0..3).for_each(|ordinal| group.crash(ordinal));
        for ordinal in 0..3 {
            group.start(ordinal).await.unwrap();
        }
        let (_, leader) = group.opened().await;
        assert_eq!(get(&leader, "k"), Some(9));
    });
}

#[test]
fn a_lagging_replica_is_brought_back_by_a_snapshot() {
    run(7, |seed| async move {
        let mut group = Group::new(seed, 3).await;
        let (first, leader) = group.opened().await;
        let away = (first + 1) % 3;
        group.wipe(away);
        for value in 0..2_000 {
            leader.propose(&put("k", value), LIMIT).await.unwrap();
        }
        // The log behind the snapshot goes too, further than is kept by default.
        let running = leader.shared.running().unwrap();
        running.raft.trigger().snapshot().await.unwrap();
        let cut = group.within(LIMIT, || {
            let at = running.raft.metrics().borrow().snapshot?;
            (at.index >= 2_000).then_some(at.index)
        });
        let cut = cut.await.unwrap();
        running.raft.trigger().purge_log(cut).await.unwrap();
        sleep(Duration::from_secs(1)).await;
        group.start(away).await.unwrap();
        let back = group.within(Duration::from_secs(60), || {
            let replica = group.replica(away)?;
            let voters = leader.status().voters.len() == 3;
            let value = replica.peek(|state| state.providers().get("k").map(|p| p.address.clone()));
            (voters && value? == Some("1999".to_owned())).then_some(())
        });
        back.await.unwrap_or_else(|| panic!("{:#?}", group.statuses()));
    });
}

#[test]
fn a_failed_write_ends_the_process_and_the_others_go_on() {
    for fault in [crate::log::memory::Fault::Error, crate::log::memory::Fault::ShortWrite(5)] {
        run(8, |seed| async move {
            let mut group = Group::new(seed, 3).await;
            let (old, leader) = group.opened().await;
            leader.propose(&put("k", 1), LIMIT).await.unwrap();
            group.disks[&name(old)].fail_after(0, fault);
            let lost = leader.propose(&put("k", 2), LIMIT).await;
            let lost = lost.unwrap_err();
            assert!(matches!(lost, ProposeError::Unavailable | ProposeError::Deposed), "{lost}");
            let fatal = group.within(LIMIT, || leader.fatal().borrow().clone()).await.unwrap();
            assert!(fatal.contains("/data/wal/"), "{fatal}");
            drop(leader);
            group.crash(old);
            let (_, leader) = group.opened().await;
            assert_eq!(get(&leader, "k"), Some(1));
            drop(leader);
            group.start(old).await.unwrap();
            let back = group.within(LIMIT, || {
                let status = group.replica(old)?.status();
                (!status.leader_id.is_empty()).then_some(())
            });
            back.await.unwrap();
        });
    }
}

#[test]
fn without_a_quorum_nobody_serves_and_everybody_lives() {
    run(9, |seed| async move {
        let mut group = Group::new(seed, 3).await;
        let (left, leader) = group.opened().await;
        let others: Vec<usize> = (0..3).filter(|ordinal| *ordinal != left).collect();
        others.iter().for_each(|ordinal| group.crash(*ordinal));
        sleep(Duration::from_secs(3_600)).await;
        assert_eq!(leader.leadership(), Leadership::None);
        assert!(!leader.is_ready());
        assert_eq!(*leader.fatal().borrow(), None);
        drop(leader);
        for ordinal in others {
            group.start(ordinal).await.unwrap();
        }
        group.opened().await;
    });
}

/// Few entries may be much: what is kept behind a snapshot has a bound in bytes.
#[test]
fn large_entries_do_not_stay_in_memory() {
    run(30, |seed| async move {
        const BYTES: usize = 64 << 10;
        let mut group = Group::stopped(seed, 3);
        for ordinal in 0..3 {
            let mut config = group.config(ordinal);
            let interval = config.compaction.interval;
            config.compaction = Compaction { interval, bytes: BYTES, ..Compaction::default() };
            let disk = group.disks[&name(ordinal)].clone();
            group.start_as(&name(ordinal), config, disk).await.unwrap();
        }
        let (first, leader) = group.opened().await;
        let large = |number: u32| Command::UpsertProvider {
            name: "k".to_owned(),
            address: format!("{number:04096}"),
            region: String::new(),
        };
        for number in 0..100 {
            leader.propose(&large(number), LIMIT).await.unwrap();
        }
        let weight = |replica: &Consensus| {
            replica.shared.running().map_or(0, |running| running.log.weight_after(None))
        };
        assert!(weight(&leader) > 5 * BYTES, "they are large");
        let bounded = group.within(Duration::from_secs(60), || {
            let all = (0..3).filter_map(|ordinal| group.replica(ordinal));
            all.map(|one| weight(&one)).all(|weight| weight <= BYTES).then_some(())
        });
        bounded.await.unwrap_or_else(|| panic!("{} bytes stay", weight(&leader)));
        // Who comes after that is sent the snapshot.
        let wiped = (first + 1) % 3;
        group.wipe(wiped);
        let replica = group.start(wiped).await.unwrap();
        let index = leader.status().applied_index;
        let back = group.within(Duration::from_secs(60), || {
            (replica.status().applied_index >= index).then_some(())
        });
        back.await.unwrap_or_else(|| panic!("{:#?}", group.statuses()));
        assert_eq!(replica.peek(|state| state.providers()["k"].address.len()), Some(4096));
    });
}

#[test]
fn entries_behind_a_snapshot_are_purged_but_for_the_trailing_ones() {
    run(31, |seed| async move {
        let mut group = Group::stopped(seed, 3);
        for ordinal in 0..3 {
            let mut config = group.config(ordinal);
            config.compaction.bytes = Compaction::default().bytes;
            let disk = group.disks[&name(ordinal)].clone();
            group.start_as(&name(ordinal), config, disk).await.unwrap();
        }
        let (_, leader) = group.opened().await;
        for value in 0..60 {
            leader.propose(&put("k", value), LIMIT).await.unwrap();
        }
        let trailing = group.config(0).compaction.trailing;
        let purged = |replica: &Consensus| {
            let running = replica.shared.running().unwrap();
            let metrics = running.raft.metrics();
            let metrics = metrics.borrow();
            (metrics.snapshot.map(|at| at.index), metrics.purged.map(|at| at.index))
        };
        let all = group.within(Duration::from_secs(60), || {
            let mut replicas = (0..3).filter_map(|ordinal| group.replica(ordinal));
            let done = |one: Consensus| {
                let (snapshot, purged) = purged(&one);
                snapshot >= Some(60) && purged == snapshot.map(|at| at - trailing)
            };
            replicas.all(done).then_some(())
        });
        all.await.unwrap_or_else(|| panic!("{:?}", purged(&leader)));
    });
}
