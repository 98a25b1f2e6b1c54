//! A debug mode: decide what changed and, from nothing, everything; the two must
//! come to the same (§11).

use std::fmt::Debug;

use crate::{
    action::Action,
    decide::decide,
    engine::Engine,
    input::{CycleInput, Time},
    output::{CycleOutput, Unresolved, Verdict},
};

/// The first thing in which an engine that remembers differs from one that
/// decides from nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cycle {cycle}: {field} is {remembered}, but {anew} when decided from nothing")]
pub struct Difference {
    /// Number of the cycle, from 1.
    pub cycle: u64,
    /// Path in [`CycleOutput`], such as `verdicts[3].claimed`.
    pub field: String,
    /// What the engine came to.
    pub remembered: String,
    /// What a full pass comes to.
    pub anew: String,
}

impl Engine {
    /// Decides one cycle, and the same input from nothing, and compares. For tests
    /// and for the hunt after a defect: it costs many times a cycle. The cycle is
    /// decided either way.
    ///
    /// # Errors
    ///
    /// The first difference, in the order of the fields of [`CycleOutput`].
    pub fn cycle_both(&mut self, now: Time) -> Result<(), Difference> {
        let input = CycleInput { now, ..self.input() };
        self.cycle(now);
        let found = first_difference(&self.output(), &decide(&input));
        found.map_or(Ok(()), |(field, remembered, anew)| {
            Err(Difference { cycle: self.cycles(), field, remembered, anew })
        })
    }
}

type Found = (String, String, String);

/// Compares named fields of two values; the path of the first that differs.
macro_rules! fields {
    ($path:expr, $a:expr, $b:expr; $($field:ident),+ $(,)?) => {
        None$(.or_else(|| differ(
            || format!("{}.{}", $path, stringify!($field)), &$a.$field, &$b.$field,
        )))+
    };
}

fn differ<T: PartialEq + Debug>(path: impl Fn() -> String, a: &T, b: &T) -> Option<Found> {
    (a != b).then(|| (path(), format!("{a:?}"), format!("{b:?}")))
}

fn first_difference(a: &CycleOutput, b: &CycleOutput) -> Option<Found> {
    in_lists("verdicts", &a.verdicts, &b.verdicts, in_verdicts)
        .or_else(|| in_maps("claims", &a.claims, &b.claims))
        .or_else(|| in_maps("outgrown", &a.outgrown, &b.outgrown))
        .or_else(|| in_lists("actions", &a.actions, &b.actions, in_actions))
        .or_else(|| in_lists("unresolved", &a.unresolved, &b.unresolved, in_unresolved))
        .or_else(|| in_maps("gang_ages", &a.gang_ages, &b.gang_ages))
}

fn in_lists<T: Debug>(
    name: &str,
    a: &[T],
    b: &[T],
    in_items: impl Fn(&str, &T, &T) -> Option<Found>,
) -> Option<Found> {
    let of_both = a.iter().zip(b).enumerate();
    let mut found = of_both.filter_map(|(at, (a, b))| in_items(&format!("{name}[{at}]"), a, b));
    found.next().or_else(|| {
        let at = a.len().min(b.len());
        let text = |items: &[T]| {
            items.get(at).map_or_else(|| "absent".to_owned(), |one| format!("{one:?}"))
        };
        (a.len() != b.len()).then(|| (format!("{name}[{at}]"), text(a), text(b)))
    })
}

fn in_maps<K: Ord + Debug, V: PartialEq + Debug>(
    name: &str,
    a: &std::collections::BTreeMap<K, V>,
    b: &std::collections::BTreeMap<K, V>,
) -> Option<Found> {
    let key = a.keys().chain(b.keys()).filter(|key| a.get(key) != b.get(key)).min()?;
    let text =
        |of: Option<&V>| of.map_or_else(|| "absent".to_owned(), |value| format!("{value:?}"));
    Some((format!("{name}[{key:?}]"), text(a.get(key)), text(b.get(key))))
}

fn in_verdicts(path: &str, a: &Verdict, b: &Verdict) -> Option<Found> {
    fields!(path, a, b; cluster, fingerprint, group, aggregate, min_unit, folded, satisfied,
        deficit, claimed, bootstrap, provision, domain, satisfiable, parked,
        matching_supply_exists, gang_age, outcome, reason, detail)
}

/// Which rule decided a domain is told, not compared.
fn in_actions(path: &str, a: &Action, b: &Action) -> Option<Found> {
    fields!(path, a, b; machine, kind, cost, runner_up_cost)
}

fn in_unresolved(path: &str, a: &Unresolved, b: &Unresolved) -> Option<Found> {
    fields!(path, a, b; need, deficit, preempted)
}

#[cfg(test)]
mod tests {
    use crate::{Time, handle::PreparedIx, testing};

    #[test]
    fn an_engine_that_remembers_comes_to_the_same() {
        for seed in 0..300 {
            let mut engine = testing::engine(seed);
            for _ in 0..4 {
                engine.cycle_both(Time(0)).unwrap();
                engine.restamp();
                engine.actions().into_iter().step_by(2).for_each(|action| engine.pend(action));
            }
        }
    }

    #[test]
    fn a_corrupted_engine_is_told_by_the_first_field_that_differs() {
        let mut told = 0;
        for seed in 0..100 {
            let mut engine = testing::settled(seed);
            let serves = |need: &PreparedIx| {
                let row = &engine.world.needs[*need];
                !row.removed && engine.world.is_settled(*need) && !row.credits.is_empty()
            };
            let Some(need) = engine.world.needs.handles().find(serves) else { continue };
            engine.world.needs[need].credits.pop();
            let number = engine.prepared_order().iter().position(|known| *known == need);
            let difference = engine.cycle_both(Time(0)).unwrap_err();
            assert_eq!(difference.field, format!("verdicts[{}].claimed", number.unwrap()));
            assert_eq!(difference.cycle, 5);
            assert_ne!(difference.remembered, difference.anew);
            told += 1;
        }
        assert!(told > 10, "hardly any engine had something to corrupt");
    }
}
