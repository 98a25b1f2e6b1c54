//! After a restore, with the service and shards that follow the rules of theirs
//! (coordinator chapter §10): the rows of §16 that speak of backups, by their names.

use bigfleet_net::peer::{Peer, Transport as Connection};
use bigfleet_scripted::holder::Holder;
use bigfleet_wire::v1alpha1::{self as wire, coordinator_server::Coordinator as _};
use prometheus_client::{encoding::text::encode, registry::Registry};
use tonic::{Code, Request, Status as Refusal};

use super::*;
use crate::{log::StoredSnapshot, metrics::Metrics, reports::LivenessLimits, service::Coordinator};

const LONG: Duration = Duration::from_secs(400);
/// 2023-11-14, in ms.
const NOW: u64 = 1_700_000_000_000;

/// The service of one replica, called as its server would.
struct Service {
    coordinator: Coordinator<Consensus>,
    registry: Registry,
}

impl Service {
    fn of(replica: &Consensus) -> Self {
        let (metrics, mut registry) = (Arc::new(Metrics::default()), Registry::default());
        metrics.register(&mut registry);
        let replica = Arc::new(replica.clone());
        let coordinator = Coordinator::new(replica, LivenessLimits::default(), metrics);
        Self { coordinator, registry }
    }

    /// One report of a shard.
    async fn hear(&self, shard: &mut Holder) -> Result<wire::ReportAck, Refusal> {
        let report = called(shard.report());
        let ack = self.coordinator.report_shard(report).await?.into_inner();
        shard.take(&ack);
        Ok(ack)
    }

    /// Reports of a shard until it has heard all that is new.
    async fn settle(&self, shard: &mut Holder) {
        for _ in 0..4 {
            self.hear(shard).await.unwrap();
        }
    }

    async fn confirm(&self) -> Result<wire::ConfirmRestoreResponse, Refusal> {
        let request = called(wire::ConfirmRestoreRequest {});
        self.coordinator.confirm_restore(request).await.map(tonic::Response::into_inner)
    }

    async fn assign(&self, value: &str, shard: &str) -> Result<(), Refusal> {
        let request = wire::AssignDomainRequest {
            topology_key: "zone".into(),
            topology_value: value.into(),
            shard_id: shard.into(),
        };
        self.coordinator.assign_domain(called(request)).await.map(drop)
    }

    async fn give(&self, value: &str, from: &str, to: &str) {
        let request = wire::MoveDomainRequest {
            topology_key: "zone".into(),
            topology_value: value.into(),
            from_shard_id: from.into(),
            to_shard_id: to.into(),
        };
        self.coordinator.move_domain(called(request)).await.unwrap();
    }

    fn counted(&self, name: &str) -> u64 {
        let mut text = String::new();
        encode(&mut text, &self.registry).unwrap();
        let line = text.lines().find(|line| line.contains(name) && !line.starts_with('#'));
        line.and_then(|line| line.rsplit(' ').next()).unwrap().parse().unwrap()
    }
}

fn called<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    let peer = Peer::new(([127, 0, 0, 1], 1).into(), Connection::Plaintext);
    request.extensions_mut().insert(peer);
    request
}

/// A fleet whose shards a and b hold zones 1, 3 and 2, and a backup of it.
async fn a_fleet_with_a_backup(group: &Group) -> (Consensus, Service, [Holder; 2], StoredSnapshot) {
    let (_, leader) = group.opened().await;
    let service = Service::of(&leader);
    let (mut a, mut b) = (Holder::new("a"), Holder::new("b"));
    service.settle(&mut a).await;
    service.settle(&mut b).await;
    for (zone, shard) in [("1", "a"), ("2", "b"), ("3", "a")] {
        service.assign(zone, shard).await.unwrap();
    }
    service.settle(&mut a).await;
    service.settle(&mut b).await;
    assert_eq!((a.domains(), b.domains()), (vec!["1", "3"], vec!["2"]));
    let backup = leader.snapshot().unwrap();
    (leader, service, [a, b], backup)
}

fn restore(backup: &StoredSnapshot, disk: &MemoryDisk, address: &str, now: u64) -> FleetId {
    let restore = Restore {
        raft_address: address.to_owned(),
        now,
        incarnation: now,
        ..restore_of(Backup::from_snapshot(backup.clone()).unwrap())
    };
    into_disk(restore, disk).unwrap()
}

async fn all_three(group: &Group) -> Consensus {
    let all = group.within(LONG, || {
        let (_, leader) = group.leader()?;
        (leader.status().voters.len() == 3).then_some(leader)
    });
    all.await.unwrap_or_else(|| panic!("{:#?}", group.statuses()))
}

/// All disks but the first are emptied, the first has the backup: the runbook.
async fn run_the_runbook(group: &mut Group, backup: &StoredSnapshot, now: u64) -> Consensus {
    group.crash(0);
    restore(backup, &group.disks["c-0"], "c-0", now);
    for ordinal in [1, 2] {
        group.wipe(ordinal);
    }
    for ordinal in 0..3 {
        group.start(ordinal).await.unwrap();
    }
    all_three(group).await
}

fn hands(value: &str, from: &str, to: &str) -> wire::ChangedHands {
    wire::ChangedHands {
        topology_key: "zone".into(),
        topology_value: value.into(),
        from_shard_id: from.into(),
        to_shard_id: to.into(),
        ..wire::ChangedHands::default()
    }
}

#[test]
fn fault_restored_from_a_backup_twice_from_one_backup() {
    run(20, |seed| async move {
        let mut group = Group::new(seed, 3).await;
        let (leader, service, [mut a, mut b], backup) = a_fleet_with_a_backup(&group).await;
        // What the backup does not know: 3 moves to b, c comes and has 4.
        service.give("3", "a", "b").await;
        let mut c = Holder::new("c");
        service.settle(&mut c).await;
        service.assign("4", "c").await.unwrap();
        for shard in [&mut a, &mut b, &mut c] {
            service.settle(shard).await;
        }
        assert_eq!((a.domains(), b.domains(), c.domains()), (vec!["1"], vec!["2", "3"], vec!["4"]));
        drop((leader, service));

        let made = backup.meta.made_at().unwrap();
        // The second restore is of the same second, into the same directory.
        for (round, now) in [NOW, NOW + 1].into_iter().enumerate() {
            let marks = a.mark.max(b.mark).max(c.mark);
            let leader = run_the_runbook(&mut group, &backup, now).await;
            assert!(matches!(leader.leadership(), Leadership::Leader { term } if term > marks));
            let service = Service::of(&leader);
            recover(&service, [&mut a, &mut b, &mut c]).await;
            let found = service.confirm().await.unwrap();
            assert_eq!((found.shards, found.domains), (4, 4), "round {round}");
            assert_eq!(found.backup_unix_ns, i64::try_from(made).unwrap() * 1_000_000);
            assert_eq!(found.changed, [hands("3", "a", "b"), hands("4", "", "c")]);
            // At the next report; and no owner changes.
            for (shard, held) in
                [(&mut a, vec!["1"]), (&mut b, vec!["2", "3"]), (&mut c, vec!["4"])]
            {
                let ack = service.hear(shard).await.unwrap();
                assert!(ack.assignment.is_some() && !ack.want_holdings, "{}", shard.id());
                assert_eq!(shard.domains(), held, "{}", shard.id());
            }
            service.assign("9", "a").await.unwrap();
            assert_eq!(service.confirm().await.unwrap(), Default::default(), "said once");
        }
    });
}

/// Every shard says what it holds; one of them, d, what is another's.
async fn recover(service: &Service, [a, b, c]: [&mut Holder; 3]) {
    // Of the old generation: the shard learns of the new one, and no more.
    let ack = service.hear(a).await.unwrap();
    assert!(!ack.acknowledged && !ack.want_holdings && ack.assignment.is_none());
    let ack = service.hear(a).await.unwrap();
    assert!(ack.want_holdings && ack.assignment.is_none() && ack.instructions.is_empty());
    assert_eq!(ack.next_report_after_ms, 1_000);
    let refused = service.assign("5", "a").await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(refused.message().starts_with("recovering"), "{refused}");
    let missing = service.confirm().await.unwrap_err();
    assert_eq!(missing.code(), Code::FailedPrecondition);
    assert!(missing.message().contains("hold since the restore: a, b;"), "{missing}");
    let ack = service.hear(a).await.unwrap();
    assert!(!ack.want_holdings, "a has said it");
    service.settle(b).await;
    let mut d = Holder::new("d");
    service.hear(&mut d).await.unwrap();
    let missing = service.confirm().await.unwrap_err();
    assert!(missing.message().contains(": d;"), "registered since, and silent: {missing}");
    assert_eq!(service.counted("adoption_conflicts_total"), 0);
    d.stored.domains.push(wire::DomainAssignment {
        topology_key: "zone".into(),
        topology_value: "2".into(),
        shard_id: "d".into(),
    });
    service.settle(&mut d).await;
    assert_eq!(service.counted("adoption_conflicts_total"), 1, "2 stays with b");
    service.settle(c).await;
}

/// It reports, and cannot say what it holds: a call of its predecessor may still arrive.
#[test]
fn fault_provider_down_after_a_restore() {
    run(21, |seed| async move {
        let mut group = Group::new(seed, 3).await;
        let (leader, service, [mut a, mut b], backup) = a_fleet_with_a_backup(&group).await;
        drop((leader, service));
        let leader = run_the_runbook(&mut group, &backup, NOW).await;
        let service = Service::of(&leader);
        service.settle(&mut a).await;
        for _ in 0..4 {
            let unsure = wire::ShardReport { holdings: None, assignment_version: 0, ..b.report() };
            let ack = service.coordinator.report_shard(called(unsure)).await.unwrap().into_inner();
            assert!(ack.assignment.is_none());
            b.take(&ack);
        }
        let missing = service.confirm().await.unwrap_err();
        let says = [": b;", "one that reports waits for its provider"];
        assert!(says.iter().all(|says| missing.message().contains(says)), "{missing}");
        service.settle(&mut b).await;
        let found = service.confirm().await.unwrap();
        assert!(found.changed.is_empty(), "{found:?}");
    });
}

#[test]
fn confirm_restore_waits_for_every_shard_that_is_not_removed() {
    run(21, |seed| async move {
        let mut group = Group::new(seed, 3).await;
        let (leader, service, [mut a, _], backup) = a_fleet_with_a_backup(&group).await;
        drop((leader, service));
        let leader = run_the_runbook(&mut group, &backup, NOW).await;
        let service = Service::of(&leader);
        service.settle(&mut a).await;
        let missing = service.confirm().await.unwrap_err();
        assert!(missing.message().contains(": b;"), "{missing}");
        // A new leader knows who has been heard: that is replicated.
        drop((leader, service));
        let (first, _) = group.leader().unwrap();
        group.crash(first);
        let (_, leader) = group.opened().await;
        let service = Service::of(&leader);
        let missing = service.confirm().await.unwrap_err();
        assert!(missing.message().contains(": b;"), "{missing}");
        let remove = wire::RemoveShardRequest { shard_id: "b".into() };
        service.coordinator.remove_shard(called(remove)).await.unwrap();
        let found = service.confirm().await.unwrap();
        assert_eq!(found.changed, [hands("2", "b", "")]);
        service.hear(&mut a).await.unwrap();
        assert_eq!(a.domains(), ["1", "3"]);
    });
}

#[test]
fn fault_old_fleet_left_running_beside_a_restored_one() {
    run(22, |seed| async move {
        let mut group = Group::new(seed, 3).await;
        let (old, service, [mut a, _], backup) = a_fleet_with_a_backup(&group).await;
        let disk = MemoryDisk::new();
        let fleet = restore(&backup, &disk, "restored", NOW);
        let config = Config { raft_address: "restored".to_owned(), ..group.config(0) };
        let restored = group.start_as("restored", config, disk).await.unwrap();
        let leads = || matches!(restored.leadership(), Leadership::Leader { .. }).then_some(());
        group.within(LONG, leads).await.unwrap();
        Service::of(&restored).settle(&mut a).await;
        assert_eq!(a.fleet, fleet.to_string());
        // The old leader lives still, and has nothing to say to a.
        assert!(matches!(old.leadership(), Leadership::Leader { .. }));
        let refused = service.hear(&mut a).await.unwrap_err();
        assert_eq!(refused.code(), Code::Aborted);
        assert!(refused.message().starts_with("superseded"), "{refused}");
        assert_eq!(service.counted("foreign_fleet_total"), 1);
        assert_eq!(old.status().phase, Phase::Open, "one bad shard cannot stop a fleet");
        let superseded = group.within(Duration::from_secs(80), || {
            let statuses = group.statuses();
            statuses.iter().all(|status| status.phase == Phase::Superseded).then_some(())
        });
        superseded.await.unwrap_or_else(|| panic!("{:#?}", group.statuses()));
        let refused = service.hear(&mut Holder::new("z")).await.unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition);
        assert_eq!(refused.message(), format!("superseded by {fleet}"));
        assert_eq!(restored.status().phase, Phase::Open);
        Service::of(&restored).hear(&mut a).await.unwrap();
    });
}

#[test]
fn fault_an_old_replica_returns_with_data_after_a_restore() {
    run(23, |seed| async move {
        let mut group = Group::new(seed, 3).await;
        let (leader, service, _, backup) = a_fleet_with_a_backup(&group).await;
        drop((leader, service));
        for ordinal in 0..3 {
            group.crash(ordinal);
        }
        restore(&backup, &group.disks["c-0"], "c-0", NOW);
        group.wipe(1);
        // c-2 was away and comes back as it was.
        for ordinal in 0..3 {
            group.start(ordinal).await.unwrap();
        }
        let superseded = group.within(Duration::from_secs(80), || {
            let old = group.replica(2)?;
            let (_, leader) = group.leader()?;
            assert!(!leader.status().voters.contains(&name(2)), "{:#?}", group.statuses());
            assert!(!matches!(old.leadership(), Leadership::Leader { .. }));
            (old.status().phase == Phase::Superseded).then_some(old)
        });
        let old = superseded.await.unwrap_or_else(|| panic!("{:#?}", group.statuses()));
        let refused = Service::of(&old).hear(&mut Holder::new("z")).await.unwrap_err();
        assert!(refused.message().starts_with("superseded by"), "{refused}");
        let (_, leader) = group.leader().unwrap();
        assert_eq!(leader.status().voters, ["c-0", "c-1"]);
        drop((old, leader));
        group.wipe(2);
        group.start(2).await.unwrap();
        all_three(&group).await;
    });
}
