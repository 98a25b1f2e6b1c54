//! What could be acquired.

use bigfleet_engine::Available;
use bigfleet_model::MachineState;

use crate::everywhere;

#[test]
fn hints_count_what_could_be_acquired() {
    let (mut idle, mut speculative, mut moved) = (0, 0, 0);
    everywhere(|history| {
        let engine = &history.engine;
        let input = engine.input();
        let hints = engine.hints();
        let other = bigfleet_oracle::worlds::world(history.random.below(50_000));
        for need in input.demand.iter().chain(&other.demand) {
            let mut expected = Available::default();
            for tracked in &input.snapshot {
                let machine = &tracked.machine;
                let view = engine.view(&machine.id).unwrap();
                let pending = view.pending().iter();
                let is_pending =
                    pending.into_iter().any(|action| action.kind.start() == machine.state);
                moved += u32::from(is_pending);
                if is_pending
                    || view.held_back().is_some()
                    || !need.profile.matches(&*machine.class)
                {
                    continue;
                }
                let (count, cheapest) = match machine.state {
                    MachineState::Idle => (&mut expected.idle, &mut expected.cheapest_idle),
                    MachineState::Speculative => {
                        (&mut expected.speculative, &mut expected.cheapest_speculative)
                    }
                    _ => continue,
                };
                *count += 1;
                let price = machine.class.price_per_hour;
                *cheapest = Some(cheapest.map_or(price, |known: f64| known.min(price)));
            }
            assert_eq!(hints.available(&need.profile), expected, "{:?}", need.profile);
            assert_eq!(hints.available(&need.profile), expected, "asked again");
            assert_eq!(engine.available(&need.profile), expected);
            idle += expected.idle;
            speculative += expected.speculative;
        }
    });
    assert!(idle.min(speculative).min(moved) > 1_000, "{idle}, {speculative}, {moved}");
}
