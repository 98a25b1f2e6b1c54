//! Demand that follows pods: whatever storm passes, all pods run again.

use bigfleet_model::{ClusterId, MachineState, Need, Resources, Totals};
use bigfleet_oracle::worlds::SplitMix64;
use bigfleet_sim::{Pods, Simulation};

use crate::support::{Shape, ids, latency, machines, need_at, start};

/// A pod of so many cores.
fn pod(cluster: &str, priority: i32, cores: u32) -> Need {
    let mut template = need_at(priority, cluster, "", 1, 1);
    let mut unit: Resources = template.min_unit.clone();
    for (dimension, amount) in template.min_unit.iter() {
        unit.set(dimension, amount / 4 * i64::from(cores));
    }
    template.min_unit = unit;
    template
}

fn wanted(pods: &Pods, clusters: &[&str]) -> Totals {
    let mut sum = Totals::zero();
    for cluster in clusters {
        for need in pods.needs(&ClusterId::from(*cluster)) {
            sum.add_assign(&need.aggregate);
        }
    }
    sum
}

#[test]
fn all_pods_run_again_after_any_storm() {
    let clusters = ["a", "b", "c"];
    let mut evictions = 0;
    for seed in 0..60 {
        let mut random = SplitMix64::new(seed);
        let fleet = machines("m", 40, MachineState::Speculative, &Shape::default());
        let mut sim = Simulation::new(seed, latency(seed), start(fleet, vec![]));
        let mut pods = Pods::default();
        let mut workloads = Vec::new();
        for cluster in clusters {
            let cores = *random.one(&[1, 2, 4]);
            for priority in [100, 1000] {
                let replicas = 1 + random.below(6) as usize;
                workloads.push(pods.deploy(pod(cluster, priority, cores), replicas));
            }
        }
        for _ in 0..120 {
            if random.chance(6) {
                pods.scale(*random.one(&workloads), random.below(9) as usize);
            }
            if random.chance(10) {
                let serving = ids(sim
                    .provider
                    .machines()
                    .filter(|tracked| tracked.machine.state == MachineState::Configured));
                // Its offer comes back, as a provider's does.
                if !serving.is_empty() {
                    let lost = random.one(&serving).clone();
                    sim.provider.vanish(&lost);
                    let id = lost.as_str();
                    let offer = machines(
                        &format!("{id}x"),
                        1,
                        MachineState::Speculative,
                        &Shape::default(),
                    );
                    offer.into_iter().for_each(|offer| sim.provider.add(offer));
                }
            }
            let (before, lost) = (wanted(&pods, &clusters), pods.evictions);
            pods.schedule(&sim.provider);
            assert_eq!(wanted(&pods, &clusters), before, "seed {seed}: evictions change demand");
            evictions += pods.evictions - lost;
            pods.step(&mut sim);
        }
        let mut calm = 0;
        for _ in 0..400 {
            let before = sim.counters().actions();
            let settled = sim.provider.is_settled();
            pods.step(&mut sim);
            let quiet = settled && sim.counters().actions() == before && pods.waiting() == 0;
            calm = if quiet { calm + 1 } else { 0 };
        }
        assert!(calm > 60, "seed {seed}: {} of {} pods wait", pods.waiting(), pods.live());
    }
    assert!(evictions > 100, "only {evictions} evictions");
}

#[test]
fn inv_51_a_pod_that_fits_no_machine_evicts_nobody_and_starves_nobody() {
    for seed in 0..60 {
        let mut random = SplitMix64::new(seed);
        let mut fleet = machines("s", 12, MachineState::Speculative, &Shape::default());
        fleet.extend(machines("i", 4, MachineState::Idle, &Shape::default()));
        let mut sim = Simulation::new(seed, latency(seed), start(fleet, vec![]));
        let mut pods = Pods::default();
        pods.deploy(pod("a", 100, 1), 20);
        let other = pods.deploy(pod("a", 50, 2), 4);
        let step = |pods: &mut Pods, sim: &mut Simulation, cycles: u64| {
            (0..cycles).for_each(|_| pods.step(sim));
        };
        step(&mut pods, &mut sim, 80);
        assert_eq!((pods.waiting(), pods.evictions), (0, 0), "seed {seed}: at rest");
        let reclaims = sim.counters().reclaims;

        let absurd = pods.deploy(pod("a", 100, 500), 1);
        step(&mut pods, &mut sim, 20 + random.below(40));
        // Others of the cluster grow beside it, and are given machines of their own.
        pods.scale(other, 12);
        step(&mut pods, &mut sim, 80);
        assert_eq!((pods.waiting(), pods.evictions), (1, 0), "seed {seed}: with the large pod");
        sim.restart();
        step(&mut pods, &mut sim, 60);
        assert_eq!((pods.waiting(), pods.evictions), (1, 0), "seed {seed}: after a restart");
        pods.scale(absurd, 0);
        step(&mut pods, &mut sim, 60);
        assert_eq!((pods.waiting(), pods.evictions), (0, 0), "seed {seed}: without it");
        assert_eq!(sim.counters().reclaims, reclaims, "seed {seed}: nothing was given up");
    }
}
