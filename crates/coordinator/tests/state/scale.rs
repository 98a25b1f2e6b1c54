//! As large as the specification reckons with (§15): it must work, and say how long it
//! took; the numbers that count are measured elsewhere.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bigfleet_coordinator::{
    rebalance::{Figures, Picture, Rebalancer, Settings, Skip},
    state::{Command, Domain, State},
};
use bigfleet_model::{Operator, machine::INSTANCE_TYPE_LABEL};
use bigfleet_wire::v1alpha1 as wire;

#[test]
fn a_hundred_thousand_domains_return() {
    let mut state = State::default();
    let mut index = 0;
    let mut apply = |state: &mut State, command: &Command| {
        index += 1;
        state.apply(index, command).expect("valid");
    };
    for number in 0..200 {
        let id = format!("shard-{number:04}").into();
        let (address, shared) = (format!("shard-{number:04}.example:7780"), true);
        let (registered_at, epoch, instance) = (7, 1, number);
        let add = Command::AddShard { id, address, registered_at, epoch, instance, shared };
        apply(&mut state, &add);
    }
    for batch in 0..100 {
        let commands = (0..1_000)
            .map(|number| Command::AssignDomain {
                domain: Domain::new(
                    "topology.kubernetes.io/zone",
                    &format!("zone-{:06}", batch * 1_000 + number),
                ),
                shard: format!("shard-{:04}", number % 200).into(),
            })
            .collect();
        apply(&mut state, &Command::Batch { commands });
    }
    let began = Instant::now();
    let cut = state.clone();
    println!("cut: {:?}", began.elapsed());
    let payload = cut.to_payload();
    println!("written: {:?}, {} bytes", began.elapsed(), payload.len());
    let loaded = State::from_payload(&payload).expect("it was written");
    println!("loaded: {:?}", began.elapsed());
    assert_eq!(loaded, state);
    assert!(
        payload.len() < 14 << 20,
        "{} bytes: the specification reckons with 14 MB",
        payload.len()
    );
    let assignment = state.assignment_of(&"shard-0007".into(), "");
    assert_eq!(assignment.domains.len(), 500);
}

/// Shards lack a few types each that others have: hundreds of shortfalls a donor, few
/// machines. `BIGFLEET_LONG_SHARDS` asks for more of them.
#[test]
fn a_pass_looks_at_every_shortfall() {
    let asked = std::env::var("BIGFLEET_LONG_SHARDS").ok().and_then(|text| text.parse().ok());
    let shards: usize = asked.unwrap_or(60);
    let cores = |count: usize| {
        let resources = [("cpu".to_owned(), count.to_string())].into();
        Some(wire::Resources { resources })
    };
    let mut picture = Picture::default();
    let began = Instant::now();
    for shard in 0..shards {
        let pool = |at: usize| wire::PoolRow {
            instance_type: format!("type-{:02}", (shard + at) % 512 / 8),
            zone: format!("zone-{}", (shard + at) % 8),
            idle: i32::try_from((shard * 31 + at * 7) % 4).expect("few"),
            allocatable: cores(2 << (at % 5)),
            configured: 900,
            min_priority: 100,
            min_interruption_bucket: 12,
            ..wire::PoolRow::default()
        };
        let shortfall = |at: usize| wire::Shortfall {
            requirements: vec![wire::NodeSelectorRequirement {
                key: INSTANCE_TYPE_LABEL.into(),
                operator: Operator::In.to_wire(),
                values: (0..2)
                    .map(|n| format!("type-{:02}", (shard * 7 + at % 5 + n) % 60))
                    .collect(),
            }],
            deficit: cores(20_000 + at),
            min_unit: cores(1 << (at % 4)),
            priority: i32::try_from(at * 13 % 900).expect("small"),
            age_cycles: 6 + i32::try_from(at % 20).expect("small"),
            interruption_penalty_bucket: 10,
        };
        let summary = wire::ShardSummary {
            provider_address: "p:9000".into(),
            pools: (0..256).map(pool).collect(),
            ..wire::ShardSummary::default()
        };
        let shortfalls: Vec<_> = (0..100).map(shortfall).collect();
        let figures = Arc::new(Figures::of(&summary, &shortfalls));
        picture.shards.insert(format!("shard-{shard:04}").as_str().into(), figures);
    }
    println!("read: {:?}", began.elapsed());
    let mut rebalancer = Rebalancer::new(Settings::default(), Duration::ZERO, 1);
    let began = Instant::now();
    let pass = rebalancer.pass(&picture, Duration::from_secs(100));
    println!("pass over {} shortfalls: {:?}", shards * 100, began.elapsed());
    let open: u64 = pass.skipped.values().sum();
    assert!(pass.begin.len() + open as usize >= shards * 100, "{:?}", pass.skipped);
    assert!(pass.skipped.contains_key(&Skip::MinBenefit), "{:?}", pass.skipped);
}
