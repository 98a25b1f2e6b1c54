//! The rules of §2, one by one.

use bigfleet_provider::protocol::{
    Advance, FenceBook, FencePolicy, FenceRefusal, GHOSTS, Mark, Newer, Token,
};

const STRICT: FencePolicy = FencePolicy { require_token: false, strict_epoch: true };

/// Checks and, if it passes, advances.
fn send(book: &mut FenceBook, shard: &str, machine: &str, at: (i64, i64), known: bool) -> bool {
    match book.check(&Token::new(shard, at.0, at.1), machine, known) {
        Ok(advance) => {
            book.advance(advance.expect("it is fenced"));
            true
        }
        Err(FenceRefusal::Stale(_)) => false,
        Err(other) => panic!("{other}"),
    }
}

fn book() -> FenceBook {
    FenceBook::new(FencePolicy::default())
}

#[test]
fn only_strictly_newer_tokens_pass() {
    for (token, passes) in [
        ((2, 5), false),
        ((2, 4), false),
        ((2, i64::MIN), false),
        ((1, 99), false),
        ((-7, i64::MAX), false),
        ((i64::MIN, 6), false),
        ((2, 6), true),
        ((2, i64::MAX), true),
        ((3, 0), true),
        ((3, -1), true),
        ((10, i64::MIN), true),
        ((i64::MAX, i64::MAX), true),
    ] {
        let mut book = book();
        assert!(send(&mut book, "s", "m", (2, 5), true), "first contact");
        assert_eq!(send(&mut book, "s", "m", token, true), passes, "{token:?}");
        let (epoch, sequence) = if passes { token } else { (2, 5) };
        assert_eq!(book.mark("s", "m"), Some(Mark { epoch, sequence }), "{token:?}");
    }
}

#[test]
fn the_ends_of_the_range_are_ordinary_numbers() {
    let mut book = book();
    let rising = [
        (i64::MIN, i64::MIN),
        (i64::MIN, -1),
        (-1, i64::MAX),
        (0, -1),
        (0, 0),
        (i64::MAX, i64::MIN),
        (i64::MAX, i64::MAX),
    ];
    for at in rising {
        assert!(send(&mut book, "s", "m", at, true), "{at:?}");
        assert!(!send(&mut book, "s", "m", at, true), "{at:?} again");
    }
    assert!(!send(&mut book, "s", "m", (i64::MAX - 1, i64::MAX), true));
}

#[test]
fn marks_cross_neither_shards_nor_machines() {
    let mut book = book();
    assert!(send(&mut book, "s", "a", (1, 30), true));
    assert!(send(&mut book, "s", "b", (1, 7), true));
    assert!(!send(&mut book, "s", "b", (1, 7), true));
    assert!(!send(&mut book, "s", "b", (0, 999), true));
    assert!(send(&mut book, "t", "a", (0, 1), true));
    assert_eq!(book.mark("s", "a"), Some(Mark { epoch: 1, sequence: 30 }));
    assert_eq!(book.marks().count(), 3);
}

#[test]
fn zero_tokens_leave_no_mark_and_are_refused_where_a_token_is_required() {
    let zero = Token::unfenced();
    let mut free = book();
    assert!(send(&mut free, "s", "m", (9, 9), true));
    assert_eq!(free.check(&zero, "m", true), Ok(None));
    assert_eq!(free.check(&zero, "m", true), Ok(None));
    let strict = FenceBook::new(FencePolicy { require_token: true, strict_epoch: false });
    assert_eq!(strict.check(&zero, "m", true), Err(FenceRefusal::TokenRequired));
    assert!(strict.check(&Token::new("s", 0, 0), "m", true).is_ok());
}

#[test]
fn a_check_changes_nothing() {
    let book = book();
    let token = Token::new("s", 1, 1);
    let first = book.check(&token, "m", true);
    assert_eq!(first, book.check(&token, "m", true));
    let mark = Mark { epoch: 1, sequence: 1 };
    let advance =
        Advance { machine: "m".into(), shard_id: "s".into(), mark, known: true, epoch: None };
    assert_eq!(first, Ok(Some(advance)));
}

#[test]
fn a_mark_never_moves_back() {
    for known in [true, false] {
        let mut book = book();
        let newer = book.check(&Token::new("s", 1, 9), "m", known).unwrap().unwrap();
        let older = book.check(&Token::new("s", 1, 8), "m", known).unwrap().unwrap();
        book.advance(newer);
        book.advance(older);
        assert_eq!(book.mark("s", "m"), Some(Mark { epoch: 1, sequence: 9 }));
    }
}

#[test]
fn an_older_epoch_is_stale_everywhere_only_where_epochs_are_strict() {
    for (policy, passes) in [(STRICT, false), (FencePolicy::default(), true)] {
        let mut book = FenceBook::new(policy);
        // Even for a machine that does not exist.
        assert!(send(&mut book, "s", "epoch.s", (5, 1), false));
        assert_eq!(send(&mut book, "s", "m", (4, 99), true), passes);
        assert!(send(&mut book, "s", "n", (5, 0), true), "an equal epoch goes on");
        assert!(send(&mut book, "t", "m", (1, 1), true), "epochs do not cross shards");
        assert_eq!(book.highest_epoch("s"), (!passes).then_some(5));
    }
    let mut book = FenceBook::new(STRICT);
    send(&mut book, "s", "a", (5, 1), true);
    let refusal = book.check(&Token::new("s", 4, 1), "b", true).unwrap_err();
    assert!(matches!(&refusal, FenceRefusal::Stale(stale) if stale.newer == Newer::Epoch(5)));
    assert_eq!(
        refusal.to_string(),
        "stale token of shard \"s\": (4, 1) is not newer than epoch 5 of this shard"
    );
}

#[test]
fn unknown_machines_are_fenced_too_but_within_bounds() {
    let mut book = book();
    assert!(send(&mut book, "s", "real", (5, 5), true));
    for index in 0..GHOSTS + 1000 {
        assert!(send(&mut book, "s", &format!("ghost-{index}"), (5, 5), false));
    }
    assert_eq!(book.ghosts(), GHOSTS);
    assert!(!send(&mut book, "s", "real", (5, 5), true), "real marks are kept");
    let newest = format!("ghost-{}", GHOSTS + 999);
    assert!(!send(&mut book, "s", &newest, (1, 1), false));
    assert_eq!(book.marks().count(), 1, "ghosts are not stored");
}

#[test]
fn a_ghost_that_becomes_a_machine_keeps_its_marks() {
    let mut book = book();
    for shard in ["s", "t"] {
        assert!(send(&mut book, shard, "m", (3, 3), false));
    }
    // Known to the fence before anyone said so.
    assert!(!send(&mut book, "s", "m", (3, 3), true));
    let mut promoted = book.promote(&"m".into());
    promoted.sort();
    let mark = Mark { epoch: 3, sequence: 3 };
    assert_eq!(promoted, [("s".into(), mark), ("t".into(), mark)]);
    assert_eq!((book.ghosts(), book.marks().count()), (0, 2));
    assert!(!send(&mut book, "t", "m", (3, 3), true));
    book.forget("m");
    assert_eq!(book.marks().count(), 0);
    assert!(send(&mut book, "t", "m", (1, 1), true), "dropped with the record");
}

#[test]
fn what_was_stored_fences_again() {
    let mut old = FenceBook::new(STRICT);
    for (machine, at) in [("a", (3, 7)), ("b", (2, 1)), ("ghost", (4, 1))] {
        send(&mut old, machine, machine, at, machine != "ghost");
    }
    let mut new = FenceBook::new(STRICT);
    old.marks().for_each(|(machine, shard, mark)| new.load(machine.clone(), shard, mark));
    old.epochs().for_each(|(shard, epoch)| new.load_epoch(shard, epoch));
    assert!(!send(&mut new, "a", "a", (3, 7), true));
    assert!(!send(&mut new, "b", "b", (2, 1), true));
    assert_eq!(new.highest_epoch("ghost"), Some(4), "epochs of unknown machines are stored");
    assert!(send(&mut new, "a", "a", (3, 8), true));
    // Marks stored before epochs were strict tell the epochs, too.
    let mut late = FenceBook::new(STRICT);
    late.load("a".into(), "a", Mark { epoch: 3, sequence: 7 });
    assert!(!send(&mut late, "a", "other", (2, 1), true));
}
