//! 18, 19, 20: what priority and age may change.

use std::sync::Arc;

use bigfleet_engine::{ActionKind, CycleInput, NeedKey, decide};
use bigfleet_model::{MachineState, Stamp};
use bigfleet_oracle::worlds::{SplitMix64, world};

use crate::support::{Class, claims, idle, need, precedence, profile, seeds, start};

/// Stamps of machines, seen or pending, with whether the machine is being created.
fn stamps(input: &CycleInput) -> Vec<(Arc<Stamp>, bool)> {
    let seen = input.snapshot.iter().filter_map(|tracked| {
        let creating = tracked.machine.state == MachineState::Creating;
        tracked.machine.stamp.clone().map(|stamp| (stamp, creating))
    });
    let pending = input.pending.iter().filter_map(|action| match &action.kind {
        ActionKind::Bootstrap(acquisition) => Some((acquisition.stamp.clone(), false)),
        ActionKind::Provision(acquisition) => Some((acquisition.stamp.clone(), true)),
        _ => None,
    });
    seen.chain(pending).collect()
}

#[test]
fn inv_18_more_priority_never_hurts_a_plain_need() {
    let mut tried = 0;
    for seed in seeds(3_000) {
        let input = world(seed);
        let satisfied: Vec<NeedKey> = claims(&decide(&input))
            .into_iter()
            .filter(|(_, verdict, _)| verdict.satisfied && verdict.folded == 0)
            .map(|(key, ..)| key)
            .collect();
        let plain = |need: &&bigfleet_model::Need| {
            need.profile.same().next().is_none()
                && need.profile.hard_spread().is_none()
                && satisfied.contains(&NeedKey::of(need))
        };
        let raise = 1 + SplitMix64::new(seed).below(2_000_000) as i32;
        for old in input.demand.iter().filter(plain) {
            let mut new = old.clone();
            let priority = old.profile.priority().saturating_add(raise);
            new.profile = Arc::new(profile(&old.profile, priority, old.profile.spread().to_vec()));
            let (was, is) = (NeedKey::of(old), NeedKey::of(&new));
            let names = |stamp: &Stamp, key: &NeedKey| {
                stamp.fingerprint == key.fingerprint && stamp.group == key.group
            };
            let excepted = stamps(&input)
                .iter()
                .any(|(stamp, creating)| names(stamp, &is) || (*creating && names(stamp, &was)));
            let alone = input.demand.iter().filter(|need| NeedKey::of(need) == was).count() == 1
                && input.demand.iter().all(|need| NeedKey::of(need) != is);
            if excepted || !alone || input.no_acquire.contains_key(&was) {
                continue;
            }
            let mut raised = input.clone();
            raised.demand.retain(|need| NeedKey::of(need) != was);
            raised.demand.push(new);
            let output = decide(&raised);
            let after = claims(&output);
            let (_, verdict, _) = after.iter().find(|(key, ..)| *key == is).expect("a verdict");
            tried += 1;
            assert!(verdict.satisfied, "seed {seed}: {was:?}");
        }
    }
    assert!(tried > 1000, "only {tried}");
}

#[test]
fn inv_19_a_lower_need_changes_nothing_above() {
    let mut tried = 0;
    for seed in seeds(6_000) {
        let input = world(seed);
        let low = input.demand.iter().map(|need| (precedence(&NeedKey::of(need)), need)).min_by(
            |(a, one), (b, other)| a.cmp(b).then_with(|| NeedKey::of(one).cmp(&NeedKey::of(other))),
        );
        let Some((lowest, low)) = low else { continue };
        let mut without = input.clone();
        without.demand.retain(|need| NeedKey::of(need) != NeedKey::of(low));
        let (with, without) = (decide(&input), decide(&without));
        let above = |output| -> Vec<_> {
            let higher = claims(output).into_iter().filter(|(key, ..)| precedence(key) > lowest);
            // Held needs get what is left at the end.
            let free = higher.filter(|(key, ..)| !input.no_acquire.contains_key(key));
            free.filter(|(_, verdict, _)| verdict.folded == 0 || input.no_acquire.is_empty())
                .map(|(key, verdict, machines)| {
                    (key, machines, verdict.deficit.clone(), verdict.bootstrap, verdict.provision)
                })
                .collect()
        };
        tried += above(&with).len();
        assert_eq!(above(&with), above(&without), "seed {seed}");
    }
    assert!(tried > 1000, "only {tried}");
}

/// Too few machines for all: the oldest get them, whatever the order of input, and
/// keep them in the next cycle.
#[test]
fn inv_20_the_older_need_wins_every_cycle() {
    for seed in 0..300 {
        let mut random = SplitMix64::new(seed);
        for class in [Class::Plain, Class::Spread, Class::Gang] {
            let wanted: u64 = if class == Class::Plain { 1 } else { 2 };
            let rivals = 3 + random.below(6);
            let served = 1 + random.below(rivals - 1);
            // A rack for each that can be served; a spread takes one of each half.
            let fleet = (0..served * wanted).map(|number| {
                let rack = match class {
                    Class::Gang => format!("r{}", number / wanted),
                    _ => format!("r{}", number % 2),
                };
                idle(&format!("m{number:02}"), 4, &rack, 1.0, 0.0)
            });
            let mut demand: Vec<_> = (0..rivals)
                .map(|number| need(&format!("c{number}"), class, 4 * wanted, 4, 1))
                .collect();
            let mut ages: Vec<i64> = (1..=rivals as i64).collect();
            random.shuffle(&mut ages);
            for (need, arrival) in demand.iter_mut().zip(&ages) {
                need.arrival = *arrival;
            }
            let mut input = start(fleet.collect(), demand);
            for cycle in 0..3 {
                let output = decide(&input);
                for verdict in &output.verdicts {
                    let at = input.demand.iter().position(|need| need.cluster == verdict.cluster);
                    let old = ages[at.expect("a need")] <= served as i64;
                    let context = format!("seed {seed} {class:?} cycle {cycle}");
                    assert_eq!(verdict.satisfied, old, "{context}: {}", verdict.cluster);
                }
                input.pending.extend(output.actions);
            }
        }
    }
}
