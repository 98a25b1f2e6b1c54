//! All states × all events.

use std::{collections::BTreeMap, sync::Arc};

use bigfleet_model::{
    CapacityType, Class, Declared, HostRef, Machine,
    MachineState::{self, *},
};
use bigfleet_provider::protocol::{
    Binding, Effects, Event, Field, Kind, News, Reject, Replay, Step, step,
};

fn host() -> HostRef {
    HostRef { provider: "p".into(), reference: "h".into() }
}

fn machine(state: MachineState) -> Machine {
    let bound = matches!(state, Configuring | Configured | Draining | Failed);
    Machine {
        id: "m".into(),
        state,
        host: (!matches!(state, Speculative | Creating)).then(host),
        class: Arc::new(Class {
            instance_type: "t".into(),
            zone: "z".into(),
            capacity_type: CapacityType::OnDemand,
            price_per_hour: 1.0,
            interruption_probability: 0.0,
            labels: BTreeMap::new(),
            resources: Declared::default(),
            allocatable: Declared::default(),
        }),
        cluster: bound.then(|| "old".into()),
        last_error: if state == Failed { "why".into() } else { String::new() },
        shard_metadata: if bound { [("k".into(), "v".into())].into() } else { BTreeMap::new() },
        stamp: None,
    }
}

/// Written from the table of §1 and the text of §3, apart from the code.
fn expected(state: MachineState, event: Event) -> Result<&'static str, &'static str> {
    let table = [
        (Kind::Create, Speculative, Creating, Idle),
        (Kind::Configure, Idle, Configuring, Configured),
        (Kind::Drain, Configured, Draining, Idle),
        (Kind::Delete, Idle, Deleting, Speculative),
    ];
    match event {
        Event::Call(kind, replay) => {
            let row = table.iter().find(|row| row.0 == kind).unwrap();
            let under_way_or_there = state == row.2 || state == row.3;
            match replay {
                Replay::Same if under_way_or_there => Ok("replay"),
                Replay::OtherCluster if under_way_or_there => Err("other cluster"),
                _ if state == row.1 => Ok(match kind {
                    Kind::Create => "start CREATING",
                    Kind::Configure => "start CONFIGURING and bind",
                    Kind::Drain => "start DRAINING",
                    Kind::Delete => "start DELETING",
                }),
                _ => Err("position"),
            }
        }
        Event::Done { kind, current } => Ok(match (kind, state, current) {
            (Kind::Create, Creating, true) => "IDLE with its host",
            (Kind::Configure, Configuring, true) => "CONFIGURED",
            (Kind::Drain, Draining, true) => "IDLE unbound",
            (Kind::Delete, Deleting, true) => "SPECULATIVE without host",
            (Kind::Create, Failed, _) => "keep the host",
            (Kind::Create, _, _) => "orphan",
            _ => "nothing",
        }),
        Event::Failed { kind, current } => Ok(match (kind, state, current) {
            (Kind::Create, Creating, true)
            | (Kind::Configure, Configuring, true)
            | (Kind::Drain, Draining, true)
            | (Kind::Delete, Deleting, true) => "FAILED",
            _ => "nothing",
        }),
        Event::Lost { elastic } => Ok(match state {
            Idle if elastic => "SPECULATIVE without host",
            Idle | Configured => "FAILED",
            _ => "nothing",
        }),
        Event::Broke => Ok(if state == Failed { "nothing" } else { "FAILED" }),
        Event::Repaired { elastic } => Ok(match (state, elastic) {
            (Failed, true) => "SPECULATIVE as new",
            (Failed, false) => "IDLE as new",
            _ => "nothing",
        }),
    }
}

fn told(result: Result<Step, Reject>) -> Result<&'static str, &'static str> {
    use Field::{Clear, Keep, Set};
    let moved = |effects: Effects| {
        let Effects { to, binding, host, error, forget_operations } = effects;
        match (to, binding, host, error, forget_operations) {
            (Idle, Keep, Set, Clear, false) => "IDLE with its host",
            (Configured, Keep, Keep, Clear, false) => "CONFIGURED",
            (Idle, Clear, Keep, Clear, false) => "IDLE unbound",
            (Speculative, Keep, Clear, Clear | Keep, false) => "SPECULATIVE without host",
            (Failed, Keep, Keep, Set, false) => "FAILED",
            (Speculative, Clear, Clear, Clear, true) => "SPECULATIVE as new",
            (Idle, Clear, Keep, Clear, true) => "IDLE as new",
            other => panic!("no such move: {other:?}"),
        }
    };
    let started = |effects: Effects| {
        assert_eq!((effects.host, effects.error), (Keep, Keep));
        assert!(!effects.forget_operations);
        match (effects.to, effects.binding) {
            (Creating, Keep) => "start CREATING",
            (Configuring, Set) => "start CONFIGURING and bind",
            (Draining, Keep) => "start DRAINING",
            (Deleting, Keep) => "start DELETING",
            other => panic!("no such start: {other:?}"),
        }
    };
    match result {
        Ok(Step::Replay) => Ok("replay"),
        Ok(Step::Start(effects)) => Ok(started(effects)),
        Ok(Step::Move(effects)) => Ok(moved(effects)),
        Ok(Step::Discard) => Ok("nothing"),
        Ok(Step::KeepHost) => Ok("keep the host"),
        Ok(Step::Orphan) => Ok("orphan"),
        Err(Reject::OtherCluster) => Err("other cluster"),
        Err(Reject::Position { .. }) => Err("position"),
    }
}

fn events() -> Vec<Event> {
    let mut events = vec![Event::Broke];
    for kind in Kind::ALL {
        for replay in [Replay::Nothing, Replay::Same, Replay::OtherCluster] {
            events.push(Event::Call(kind, replay));
        }
        for current in [false, true] {
            events.push(Event::Done { kind, current });
            events.push(Event::Failed { kind, current });
        }
    }
    for elastic in [false, true] {
        events.push(Event::Lost { elastic });
        events.push(Event::Repaired { elastic });
    }
    events
}

#[test]
fn every_event_in_every_state_has_the_outcome_of_the_chapter() {
    for &state in MachineState::ALL {
        for event in events() {
            assert_eq!(told(step(state, event)), expected(state, event), "{state:?} {event:?}");
        }
    }
}

#[test]
fn a_rejection_names_kind_and_state() {
    let reject = step(Failed, Event::Call(Kind::Drain, Replay::Nothing)).unwrap_err();
    assert_eq!(reject.to_string(), "cannot drain while FAILED: drain starts from CONFIGURED");
}

/// Whatever happens, the record still fits its state (wire chapter §8.2) and has
/// an error exactly when it failed.
#[test]
fn provider_inv_04_every_record_fits_its_state() {
    for &state in MachineState::ALL {
        for event in events() {
            let Ok(Step::Start(effects) | Step::Move(effects)) = step(state, event) else {
                continue;
            };
            let mut machine = machine(state);
            let news = News {
                host: Some(host()),
                binding: Some(Binding { cluster: "new".into(), metadata: BTreeMap::new() }),
                error: "because".into(),
            };
            effects.apply(&mut machine, news);
            let encoded = bigfleet_wire::v1alpha1::Machine::from(&machine);
            let accepted = bigfleet_model::gate::inventory::machine(encoded);
            let accepted = accepted.unwrap_or_else(|why| panic!("{state:?} {event:?}: {why}"));
            assert!(!accepted.stray_binding, "{state:?} {event:?}");
            assert_eq!(machine.last_error.is_empty(), machine.state != Failed);
            assert_eq!(
                machine.cluster.is_none(),
                machine.shard_metadata.is_empty() && machine.cluster.as_deref() != Some("new"),
                "cluster and metadata vanish together"
            );
        }
    }
}

#[test]
fn failing_keeps_the_evidence_and_binding_replaces_all_of_the_old() {
    let mut failed = machine(Draining);
    let Ok(Step::Move(effects)) =
        step(Draining, Event::Failed { kind: Kind::Drain, current: true })
    else {
        panic!("a failure of its own work fails it");
    };
    effects.apply(&mut failed, News { error: "drain: no".into(), ..News::default() });
    let evidence = Machine { state: Failed, last_error: "drain: no".into(), ..machine(Draining) };
    assert_eq!(failed, evidence);

    let mut bound = Machine { shard_metadata: [("k".into(), "v".into())].into(), ..machine(Idle) };
    let Ok(Step::Start(effects)) = step(Idle, Event::Call(Kind::Configure, Replay::Nothing)) else {
        panic!("an idle machine can be configured");
    };
    let metadata: BTreeMap<String, String> = [("n\0".into(), String::new())].into();
    let binding = Some(Binding { cluster: "c".into(), metadata: metadata.clone() });
    effects.apply(&mut bound, News { binding, ..News::default() });
    assert_eq!(bound.cluster.as_deref(), Some("c"));
    assert_eq!(bound.shard_metadata, metadata);
}

#[test]
fn an_error_is_never_empty_and_never_long() {
    for (text, length) in [(String::new(), 37), ("é".repeat(600), 1024), ("x".repeat(1025), 1024)]
    {
        let mut broken = machine(Idle);
        let Ok(Step::Move(effects)) = step(Idle, Event::Broke) else { panic!("it breaks") };
        effects.apply(&mut broken, News { error: text, ..News::default() });
        assert_eq!(broken.last_error.len(), length);
    }
}
