//! Machines on which their provider fails are left alone for a while (§5).

use std::time::Duration;

use bigfleet_model::MachineId;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tokio::time::Instant;

const FIRST: Duration = Duration::from_secs(10);
const MOST: Duration = Duration::from_secs(600);
/// After so many failures in a row the machine is in quarantine.
const QUARANTINED_AT: u32 = 5;
const QUARANTINE: Duration = Duration::from_secs(3600);

/// What failed how often.
#[derive(Clone, Debug)]
pub(crate) struct Failing {
    kind: &'static str,
    failures: u32,
    /// Not to be acquired before.
    pub(crate) until: Instant,
    /// What the provider said last.
    pub(crate) error: String,
    /// The engine knows that its hold has ended.
    told: bool,
}

/// All machines that fail.
#[derive(Debug, Default)]
pub(crate) struct Backoffs {
    failing: HashMap<MachineId, Failing, RandomState>,
    /// What the engine has not been told yet.
    changed: Vec<MachineId>,
}

impl Backoffs {
    /// The `kind` of action failed on a machine. `spread` is in `[0, 1)`.
    pub(crate) fn fail(
        &mut self,
        machine: &MachineId,
        kind: &'static str,
        error: String,
        spread: f64,
    ) {
        let known = self.failing.get(machine).filter(|known| known.kind == kind);
        let failures = known.map_or(1, |known| known.failures.saturating_add(1));
        let until = Instant::now() + delay(failures).mul_f64(0.8 + 0.4 * spread);
        self.failing.insert(machine.clone(), Failing { kind, failures, until, error, told: false });
        self.changed.push(machine.clone());
    }

    /// Something worked.
    pub(crate) fn clear(&mut self, machine: &MachineId) {
        if self.failing.remove(machine).is_some() {
            self.changed.push(machine.clone());
        }
    }

    /// What is known of a machine that fails.
    pub(crate) fn of(&self, machine: &MachineId) -> Option<&Failing> {
        self.failing.get(machine)
    }

    /// Machines held back now.
    pub(crate) fn held(&self) -> impl Iterator<Item = (&MachineId, &Failing)> {
        let now = Instant::now();
        self.failing.iter().filter(move |(_, failing)| failing.until > now)
    }

    /// Calls back with every machine whose hold began or ended since the last time.
    pub(crate) fn changes(&mut self, mut each: impl FnMut(&MachineId, bool)) {
        let now = Instant::now();
        // Ended ones stay, so that the next failure counts on; they are told once.
        for (machine, failing) in &mut self.failing {
            if failing.until <= now && !failing.told {
                each(machine, false);
                failing.told = true;
            }
        }
        for machine in self.changed.drain(..) {
            each(&machine, self.failing.get(&machine).is_some_and(|failing| failing.until > now));
        }
    }
}

fn delay(failures: u32) -> Duration {
    if failures >= QUARANTINED_AT {
        return QUARANTINE;
    }
    FIRST.saturating_mul(1 << (failures - 1).min(16)).min(MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_and_the_fifth_is_quarantine() {
        let seconds: Vec<u64> = (1..=6).map(|failures| delay(failures).as_secs()).collect();
        assert_eq!(seconds, [10, 20, 40, 80, 3600, 3600]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_hold_is_told_when_it_begins_and_when_it_ends() {
        let mut backoffs = Backoffs::default();
        let machine = MachineId::from("m");
        // A provider may have no words for it.
        backoffs.fail(&machine, "Create", String::new(), 0.5);
        let told = |backoffs: &mut Backoffs| {
            let mut told = Vec::new();
            backoffs.changes(|machine, held| told.push((machine.clone(), held)));
            told
        };
        assert_eq!(told(&mut backoffs), [(machine.clone(), true)]);
        assert_eq!(told(&mut backoffs), []);
        tokio::time::advance(Duration::from_secs(11)).await;
        assert_eq!(told(&mut backoffs), [(machine.clone(), false)]);
        assert_eq!(told(&mut backoffs), []);
        backoffs.fail(&machine, "Create", "no stock".to_owned(), 0.5);
        assert_eq!(backoffs.of(&machine).map(|failing| failing.failures), Some(2));
        backoffs.fail(&machine, "Configure", "no".to_owned(), 0.5);
        assert_eq!(backoffs.of(&machine).map(|failing| failing.failures), Some(1), "of one kind");
        told(&mut backoffs);
        backoffs.clear(&machine);
        assert_eq!(told(&mut backoffs), [(machine, false)]);
    }
}
