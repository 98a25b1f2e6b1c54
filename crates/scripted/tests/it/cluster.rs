//! A cluster without a network: the picture is made by hand.

use std::collections::BTreeMap;

use bigfleet_model::{MachineState, gate, machine::ZONE_LABEL};
use bigfleet_scripted::{
    cluster::{Churn, Cluster, Shape},
    operator::{Cordon, Machine, Picture},
};
use bigfleet_wire::v1alpha1::NodeStateUpdate;

const GIB: i64 = 1 << 30;

/// A machine of 4 cores and 16 GiB.
fn add(picture: &mut Picture, id: &str, zone: &str) {
    let frame = NodeStateUpdate {
        machine_id: id.to_owned(),
        labels: BTreeMap::from([(ZONE_LABEL.to_owned(), zone.to_owned())]),
        ..Default::default()
    };
    let capacity = Shape::new(4_000, 16 * GIB).request().clone();
    let machine = Machine { state: MachineState::Configured, capacity, frame, session: 1 };
    picture.machines.insert(id.to_owned(), machine);
}

fn machines(count: usize) -> Picture {
    let mut picture = Picture::default();
    (0..count).for_each(|number| add(&mut picture, &format!("m-{number:02}"), "zone-a"));
    picture
}

fn small() -> Shape {
    Shape::new(2_000, 4 * GIB)
}

#[test]
fn a_roll_up_is_what_a_shard_takes_as_it_stands() {
    let mut cluster = Cluster::new("c", 1);
    cluster.deploy(&small().zones(&["zone-b", "zone-a"]), 3);
    cluster.deploy(&small(), 2);
    cluster.deploy(&Shape::new(500, GIB).device("nvidia.com/gpu", 1).priority(-5), 1);
    cluster.deploy(&small(), 4);
    cluster.deploy(&small().same(ZONE_LABEL), 2);
    cluster.deploy(&small().same(ZONE_LABEL), 2);
    cluster.deploy(&small().priority(9), 0);
    let message = cluster.step(5, &Picture::default());
    assert_eq!((message.cluster_id.as_str(), message.timestamp_unix_nanos), ("c", 5));
    let taken = gate::demand::roll_up(cluster.id(), message.clone()).unwrap();
    let again: Vec<_> = taken.needs.iter().map(Into::into).collect();
    assert_eq!(message.needs, again, "merged, canonical, in identity order");
    assert_eq!(message.needs.len(), 5, "equal shapes are one need, gangs are their own");
    let plain = message
        .needs
        .iter()
        .find(|need| need.priority == 0 && need.requirements.is_empty())
        .unwrap();
    assert_eq!(plain.aggregate_resources["cpu"], "12");
    assert_eq!(plain.min_unit["memory"], "4Gi");
    assert_eq!(cluster.step(5, &Picture::default()).timestamp_unix_nanos, 6, "strictly rising");
}

#[test]
fn pods_bind_where_there_is_room_and_demand_is_met_with_the_last() {
    let mut cluster = Cluster::new("c", 1);
    cluster.deploy(&small(), 4);
    let one = machines(1);
    let asked = cluster.step(1, &one);
    assert_eq!((cluster.live(), cluster.waiting(), cluster.demand_met(&one)), (4, 2, false));
    let two = machines(2);
    assert_eq!(cluster.step(2, &two).needs, asked.needs, "demand is what lives, bound or not");
    assert_eq!((cluster.waiting(), cluster.demand_met(&two)), (0, true));
    assert!(!cluster.demand_met(&one), "met by this picture only");
}

#[test]
fn a_machine_that_leaves_evicts_and_changes_no_demand() {
    let mut cluster = Cluster::new("c", 1);
    cluster.deploy(&small(), 4);
    let whole = machines(2);
    let asked = cluster.step(1, &whole);
    let leave: [fn(&mut Picture); 3] = [
        |picture| drop(picture.machines.remove("m-00")),
        |picture| picture.machines.get_mut("m-00").unwrap().state = MachineState::Draining,
        |picture| {
            let cordon = Cordon { instruction: "i".into(), session: 1, seen_leaving: false };
            picture.cordons.insert("m-00".into(), cordon);
        },
    ];
    for (turn, leave) in leave.into_iter().enumerate() {
        let mut less = whole.clone();
        leave(&mut less);
        assert!(!cluster.demand_met(&less));
        assert_eq!(cluster.step(2, &less).needs, asked.needs);
        assert_eq!((cluster.waiting(), cluster.evictions()), (2, 2 * (turn as u64 + 1)));
        cluster.step(3, &whole);
        assert!(cluster.demand_met(&whole));
    }
}

#[test]
fn a_gang_shares_its_domain_or_waits() {
    let mut cluster = Cluster::new("c", 1);
    cluster.deploy(&small().same(ZONE_LABEL), 4);
    let mut picture = Picture::default();
    add(&mut picture, "a", "zone-a");
    add(&mut picture, "b", "zone-b");
    cluster.step(1, &picture);
    assert_eq!(cluster.waiting(), 4, "no zone holds all of it");
    add(&mut picture, "b2", "zone-b");
    cluster.step(2, &picture);
    assert!(cluster.demand_met(&picture));
    let homes: Vec<_> = cluster.pods().map(|(_, pod)| pod.machine.clone().unwrap()).collect();
    assert!(homes.iter().all(|home| home.starts_with('b')), "{homes:?}");

    let mut moved = picture.clone();
    let frame = &mut moved.machines.get_mut("b2").unwrap().frame;
    frame.labels.insert(ZONE_LABEL.to_owned(), "zone-a".to_owned());
    assert!(!cluster.demand_met(&moved), "torn apart");
}

#[test]
fn a_pod_moves_where_that_lets_another_in() {
    let mut cluster = Cluster::new("c", 1);
    cluster.deploy(&Shape::new(4_000, 8 * GIB), 1);
    let mut picture = Picture::default();
    add(&mut picture, "a", "zone-a");
    cluster.step(1, &picture);
    cluster.deploy(&Shape::new(4_000, 8 * GIB).zones(&["zone-a"]), 1);
    add(&mut picture, "b", "zone-b");
    cluster.step(2, &picture);
    assert!(cluster.demand_met(&picture));
    assert_eq!((cluster.moves(), cluster.evictions()), (1, 0));
}

#[test]
fn churn_is_the_seed_s_and_none_by_default() {
    let run = |seed, churn| {
        let mut cluster = Cluster::new("c", seed);
        cluster.deploy(&small(), 20);
        cluster.deploy(&small().priority(1).same(ZONE_LABEL), 4);
        cluster.set_churn(churn);
        let picture = machines(10);
        let steps: Vec<_> = (1..50).map(|now| cluster.step(now, &picture).needs).collect();
        let sizes: Vec<usize> = (0..2)
            .map(|number| cluster.pods().filter(|(workload, _)| *workload == number).count())
            .collect();
        (steps, sizes)
    };
    let churn = Churn { replaced: 50, scaled: 300 };
    assert_eq!(run(1, churn), run(1, churn));
    assert_ne!(run(1, churn).0, run(2, churn).0);
    let (calm, sizes) = run(1, Churn::default());
    assert!(calm.iter().all(|needs| *needs == calm[0]));
    assert_eq!(sizes, [20, 4]);
    for seed in 0..20 {
        let (_, sizes) = run(seed, churn);
        assert!((10..=40).contains(&sizes[0]) && sizes[1] == 4, "{seed}: {sizes:?}");
    }
}

#[test]
fn scaling_lets_those_go_first_that_run_nowhere() {
    let mut cluster = Cluster::new("c", 1);
    let workload = cluster.deploy(&small(), 4);
    let picture = machines(1);
    cluster.step(1, &picture);
    cluster.scale(workload, 2);
    assert_eq!((cluster.live(), cluster.waiting()), (2, 0));
    cluster.scale(workload + 1, 7);
    assert_eq!(cluster.live(), 2);
}
