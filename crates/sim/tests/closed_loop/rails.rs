//! 45: the reclaim cap slows the answer and never changes it.

use bigfleet_engine::ActionKind;
use bigfleet_model::MachineState;
use bigfleet_sim::Simulation;

use crate::support::{Shape, bound, configured, fixed, need, start};

#[test]
fn inv_45_executed_reclaims_stay_below_the_caps() {
    for (seed, fraction) in (0..40).flat_map(|seed| [0.05, 0.2, 0.5].map(|f| (seed, f))) {
        let (whole, less) = (need("a", "", 40, 1), need("a", "", 4 + seed % 9, 1));
        let fleet = (0..40).map(|number| {
            let shape = Shape { price: f64::from(number % 5), ..Shape::default() };
            bound(&format!("m-{number:02}"), &whole, &shape)
        });
        let latency = fixed(1, 1, seed % 4);
        let mut sim =
            Simulation::new(u64::from(seed), latency, start(fleet.collect(), vec![whole]));
        sim.reclaim_cap = Some(fraction);
        sim.roll_up(&"a".into(), vec![less]);
        let (mut allowed, mut executed) = (0, 0);
        for cycle in 0..60 {
            let serving = sim.provider.count(MachineState::Configured);
            let decided = sim.step();
            let reclaims = |actions: &[bigfleet_engine::Action]| -> Vec<_> {
                let reclaim = |kind: &ActionKind| matches!(kind, ActionKind::Reclaim { .. });
                let of = actions.iter().filter(|action| reclaim(&action.kind));
                of.map(|action| action.machine.clone()).collect()
            };
            let (emitted, done) = (reclaims(&decided.output.actions), reclaims(&decided.executed));
            let context = format!("seed {seed} fraction {fraction} cycle {cycle}");
            assert_eq!(done, emitted[..done.len()], "{context}: not the head");
            allowed += ((fraction * serving as f64) as usize).max(1);
            executed += done.len();
            assert!(executed <= allowed, "{context}: {executed} of {allowed}");
        }
        let left = 4 + seed as usize % 9;
        assert_eq!((executed, configured(&sim, "a").len()), (40 - left, left), "seed {seed}");
    }
}
