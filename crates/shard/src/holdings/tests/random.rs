//! Random events with crashes between any two persisted steps: what was answered or
//! reported once is never contradicted.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const KEYS: [&str; 5] = ["a", "b", "c", "@x", "@y"];
const TRANSFERS: [&str; 3] = ["t", "u", "v"];
const MACHINES: [&str; 4] = ["m", "n", "o", "p"];

fn some<T: Clone + std::fmt::Debug + 'static>(all: &'static [T]) -> impl Strategy<Value = Vec<T>> {
    proptest::sample::subsequence(all, 0..=all.len())
}

fn assigned() -> impl Strategy<Value = Event> {
    let loans = proptest::collection::vec((0..TRANSFERS.len(), 0..MACHINES.len()), 0..4);
    let parts = (0i64..4, some(&KEYS), some(&TRANSFERS), loans.clone(), loans);
    parts.prop_map(|(version, held, open, machines_in, machines_out)| {
        let loan = |(transfer, one): (usize, usize)| {
            machine(&format!("{}/{}", TRANSFERS[transfer], MACHINES[one]))
        };
        Event::Assigned(Assignment {
            version,
            digest: 7,
            held: keys(&held),
            machines_in: machines_in.into_iter().map(loan).collect(),
            machines_out: machines_out.into_iter().map(loan).collect(),
            slices: Vec::new(),
            open_transfers: ids(&open),
        })
    })
}

fn events() -> impl Strategy<Value = Event> {
    let transfer = proptest::sample::select(&TRANSFERS[..]);
    let picked = (transfer.clone(), some(&MACHINES), any::<bool>()).prop_map(
        |(transfer, machines, drains)| {
            let drain = drains.then_some(drain_for(1));
            let out = Out { drain, ..out(&machines) };
            Event::Picked { transfer: transfer.into(), out }
        },
    );
    let drained = (transfer.clone(), some(&MACHINES)).prop_map(|(transfer, idle)| Event::Drained {
        transfer: transfer.into(),
        idle: ids(&idle),
    });
    let done =
        proptest::collection::btree_set((transfer, proptest::sample::select(&MACHINES[..])), 0..4)
            .prop_map(|done| {
                Event::Done(done.into_iter().map(|(t, m)| (t.into(), m.into())).collect())
            });
    let heard = (0u32..3, 0i64..4).prop_map(|(generation, term)| Event::Heard {
        fleet: Some(FleetId::new("u", generation)),
        term: (i64::from(generation) << 20) + term,
    });
    let quiet = some(&KEYS).prop_map(|quiet| Event::Quiet(keys(&quiet)));
    prop_oneof![assigned(), picked, drained, done, heard, quiet]
}

/// What others have seen of a shard.
#[derive(Default)]
struct Seen {
    /// Answers to transfers that are open.
    answers: BTreeMap<TransferId, Out>,
    term: i64,
    generation: u32,
}

impl Seen {
    /// What the state on disk must be like, whatever came before.
    fn check(&mut self, holdings: &Holdings) {
        let none = Assignment::default();
        let assignment = holdings.assignment.as_ref().unwrap_or(&none);
        let both: Vec<Key> =
            holdings.releasing.iter().filter(|key| assignment.held.contains(key)).collect();
        assert!(both.is_empty(), "held and let go of: {both:?}");
        assert!(holdings.settled.is_disjoint(&assignment.machines_in), "settled and ours");
        for (transfer, out) in &holdings.out {
            assert!(assignment.open_transfers.contains(transfer), "{transfer} is not open");
            let ownership = Ownership::of(holdings);
            for machine in &out.machines {
                let received = ownership.is_received(machine);
                let zone = super::machines::class(Some("a"));
                let ours = ownership.owns(machine, bigfleet_model::MachineState::Idle, None, &zone);
                assert!(received || !ours, "{machine} is out and ours");
            }
        }
        self.answers.retain(|transfer, _| assignment.open_transfers.contains(transfer));
        for transfer in holdings.out.keys() {
            let Some(Effect::Answer { out, .. }) = holdings.answer(transfer) else { continue };
            let before = self.answers.entry(transfer.clone()).or_insert_with(|| out.clone());
            assert_eq!(*before, out, "{transfer} was answered otherwise");
        }
        assert!(holdings.term >= self.term, "the mark fell");
        self.term = holdings.term;
        let generation = holdings.fleet.as_ref().map_or(0, FleetId::generation);
        assert!(generation >= self.generation, "the generation fell");
        self.generation = generation;
    }
}

/// When the process dies.
#[derive(Clone, Copy, Debug)]
enum Crash {
    No,
    /// Before the state is on disk: it never was.
    Before,
    /// After, with its effects unused.
    After,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn coordinator_inv_i2_i3_nothing_answered_is_contradicted_over_any_crash(
        steps in proptest::collection::vec(
            (events(), prop_oneof![Just(Crash::No), Just(Crash::Before), Just(Crash::After)]),
            1..60,
        )
    ) {
        let mut disk = file::encode(&Holdings::default()).unwrap();
        let mut memory = Holdings::default();
        let mut seen = Seen::default();
        for (event, crash) in steps {
            let Ok(Step { after, effects }) = memory.apply(&event) else { continue };
            if matches!(crash, Crash::Before) {
                memory = file::decode(&disk).unwrap();
                continue;
            }
            check_effects(&memory, &after, &effects);
            disk = file::encode(&after).unwrap();
            memory = if matches!(crash, Crash::After) { file::decode(&disk).unwrap() } else { after };
            seen.check(&memory);
        }
    }
}

/// Effects are exactly what changed.
fn check_effects(before: &Holdings, after: &Holdings, effects: &[Effect]) {
    let none = Keys::default();
    let (had, has) = (before.held().unwrap_or(&none), after.held().unwrap_or(&none));
    for key in had.without(has).iter() {
        assert!(effects.contains(&Effect::Stop(key.clone())), "{key:?} was lost unsaid");
        assert!(after.releasing.contains(&key), "{key:?} was lost without being let go of");
    }
    for key in has.without(had).iter() {
        assert!(effects.contains(&Effect::Hold(key.clone())), "{key:?} was gained unsaid");
    }
    for key in before.releasing.without(&after.releasing).iter() {
        let said = effects.contains(&Effect::Released(key.clone())) || has.contains(&key);
        assert!(said, "{key:?} was forgotten");
    }
    let (was, is) = (Ownership::of(before), Ownership::of(after));
    for machine in MACHINES {
        let zone = super::machines::class(Some("elsewhere"));
        let idle = bigfleet_model::MachineState::Idle;
        let (was, is) = (was.owns(machine, idle, None, &zone), is.owns(machine, idle, None, &zone));
        if was && !is {
            assert!(effects.contains(&Effect::Disown(machine.into())), "{machine} was lost unsaid");
        }
        if is && !was {
            assert!(effects.contains(&Effect::Own(machine.into())), "{machine} was gained unsaid");
        }
    }
}
