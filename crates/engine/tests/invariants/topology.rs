//! 27, 28, 30: gangs stay, and a soft spread is none.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bigfleet_engine::{CycleInput, CycleOutput, NeedKey, Verdict, decide};
use bigfleet_model::{Fingerprint, MachineId, MachineState, Stamp, Totals, WhenUnsatisfiable};
use bigfleet_oracle::worlds::{SplitMix64, world};

use crate::support::{claims, key, precedence, profile, restamped, seeds};

/// For whom each machine is by its stamp, as the engine sees it.
fn owners(input: &CycleInput) -> BTreeMap<MachineId, NeedKey> {
    let owner = |tracked: &bigfleet_engine::Tracked| {
        let machine = &tracked.machine;
        let stamp = machine.stamp.as_ref()?;
        let cluster = match machine.state {
            MachineState::Creating => stamp.for_cluster.clone(),
            _ => machine.cluster.clone(),
        }?;
        let (fingerprint, group) = (stamp.fingerprint.clone(), stamp.group.clone());
        if fingerprint.as_str().is_empty() {
            return None;
        }
        Some((machine.id.clone(), NeedKey { cluster, fingerprint, group }))
    };
    input.snapshot.iter().filter_map(owner).collect()
}

/// Takes unclaimed supply away and adds more of the same kinds.
fn other_supply(input: &CycleInput, output: &CycleOutput, random: &mut SplitMix64) -> CycleInput {
    let mut other = input.clone();
    let acquirable = |state| matches!(state, MachineState::Idle | MachineState::Speculative);
    other.snapshot.retain(|tracked| {
        output.claims.contains_key(&tracked.machine.id)
            || !acquirable(tracked.machine.state)
            || random.chance(60)
    });
    for tracked in &input.snapshot {
        if acquirable(tracked.machine.state) && random.chance(30) {
            let mut more = tracked.clone();
            more.machine.id = format!("{}-more", tracked.machine.id).as_str().into();
            other.snapshot.push(more);
        }
    }
    other
}

#[test]
fn inv_27_a_served_gang_ignores_supply_elsewhere() {
    let mut tried = 0;
    for seed in seeds(4_000) {
        let input = restamped(seed);
        let (owners, before) = (owners(&input), decide(&input));
        let other = other_supply(&input, &before, &mut SplitMix64::new(!seed));
        let after = decide(&other);
        let (before, after) = (claims(&before), claims(&after));
        let above = |of: &[(NeedKey, &bigfleet_engine::Verdict, Vec<MachineId>)], than| -> Vec<_> {
            let higher = of.iter().filter(|(key, ..)| precedence(key) > than);
            higher.map(|(key, _, machines)| (key.clone(), machines.clone())).collect()
        };
        for (key, verdict, machines) in &before {
            // One that owns more than it needs may serve itself elsewhere as well.
            let own = machines.iter().all(|machine| owners.get(machine) == Some(key))
                && owners.values().filter(|owner| *owner == key).count() == machines.len();
            let gang = verdict.domain.is_some() || verdict.folded > 0;
            if !gang || !own || !verdict.satisfied || machines.is_empty() {
                continue;
            }
            let same = |(other, found, _): &&(NeedKey, &bigfleet_engine::Verdict, _)| {
                other == key && found.folded == verdict.folded
            };
            // A class whose members changed is another.
            let Some((_, found, kept)) = after.iter().find(same) else { continue };
            let tier = precedence(key);
            if above(&before, tier) == above(&after, tier) {
                tried += 1;
                assert_eq!(
                    (kept, &found.domain),
                    (machines, &verdict.domain),
                    "seed {seed} {key:?}"
                );
            }
        }
    }
    assert!(tried > 500, "only {tried}");
}

#[test]
fn inv_28_equal_gangs_never_exchange_machines() {
    let mut tried = 0;
    for seed in seeds(6_000) {
        let input = restamped(seed);
        let (owners, output) = (owners(&input), decide(&input));
        let mut took: Vec<(NeedKey, NeedKey)> = Vec::new();
        let size = |verdict: &Verdict| (verdict.aggregate.clone(), verdict.min_unit.clone());
        let sizes: BTreeMap<NeedKey, (Totals, Totals)> =
            output.verdicts.iter().map(|verdict| (key(verdict), size(verdict))).collect();
        for (key, verdict, machines) in claims(&output) {
            if verdict.domain.is_none() || verdict.folded > 0 {
                continue;
            }
            for owner in machines.iter().filter_map(|machine| owners.get(machine)) {
                tried += 1;
                // Gangs of another kind or size may each leave a machine behind, moving to
                // where they are satisfiable.
                let equal = owner.fingerprint == key.fingerprint
                    && sizes.get(owner) == Some(&size(verdict));
                if *owner != key && equal {
                    took.push((key.clone(), owner.clone()));
                }
            }
        }
        let exchange =
            took.iter().find(|(taker, owner)| took.contains(&(owner.clone(), taker.clone())));
        assert!(exchange.is_none(), "seed {seed}: {exchange:?}");
    }
    assert!(tried > 1000, "only {tried}");
}

/// The world without what names needs in other ways than by machine stamps, its
/// needs with another spread, its stamps following them.
fn with_spread(input: &CycleInput, soft: bool) -> CycleInput {
    let mut other = input.clone();
    other.pending.clear();
    other.gang_ages.clear();
    other.no_acquire.clear();
    let mut names: BTreeMap<Fingerprint, Fingerprint> = BTreeMap::new();
    for need in &mut other.demand {
        let mut spread = need.profile.spread().to_vec();
        spread
            .iter_mut()
            .for_each(|one| one.when_unsatisfiable = WhenUnsatisfiable::ScheduleAnyway);
        spread.retain(|_| soft);
        let new = profile(&need.profile, need.profile.priority(), spread);
        names.insert(need.profile.fingerprint().clone(), new.fingerprint().clone());
        need.profile = Arc::new(new);
    }
    for tracked in &mut other.snapshot {
        tracked.drain = None;
        let renamed = tracked.machine.stamp.take().and_then(|stamp| {
            let fingerprint = names.get(&stamp.fingerprint)?.clone();
            Some(Arc::new(Stamp { fingerprint, ..Stamp::clone(&stamp) }))
        });
        tracked.machine.stamp = renamed;
    }
    other
}

#[test]
fn inv_30_schedule_anyway_equals_no_spread() {
    let mut tried = 0;
    for seed in seeds(6_000) {
        let input = world(seed);
        let (soft, none) = (with_spread(&input, true), with_spread(&input, false));
        let (soft, none) = (decide(&soft), decide(&none));
        let profiles = |output: &CycleOutput| {
            let named = output.verdicts.iter().map(|one| one.fingerprint.clone());
            let order = output.verdicts.iter().map(|one| (one.cluster.clone(), one.group.clone()));
            (named.collect::<BTreeSet<_>>().len(), order.collect::<Vec<_>>())
        };
        // Profiles that differ only in their spread become one without it, and their
        // needs one or of another order: fingerprints are part of it.
        if profiles(&soft) != profiles(&none) {
            continue;
        }
        tried += usize::from(input.demand.iter().any(|need| !need.profile.spread().is_empty()));
        let told = |output: &CycleOutput| {
            let actions: Vec<_> = output
                .actions
                .iter()
                .map(|action| (action.kind.name(), action.machine.clone(), action.cost.to_bits()))
                .collect();
            let deficits: Vec<_> = output.verdicts.iter().map(|one| one.deficit.clone()).collect();
            (output.claims.clone(), actions, deficits)
        };
        assert_eq!(told(&soft), told(&none), "seed {seed}");
    }
    assert!(tried > 500, "only {tried}");
}
