//! A world, decided, and short ways to ask what came out.

use bigfleet_engine::{Action, ActionKind, CycleOutput, Verdict, json::read_world};
use bigfleet_oracle::{decide, invariants};

pub(crate) struct Seen {
    pub(crate) output: CycleOutput,
}

/// Decides a world written as JSON.
pub(crate) fn run(world: &str) -> Seen {
    let input = read_world(world).unwrap_or_else(|error| panic!("{error}"));
    let output = decide(&input);
    let violations = invariants::check(&input, &output);
    assert!(violations.is_empty(), "{violations:#?}");
    Seen { output }
}

impl Seen {
    /// As `Kind machine`, in output order.
    pub(crate) fn actions(&self) -> Vec<String> {
        let text = |action: &Action| format!("{} {}", action.kind.name(), action.machine);
        self.output.actions.iter().map(text).collect()
    }

    pub(crate) fn action(&self, machine: &str) -> &Action {
        let mut actions = self.output.actions.iter();
        let action = actions.find(|action| &*action.machine == machine);
        action.unwrap_or_else(|| panic!("nothing is done to {machine}: {:?}", self.actions()))
    }

    pub(crate) fn grace(&self, machine: &str) -> u64 {
        match &self.action(machine).kind {
            ActionKind::Preempt { grace, .. } | ActionKind::Reclaim { grace, .. } => {
                grace.as_secs()
            }
            other => panic!("{other:?} has no grace"),
        }
    }

    /// Machines that a need counts on.
    pub(crate) fn claims(&self, need: usize) -> Vec<&str> {
        let of_need = self.output.claims.iter().filter(|(_, index)| index.0 as usize == need);
        of_need.map(|(machine, _)| machine.as_str()).collect()
    }

    pub(crate) fn verdict(&self, need: usize) -> &Verdict {
        &self.output.verdicts[need]
    }

    /// The value of a gang's only key.
    pub(crate) fn domain(&self, need: usize) -> Option<&str> {
        let domain = self.verdict(need).domain.as_ref()?;
        domain.values().next().map(String::as_str)
    }

    pub(crate) fn ages(&self) -> Vec<u32> {
        self.output.gang_ages.values().copied().collect()
    }

    pub(crate) fn unresolved(&self) -> Vec<(u32, bool)> {
        self.output.unresolved.iter().map(|entry| (entry.need.0, entry.preempted)).collect()
    }
}
