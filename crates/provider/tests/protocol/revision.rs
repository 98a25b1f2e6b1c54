//! Cursors, deltas and pages (§6).

use bigfleet_model::{MachineId, MachineState};
use bigfleet_provider::protocol::{Cursor, Garbled, RevIndex, StateSet};

const LIFE: u64 = 0xab;

fn index(machines: usize) -> RevIndex {
    let mut index = RevIndex::new(LIFE, 0);
    for number in 0..machines {
        index.bump(&format!("m-{number}").into());
    }
    index
}

fn all(_: &MachineId) -> bool {
    true
}

fn names(index: &RevIndex, cursor: &str, max: usize) -> (Vec<String>, String) {
    let page = index.page(cursor.as_bytes(), max, all);
    (page.machines.iter().map(ToString::to_string).collect(), page.cursor.to_string())
}

#[test]
fn a_cursor_reads_back_and_no_other_text_does() {
    let cursor = Cursor { store_life: LIFE, revision: 42 };
    let text = "1.00000000000000ab.42";
    assert_eq!(cursor.to_string(), text);
    assert_eq!(Cursor::parse(text.as_bytes()), Ok(cursor));
    for garbled in [
        "",
        "1",
        "1.",
        "1..",
        "42",
        "2.00000000000000ab.42",
        "01.00000000000000ab.42",
        "1.ab.42",
        "1.00000000000000AB.42",
        "1.+0000000000000ab.42",
        "1.00000000000000ab.",
        "1.00000000000000ab.+42",
        "1.00000000000000ab.042",
        "1.00000000000000ab.-1",
        "1.00000000000000ab.42!",
        "1.00000000000000ab.42 ",
        "1.00000000000000ab.42.1",
        "1.00000000000000ab.18446744073709551616",
    ] {
        assert_eq!(Cursor::parse(garbled.as_bytes()), Err(Garbled), "{garbled}");
    }
    assert_eq!(Cursor::parse(&[0xff, 0xfe]), Err(Garbled));
}

#[test]
fn whatever_is_no_place_in_this_store_gives_the_full_list() {
    let index = index(3);
    let full = names(&index, "", 0);
    assert_eq!(full.0.len(), 3);
    let foreign = Cursor { store_life: LIFE + 1, revision: 2 }.to_string();
    let ahead = Cursor { store_life: LIFE, revision: 4 }.to_string();
    for cursor in ["junk", &foreign, &ahead, &"x".repeat(4096)] {
        assert_eq!(names(&index, cursor, 0), full, "{cursor}");
    }
}

#[test]
fn a_delta_holds_what_changed_since_and_nothing_else() {
    let mut index = index(4);
    let (_, head) = names(&index, "", 0);
    assert_eq!(names(&index, &head, 0), (vec![], head.clone()), "nothing changed");
    index.bump(&"m-1".into());
    index.bump(&"m-0".into());
    index.bump(&"m-1".into());
    let (delta, next) = names(&index, &head, 0);
    assert_eq!(delta, ["m-0", "m-1"], "each once, by its last change");
    assert_eq!(names(&index, &next, 0).0.len(), 0);
    index.remove("m-0");
    assert_eq!(names(&index, &head, 0).0, ["m-1"], "a removal leaves no entry");
    assert_eq!(names(&index, "", 0).0, ["m-2", "m-3", "m-1"]);
    assert_eq!((index.of("m-0"), index.of("m-1")), (None, Some(7)));
}

#[test]
fn pages_continue_without_gap_or_repeat_and_end_at_head() {
    let mut index = index(7);
    let mut seen = Vec::new();
    let mut cursor = String::new();
    for (round, expected) in [3, 3, 1].into_iter().enumerate() {
        let (page, next) = names(&index, &cursor, 3);
        assert_eq!(page.len(), expected, "page {round}");
        seen.extend(page);
        cursor = next;
    }
    assert_eq!(seen, (0..7).map(|number| format!("m-{number}")).collect::<Vec<_>>());
    assert_eq!(cursor, index.cursor(index.head()).to_string());
    // An exact fit is not cut.
    assert_eq!(names(&index, "", 7).1, cursor);
    assert_eq!(names(&index, "", 6).1, index.cursor(6).to_string());
    // A record that changes between pages comes again.
    let (first, next) = names(&index, "", 3);
    assert_eq!(first, ["m-0", "m-1", "m-2"]);
    index.bump(&"m-1".into());
    assert_eq!(names(&index, &next, 0).0, ["m-3", "m-4", "m-5", "m-6", "m-1"]);
}

#[test]
fn a_cut_counts_wanted_records_only() {
    let index = index(6);
    let odd = |machine: &MachineId| machine.ends_with(['1', '3', '5']);
    let page = index.page(b"", 2, odd);
    let ids: Vec<&str> = page.machines.iter().map(MachineId::as_str).collect();
    assert_eq!(ids, ["m-1", "m-3"]);
    assert_eq!(page.cursor.revision, 4);
    assert_eq!(index.page(b"", 3, odd).cursor.revision, index.head());
    let rest = index.page(page.cursor.to_string().as_bytes(), 2, odd);
    assert_eq!(rest.machines, ["m-5".into()]);
}

#[test]
fn a_loaded_index_goes_on_where_it_was() {
    let old = index(3);
    let mut new = RevIndex::new(LIFE, old.head());
    old.since(0).for_each(|(revision, machine)| new.load(machine.clone(), revision));
    assert_eq!(names(&new, "", 0), names(&old, "", 0));
    assert_eq!(new.bump(&"m-0".into()), 4);
}

#[test]
fn unknown_states_match_nothing() {
    let set = StateSet::from_wire(&[3, 99, 0, 8, 3]);
    let states: Vec<MachineState> = set.iter().collect();
    assert_eq!(states, [MachineState::Idle, MachineState::Failed]);
    assert!(StateSet::from_wire(&[99, 0, -1, 9]).is_empty());
}
