//! One event each.

use super::*;

fn holding(held: &[&str]) -> Holdings {
    after(vec![Event::Assigned(assignment(5, held))])
}

#[test]
fn lost_keys_are_releasing_and_regained_ones_are_not() {
    let before = holding(&["a", "b", "@c"]);
    assert_eq!(before.held(), Some(&keys(&["a", "b", "@c"])));
    assert!(before.releasing.is_empty());

    let (lost, effects) = step(&before, Event::Assigned(assignment(6, &["b", "x"])));
    assert_eq!((lost.version(), lost.held()), (6, Some(&keys(&["b", "x"]))));
    assert_eq!(lost.releasing, keys(&["a", "@c"]));
    let expected = [Effect::Stop(key("a")), Effect::Stop(key("@c")), Effect::Hold(key("x"))];
    assert_eq!(effects, expected);

    let (regained, effects) = step(&lost, Event::Assigned(assignment(7, &["a", "b", "x"])));
    assert_eq!(regained.releasing, keys(&["@c"]));
    assert_eq!(effects, [Effect::Hold(key("a"))]);
}

#[test]
fn what_is_quiet_is_released_once_and_nothing_else_is() {
    let (lost, _) = step(&holding(&["a", "b"]), Event::Assigned(assignment(6, &[])));
    let (one, effects) = step(&lost, Event::Quiet(keys(&["a", "never"])));
    assert_eq!((one.releasing.clone(), effects), (keys(&["b"]), vec![Effect::Released(key("a"))]));
    let (same, effects) = step(&one, Event::Quiet(keys(&["a"])));
    assert_eq!((same, effects), (one, vec![]));
}

#[test]
fn settled_machines_are_reported_until_the_assignment_lacks_them() {
    let with = |version, machines_in: &[&str]| {
        let machines_in = machines(machines_in);
        Event::Assigned(Assignment { machines_in, ..assignment(version, &[]) })
    };
    let (received, effects) = step(&Holdings::default(), with(5, &["t/m", "t/n"]));
    assert_eq!(effects, [Effect::Own("m".into()), Effect::Own("n".into())]);

    let done = Event::Done([("t".into(), "m".into()), ("t".into(), "other".into())].into());
    let (settled, effects) = step(&received, done.clone());
    assert_eq!(effects, [Effect::Disown("m".into())]);
    assert_eq!(settled.settled, machines(&["t/m"]));
    assert_eq!(settled.assignment.as_ref().unwrap().machines_in, machines(&["t/n"]));
    assert_eq!(step(&settled, done), (settled.clone(), vec![]), "once");

    // The coordinator has not heard of it yet.
    let (again, effects) = step(&settled, with(6, &["t/m", "t/n"]));
    assert_eq!(effects, []);
    assert_eq!(again.settled, machines(&["t/m"]));
    assert_eq!(again.assignment.as_ref().unwrap().machines_in, machines(&["t/n"]));

    let (heard, effects) = step(&again, with(7, &["t/n"]));
    assert_eq!((heard.settled.len(), effects), (0, vec![]));

    // The same machine by another transfer is another loan.
    let (second, effects) = step(&again, with(8, &["u/m"]));
    assert_eq!(effects, [Effect::Disown("n".into()), Effect::Own("m".into())]);
    assert!(second.settled.is_empty());
}

fn asked(version: i64, open: &[&'static str]) -> Assignment {
    Assignment { open_transfers: ids(open), ..assignment(version, &["a"]) }
}

#[test]
fn what_was_chosen_is_answered_until_the_transfer_is_no_longer_open() {
    let before = after(vec![Event::Assigned(asked(5, &["t"]))]);
    let picked = |machines| Event::Picked { transfer: "t".into(), out: out(machines) };
    let (gone, effects) = step(&before, picked(&["m", "n"]));
    let answer = Effect::Answer { transfer: "t".into(), out: out(&["m", "n"]) };
    let disowned = [Effect::Disown("m".into()), Effect::Disown("n".into())];
    assert_eq!(effects, [&disowned[..], std::slice::from_ref(&answer)].concat());

    let (again, effects) = step(&gone, picked(&["x"]));
    assert_eq!((&again, effects), (&gone, vec![answer.clone()]), "never others");
    assert_eq!(gone.answer(&"t".into()), Some(answer));

    let (kept, effects) = step(&gone, Event::Assigned(asked(6, &["t", "u"])));
    assert_eq!((kept.out.len(), effects), (1, vec![]));

    // Moved: now the Assignment says so.
    let moved = Assignment { machines_out: machines(&["t/m", "t/n"]), ..asked(7, &["u"]) };
    let (moved, effects) = step(&kept, Event::Assigned(moved));
    assert_eq!((moved.out.len(), effects), (0, vec![]));
    assert_eq!(moved.answer(&"t".into()), None);

    // Given up: they are ours again.
    let (back, effects) = step(&kept, Event::Assigned(asked(7, &["u"])));
    assert_eq!(effects, [Effect::Own("m".into()), Effect::Own("n".into())]);
    assert!(back.out.is_empty());
}

#[test]
fn nothing_is_let_go_of_for_a_transfer_that_is_not_open() {
    let picked = Event::Picked { transfer: "t".into(), out: out(&["m"]) };
    for holdings in [Holdings::default(), after(vec![Event::Assigned(asked(5, &["u"]))])] {
        assert_eq!(holdings.apply(&picked), Err(Refused::NotOpen("t".into())));
    }
}

#[test]
fn a_drain_is_answered_when_it_is_over_with_those_that_made_it() {
    let before = after(vec![Event::Assigned(asked(5, &["t"]))]);
    let drain = Some(drain_for(9));
    let chosen = Out { drain, ..out(&["m", "n"]) };
    let picked = Event::Picked { transfer: "t".into(), out: chosen };
    let (draining, effects) = step(&before, picked.clone());
    assert_eq!(effects, [Effect::Disown("m".into()), Effect::Disown("n".into())]);
    assert_eq!(step(&draining, picked), (draining.clone(), vec![]), "unanswered until then");

    let drained = |idle| Event::Drained { transfer: "t".into(), idle: ids(idle) };
    let (over, effects) = step(&draining, drained(&["n", "never"]));
    let out = Out { drain: Some(Drain { over: true, ..drain_for(9) }), ..out(&["n"]) };
    let answer = Effect::Answer { transfer: "t".into(), out };
    assert_eq!(effects, [Effect::Own("m".into()), answer.clone()]);
    assert_eq!(step(&over, drained(&["m", "n"])), (over, vec![answer]), "the same every time");

    let none = before.apply(&drained(&["m"]));
    assert_eq!(none, Err(Refused::NotDraining("t".into())));
}

fn heard(fleet: &str, term: i64) -> Event {
    Event::Heard { fleet: Some(fleet.parse().unwrap()), term }
}

#[test]
fn coordinator_inv_i2_term_and_generation_never_fall() {
    let before = after(vec![heard("u.00000005", 9), Event::Assigned(assignment(5, &["a"]))]);
    for (event, refused) in [
        (heard("u.00000005", 8), "its term 8 is below 9"),
        (heard("u.00000004", 10), "a generation before"),
        (heard("v.00000006", 10), "this shard belongs to"),
    ] {
        let error = before.apply(&event).unwrap_err().to_string();
        assert!(error.contains(refused), "{error}");
    }
    let (same, _) = step(&before, heard("u.00000005", 9));
    assert_eq!(same, before);
    let (plain, _) = step(&before, Event::Heard { fleet: None, term: 11 });
    assert_eq!((plain.term, plain.version()), (11, 5));

    let (restored, effects) = step(&before, heard("u.00000006", 9));
    assert_eq!((restored.version(), restored.held()), (0, Some(&keys(&["a"]))));
    assert_eq!((restored.digest(), effects), (7, vec![]), "whatever is held stays");
}

#[test]
fn an_older_assignment_is_refused() {
    let error = holding(&["a"]).apply(&Event::Assigned(assignment(4, &[])));
    assert_eq!(error, Err(Refused::OldAssignment { theirs: 4, ours: 5 }));
    step(&holding(&["a"]), Event::Assigned(assignment(5, &[])));
}

#[test]
fn a_shard_without_an_assignment_shares_all_the_same() {
    let none = Holdings::default();
    assert_eq!((none.version(), none.digest()), (0, 1));
}
