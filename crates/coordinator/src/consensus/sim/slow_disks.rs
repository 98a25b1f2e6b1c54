//! Disks that are slow, and disks that no longer answer.

use super::*;

const LIMIT: Duration = Duration::from_secs(5);
const FAST: Duration = Duration::from_millis(5);
const SLOW: Duration = Duration::from_millis(800);

impl Group {
    /// All replicas with disks whose every write takes between these times.
    async fn on_slow_disks(seed: u64, shortest: Duration, longest: Duration) -> Self {
        let mut group = Self::stopped(seed, 3);
        for ordinal in 0..3 {
            group.slow(ordinal, shortest, longest);
            group.start(ordinal).await.unwrap();
        }
        group
    }

    fn slow(&self, ordinal: usize, shortest: Duration, longest: Duration) {
        self.disks[&name(ordinal)].slow(shortest, longest, self.random.next());
    }

    /// Writers that write for so long; what was acknowledged to each of them last. All the
    /// while, `look` is asked.
    async fn write_for(
        &self,
        leader: &Consensus,
        time: Duration,
        mut look: impl FnMut(),
    ) -> Vec<(String, u64)> {
        let mut writers = tokio::task::JoinSet::new();
        let end = Instant::now() + time;
        for writer in 0..4 {
            let (leader, key) = (leader.clone(), format!("w-{writer}"));
            writers.spawn(async move {
                let mut acknowledged = 0;
                for value in 1.. {
                    if Instant::now() >= end {
                        break;
                    }
                    match leader.propose(&put(&key, value), LIMIT).await {
                        Ok(_) => acknowledged = value,
                        Err(_) => sleep(Duration::from_millis(50)).await,
                    }
                }
                (key, acknowledged)
            });
        }
        while Instant::now() < end {
            look();
            sleep(Duration::from_millis(20)).await;
        }
        writers.join_all().await
    }
}

/// While it lives, a leader serves without a gap, under one term.
async fn keeps_its_lease(group: &Group) {
    let (_, leader) = group.opened().await;
    sleep(LIMIT).await;
    let (_, leader) = group.leader().unwrap_or((0, leader));
    let led = leader.leadership();
    assert!(matches!(led, Leadership::Leader { .. }), "{:#?}", group.statuses());
    let acknowledged = group
        .write_for(&leader, Duration::from_secs(30), || {
            assert_eq!(leader.leadership(), led, "{:#?}", group.statuses());
        })
        .await;
    assert!(acknowledged.iter().all(|(_, value)| *value > 5), "{acknowledged:?}");
}

#[test]
fn slow_disks_cost_no_leader_its_lease() {
    for seed in seeds(6) {
        run(seed, |seed| async move {
            keeps_its_lease(&Group::on_slow_disks(seed, FAST, SLOW).await).await;
        });
    }
}

/// A disk of 120 fsyncs a second, where none is very slow.
#[test]
fn poor_disks_cost_no_leader_its_lease() {
    for seed in seeds(2) {
        run(seed, |seed| async move {
            let (shortest, longest) = (Duration::from_millis(6), Duration::from_millis(10));
            keeps_its_lease(&Group::on_slow_disks(seed, shortest, longest).await).await;
        });
    }
}

#[test]
fn one_slow_disk_costs_no_leader_its_lease() {
    for seed in seeds(6) {
        run(seed, |seed| async move {
            let group = Group::on_slow_disks(seed, FAST, FAST).await;
            let (first, _) = group.opened().await;
            // The leader's own, or that of one that follows.
            let slow = (first + usize::try_from(seed % 2).unwrap()) % 3;
            group.slow(slow, SLOW, SLOW);
            keeps_its_lease(&group).await;
        });
    }
}

/// Longer than anybody waits.
const HANG: Duration = Duration::from_secs(100);

#[test]
fn a_leader_whose_disk_hangs_is_replaced() {
    for seed in seeds(5) {
        run(seed, |seed| async move {
            let group = Group::on_slow_disks(seed, FAST, FAST).await;
            let (old, leader) = group.opened().await;
            leader.propose(&put("k", 1), LIMIT).await.unwrap();
            group.slow(old, HANG, HANG);
            let (begun, timers) = (Instant::now(), group.config(0).timers);
            // Nobody knows that it hangs before something is to be written.
            let lost = leader.propose(&put("k", 2), LIMIT).await.unwrap_err();
            assert!(matches!(lost, ProposeError::Unavailable | ProposeError::Deposed), "{lost}");
            let next = group.within(LIMIT, || group.leader().filter(|(i, _)| *i != old));
            let (_, next) = next.await.unwrap_or_else(|| panic!("{:#?}", group.statuses()));
            assert!(begun.elapsed() < timers.election * 12, "{:?}", begun.elapsed());
            assert!(!matches!(leader.leadership(), Leadership::Leader { .. }));
            assert_eq!(get(&next, "k"), Some(1));
            next.propose(&put("k", 3), LIMIT).await.unwrap();
            // It comes back, and finds itself replaced.
            group.slow(old, FAST, FAST);
            sleep(HANG * 2).await;
            let status = leader.status();
            assert_eq!((status.role, status.leader_id), ("follower", next.status().node_id));
            let same = |one: &Consensus| one.peek(crate::state::State::to_payload);
            assert_eq!(same(&leader), same(&next));
        });
    }
}

/// A follower whose disk hangs is no part of a quorum: reports that nothing can be
/// committed for are not taken.
#[test]
fn a_follower_whose_disk_hangs_does_not_count() {
    run(1, |seed| async move {
        let mut group = Group::on_slow_disks(seed, FAST, FAST).await;
        let (first, leader) = group.opened().await;
        let led = leader.leadership();
        let hanging = (first + 1) % 3;
        group.slow(hanging, HANG, HANG);
        for value in 1..50 {
            leader.propose(&put("k", value), LIMIT).await.unwrap();
            sleep(Duration::from_millis(200)).await;
            assert_eq!(leader.leadership(), led);
        }
        group.crash((first + 2) % 3);
        sleep(group.config(0).timers.lease).await;
        assert_eq!(leader.leadership(), Leadership::None);
    });
}
