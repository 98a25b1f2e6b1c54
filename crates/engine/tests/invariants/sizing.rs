//! 12, 15, 17: how many machines, and which.

use bigfleet_engine::{ActionKind, decide};
use bigfleet_model::{PenaltyBucket, cost::effective_cost};
use bigfleet_oracle::worlds::SplitMix64;

use crate::support::{Class, idle, need, start};

fn bought(input: &bigfleet_engine::CycleInput) -> Vec<String> {
    let output = decide(input);
    assert!(output.verdicts.iter().all(|verdict| verdict.satisfied));
    let acquired = |kind: &ActionKind| matches!(kind, ActionKind::Bootstrap(_));
    let actions = output.actions.iter().filter(|action| acquired(&action.kind));
    actions.map(|action| action.machine.to_string()).collect()
}

#[test]
fn inv_12_eight_units_against_machines_of_a_hundred_take_one() {
    for seed in 0..500 {
        let mut random = SplitMix64::new(seed);
        let unit = 1 + random.below(8);
        let machines = (0..2 + random.below(10)).map(|number| {
            let price = random.below(5) as f64;
            idle(&format!("m{number}"), unit * (100 + random.below(30)), "r", price, 0.0)
        });
        let input = start(machines.collect(), vec![need("a", Class::Plain, 8 * unit, unit, 1)]);
        assert_eq!(bought(&input).len(), 1, "seed {seed}");
    }
}

/// A dear and steady tier against a cheap one that is interrupted: the penalty
/// alone decides, where the costs cross.
#[test]
fn inv_15_penalty_alone_splits_two_tiers() {
    for seed in 0..200 {
        let mut random = SplitMix64::new(seed);
        let (cheap, gap) = (random.below(100) as f64 / 50.0, random.below(100) as f64 / 20.0);
        let (steady, more) = (random.below(30) as f64 / 100.0, random.below(70) as f64 / 100.0);
        let mut last = "cheap".to_owned();
        for bucket in 1..=27 {
            let fleet = vec![
                idle("cheap", 4, "r", cheap, steady + more),
                idle("steady", 4, "r", cheap + gap, steady),
            ];
            let got = bought(&start(fleet, vec![need("a", Class::Plain, 4, 4, bucket)]));
            let penalty = PenaltyBucket::from_wire(bucket).expect("a bucket").dollars();
            let costs = [("cheap", cheap, steady + more), ("steady", cheap + gap, steady)];
            // Costs, then prices, then ids, as the chapter ranks.
            let best = costs.into_iter().min_by(|a, b| {
                let cost = |one: &(&str, f64, f64)| effective_cost(one.1, one.2, penalty);
                cost(a).total_cmp(&cost(b)).then(a.1.total_cmp(&b.1)).then(a.0.cmp(b.0))
            });
            let best = best.expect("two tiers").0;
            assert_eq!(got, [best], "seed {seed} bucket {bucket}");
            // Both infinite: price decides again.
            assert!(
                last == "cheap" || best == "steady" || bucket == 27,
                "seed {seed}: no way back"
            );
            best.clone_into(&mut last);
        }
    }
}

/// Pinned work takes machines that are never interrupted, by price.
#[test]
fn inv_17_pinned_work_ranks_steady_machines_by_price() {
    for seed in 0..300 {
        let mut random = SplitMix64::new(seed);
        let mut fleet = Vec::new();
        for number in 0..8 {
            let probability = if random.chance(50) { 0.0 } else { 0.1 };
            let price = random.below(40) as f64 / 10.0;
            fleet.push(idle(&format!("m{number}"), 4, "r", price, probability));
        }
        let steady = fleet.iter().filter(|one| one.machine.class.interruption_probability == 0.0);
        let mut order: Vec<_> =
            steady.map(|one| (one.machine.class.price_per_hour, one.machine.id.clone())).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
        let wanted = order.len().min(3);
        if wanted == 0 {
            continue;
        }
        let demand = vec![need("a", Class::Plain, 4 * wanted as u64, 4, 27)];
        let mut expected: Vec<String> =
            order.into_iter().take(wanted).map(|(_, id)| id.to_string()).collect();
        expected.sort();
        assert_eq!(bought(&start(fleet, demand)), expected, "seed {seed}");
    }
}
