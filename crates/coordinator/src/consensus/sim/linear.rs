//! Whether a history of one register is linearisable (Wing and Gong's search,
//! with memory).

use std::collections::HashSet;

use tokio::time::Instant;

/// One operation. A write whose outcome is unknown never returns: it may take
/// effect at any time after its call, or not at all.
#[derive(Debug, Clone, Copy)]
pub(super) struct Op {
    pub(super) called: Instant,
    pub(super) returned: Option<Instant>,
    pub(super) value: u64,
    pub(super) writes: bool,
}

/// Registers begin with 0.
pub(super) fn is_linearisable(history: &[Op]) -> bool {
    assert!(history.len() <= 128, "history of {} operations", history.len());
    let mut seen = HashSet::new();
    search(history, 0, 0, &mut seen)
}

fn search(history: &[Op], done: u128, value: u64, seen: &mut HashSet<(u128, u64)>) -> bool {
    let left = || (0..history.len()).filter(|nth| done & (1 << nth) == 0);
    if left().all(|nth| history[nth].returned.is_none()) {
        return true;
    }
    if !seen.insert((done, value)) {
        return false;
    }
    // Whatever comes next was called before anything else that is left returned.
    let first_return = left().filter_map(|nth| history[nth].returned).min();
    let mut next = left().filter(|nth| first_return.is_none_or(|end| history[*nth].called <= end));
    next.any(|nth| {
        let op = history[nth];
        (op.writes || op.value == value)
            && search(history, done | 1 << nth, if op.writes { op.value } else { value }, seen)
    })
}

#[test]
fn the_check_can_fail() {
    let start = Instant::now();
    let at = |ms| start + std::time::Duration::from_millis(ms);
    let op = |writes, value, called, returned: Option<u64>| Op {
        called: at(called),
        returned: returned.map(at),
        value,
        writes,
    };
    let acknowledged = op(true, 1, 0, Some(10));
    assert!(is_linearisable(&[acknowledged, op(false, 1, 20, Some(30))]));
    assert!(!is_linearisable(&[acknowledged, op(false, 0, 20, Some(30))]), "a lost write");
    assert!(is_linearisable(&[acknowledged, op(false, 0, 5, Some(30))]), "it overlaps");
    let unknown = op(true, 2, 11, None);
    assert!(is_linearisable(&[acknowledged, unknown, op(false, 1, 20, Some(30))]));
    assert!(is_linearisable(&[acknowledged, unknown, op(false, 2, 20, Some(30))]));
    let back = [op(false, 2, 20, Some(30)), op(false, 1, 31, Some(40))];
    assert!(!is_linearisable(&[acknowledged, unknown, back[0], back[1]]), "it went back");
}
