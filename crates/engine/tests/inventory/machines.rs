//! Machines as they were told.

use std::{collections::BTreeMap, sync::Arc};

use bigfleet_engine::{Census, Comparison, Count, Engine, Seen};
use bigfleet_model::{ClusterId, HostRef, Machine, MachineState, PenaltyBucket, Stamp};

use crate::everywhere;

/// Quantities written differently are the same, so classes compare by value.
fn assert_as_told(found: &Machine, told: &Machine) {
    assert_eq!(found.id, told.id);
    assert_eq!((found.state, &found.cluster), (told.state, &told.cluster), "{}", told.id);
    assert_eq!((&found.host, &found.last_error), (&told.host, &told.last_error), "{}", told.id);
    let (found, told) = (&found.class, &told.class);
    assert_eq!(found.capacity(), told.capacity());
    assert_eq!((&found.instance_type, &found.zone), (&told.instance_type, &told.zone));
    assert_eq!((&found.labels, found.capacity_type), (&told.labels, told.capacity_type));
    assert_eq!(found.price_per_hour, told.price_per_hour);
    assert_eq!(found.interruption_probability, told.interruption_probability);
}

#[test]
fn machines_are_as_they_were_told() {
    everywhere(|history| {
        for (id, told) in &history.told {
            let tracked = history.engine.tracked(id).unwrap();
            assert_as_told(&tracked.machine, told);
            let view = history.engine.view(id).unwrap();
            assert_eq!((view.id(), view.state()), (&**id, told.state));
            assert_eq!(view.cluster(), told.cluster.as_ref());
            assert_eq!(view.last_error(), told.last_error);
            let host = told.host.as_ref().map(|host| (&*host.provider, &*host.reference));
            assert_eq!(view.host(), host);
            assert!(Arc::ptr_eq(view.class(), &tracked.machine.class));
            assert_eq!(view.tracked(), tracked);
        }
        assert_eq!(history.engine.tracked("nobody"), None);
    });
}

#[test]
fn ids_come_in_order_from_wherever_one_begins() {
    everywhere(|history| {
        let ids: Vec<&str> = history.told.keys().map(|id| &**id).collect();
        assert_eq!(history.engine.ids_after(None).collect::<Vec<_>>(), ids);
        for at in 0..ids.len() {
            let after: Vec<&str> = history.engine.ids_after(Some(ids[at])).collect();
            assert_eq!(after, ids[at + 1..]);
            let between = format!("{}\u{1}", ids[at]);
            let after: Vec<&str> = history.engine.ids_after(Some(&between)).collect();
            assert_eq!(after, ids[at + 1..]);
        }
    });
}

fn with(told: &Machine, change: impl FnOnce(&mut Machine)) -> Machine {
    let mut machine = told.clone();
    change(&mut machine);
    machine
}

#[test]
fn a_report_is_compared_with_what_was_told() {
    everywhere(|history| {
        let compare = |machine: &Machine| history.engine.compare(machine);
        for told in history.told.values() {
            assert_eq!(compare(told), Comparison::Same, "{told:?}");
            let copied = with(told, |one| one.class = Arc::new((*told.class).clone()));
            assert_eq!(compare(&copied), Comparison::Same);
            let stamped = with(told, |one| {
                one.stamp = Some(Arc::new(Stamp::default()));
                one.shard_metadata.insert("key".to_owned(), "value".to_owned());
            });
            assert_eq!(compare(&stamped), Comparison::Same);
            let other = with(told, |one| one.id = "nobody".into());
            assert_eq!(compare(&other), Comparison::Unknown);
            let refreshed = [
                with(told, |one| one.last_error.push('!')),
                with(told, |one| Arc::make_mut(&mut one.class).price_per_hour += 1.0),
                with(told, |one| Arc::make_mut(&mut one.class).zone.push('x')),
                with(told, |one| {
                    let labels = &mut Arc::make_mut(&mut one.class).labels;
                    labels.insert("more".to_owned(), String::new());
                }),
                with(told, |one| {
                    let host = HostRef { provider: "p".to_owned(), reference: "r".to_owned() };
                    one.host = Some(host).filter(|_| told.host.is_none());
                }),
            ];
            for machine in refreshed {
                assert_eq!(compare(&machine), Comparison::Refreshed, "{machine:?}");
            }
            let moved = [
                with(told, |one| {
                    let other = [MachineState::Failed, MachineState::Idle];
                    one.state = other[usize::from(told.state == MachineState::Failed)];
                }),
                with(told, |one| {
                    one.cluster = Some("elsewhere".into()).filter(|_| told.cluster.is_none());
                }),
            ];
            for machine in moved {
                assert_eq!(compare(&machine), Comparison::Moved, "{machine:?}");
            }
        }
    });
}

#[test]
fn what_a_list_does_not_tell_of_is_found_and_nothing_else() {
    everywhere(|history| {
        let mut comparer = history.engine.comparer();
        let mut seen = Seen::default();
        // Every third is left out; those that stay are asked of twice, as a merge does.
        let (mut left_out, mut nobody) = (Vec::new(), Seen::default());
        for (at, (id, told)) in history.told.iter().enumerate() {
            if at % 3 == 0 {
                left_out.push(id.clone());
                continue;
            }
            comparer.see(id, &mut seen);
            assert_eq!(comparer.compare(told), Comparison::Same);
        }
        comparer.see("nobody", &mut nobody);
        let (mut unseen, known) = history.engine.unseen(&seen);
        unseen.sort_unstable();
        left_out.sort_unstable();
        assert_eq!((unseen, known), (left_out, history.told.len()));
        assert_eq!(history.engine.unseen(&nobody).0.len(), history.told.len());
    });
}

#[test]
fn a_list_in_any_order_is_compared_like_each_record_alone() {
    everywhere(|history| {
        let mut list: Vec<Machine> = history.told.values().cloned().collect();
        let gone: Vec<Machine> = list.iter().take(3).map(|one| with(one, rename)).collect();
        list.extend(gone);
        for machine in list.iter_mut().step_by(3) {
            machine.last_error.push('!');
        }
        for shuffled in [false, true] {
            if shuffled {
                history.random.shuffle(&mut list);
            }
            let mut comparer = history.engine.comparer();
            for machine in &list {
                assert_eq!(comparer.compare(machine), history.engine.compare(machine));
            }
        }
    });
}

fn rename(machine: &mut Machine) {
    machine.id = format!("{}-gone", machine.id).into();
}

/// Machines with what whose they are depends on.
fn all(engine: &Engine) -> impl Iterator<Item = Machine> {
    engine.input().snapshot.into_iter().map(|tracked| tracked.machine)
}

#[test]
fn machines_of_a_cluster_are_those_bound_to_it_or_created_for_it() {
    let (mut created, mut others) = (0, 0);
    everywhere(|history| {
        for cluster in ["a", "b", "c", "unknown"].map(ClusterId::from) {
            let mut expected: Vec<Machine> = all(&history.engine)
                .filter(|machine| {
                    let bought = machine.stamp.as_ref().is_some_and(|stamp| {
                        machine.state == MachineState::Creating
                            && stamp.for_cluster.as_ref() == Some(&cluster)
                    });
                    created += u32::from(bought);
                    bought || machine.cluster.as_ref() == Some(&cluster)
                })
                .collect();
            expected.sort_unstable_by(|a, b| a.id.cmp(&b.id));
            let configured =
                expected.iter().filter(|machine| machine.state == MachineState::Configured).count();
            assert_eq!(history.engine.configured_in(&cluster), configured);
            others += expected.len() - configured;
            let expected: Vec<_> = expected.into_iter().map(|machine| machine.id).collect();
            assert_eq!(history.engine.machines_of(&cluster), expected, "{cluster}");
            for id in &expected {
                let view = history.engine.view(id).unwrap();
                assert_eq!(view.association(), Some(&cluster));
            }
        }
    });
    assert!(created > 100 && others > 1_000, "{created} created, {others} not Configured");
}

#[test]
fn the_census_counts_every_machine() {
    everywhere(|history| {
        let mut expected = Census::default();
        let mut of_types: BTreeMap<String, Count> = BTreeMap::new();
        for machine in all(&history.engine) {
            let price = machine.host.as_ref().map_or(0.0, |_| machine.class.price_per_hour);
            let bucket = machine.stamp.map_or(PenaltyBucket::UNSPECIFIED, |s| {
                PenaltyBucket::from_dollars(s.interruption)
            });
            let class = &machine.class;
            let by_state = (machine.state, class.capacity_type, bucket);
            for count in [
                expected.by_state.entry(by_state).or_default(),
                of_types.entry(class.instance_type.clone()).or_default(),
                expected.by_zone.entry(class.zone.clone()).or_default(),
            ] {
                count.machines += 1;
                count.price += price;
            }
            if machine.state == MachineState::Configured {
                let cluster = machine.cluster.expect("the gate sees to it");
                *expected.configured.entry(cluster).or_default() += 1;
            }
        }
        expected.by_instance_type = of_types;
        let found = history.engine.census();
        assert_eq!(found.configured, expected.configured);
        assert_counts(&found.by_state, &expected.by_state);
        assert_counts(&found.by_instance_type, &expected.by_instance_type);
        assert_counts(&found.by_zone, &expected.by_zone);
    });
}

/// Sums of prices depend on the order in which they are added up.
fn assert_counts<K: Ord + std::fmt::Debug>(found: &BTreeMap<K, Count>, of: &BTreeMap<K, Count>) {
    assert_eq!(found.len(), of.len());
    for ((key, found), (other, expected)) in found.iter().zip(of) {
        assert_eq!((key, found.machines), (other, expected.machines));
        assert!((found.price - expected.price).abs() < 1e-9, "{key:?}: {found:?}, {expected:?}");
    }
}
