//! Machines for a test: distinct, in one List, in no order.

use super::{Case, Machine, State, lock};
use crate::outcome::{Outcome, Stop};

/// Slots with this label are for the tests that ask for them.
pub const CREATE_FAULT: &str = "conformance.fault/create";

impl Case {
    /// So many machines where a walk begins: S, or I in a fleet without slots.
    pub async fn starts(&self, count: usize) -> Outcome<Vec<String>> {
        let state = if self.gates().slot { State::Speculative } else { State::Idle };
        self.pick(count, state, |machine| !machine.labels.contains_key(CREATE_FAULT)).await
    }

    /// One machine where a walk begins.
    pub async fn start(&self) -> Outcome<String> {
        Ok(self.starts(1).await?.remove(0))
    }

    /// A slot whose creation misbehaves in this way.
    pub async fn faulty(&self, way: &str) -> Outcome<String> {
        let labelled =
            |machine: &Machine| machine.labels.get(CREATE_FAULT).is_some_and(|label| label == way);
        Ok(self.pick(1, State::Speculative, labelled).await?.remove(0))
    }

    async fn pick(
        &self,
        count: usize,
        state: State,
        fits: impl Fn(&Machine) -> bool,
    ) -> Outcome<Vec<String>> {
        let fleet = self.fleet().await?;
        let mut ids: Vec<String> = fleet
            .into_iter()
            .filter(|machine| machine.state() == state && fits(machine))
            .map(|machine| machine.id)
            .collect();
        // What nobody touched comes first: less history, clearer evidence.
        self.random(|random| random.shuffle(&mut ids));
        let mut used = lock(&self.env.used);
        ids.sort_by_key(|id| used.contains(id));
        if ids.len() < count {
            return Err(Stop::Short(format!(
                "needs {count} machines in {}, the target has {}",
                state.as_str_name().trim_start_matches("MACHINE_STATE_"),
                ids.len()
            )));
        }
        ids.truncate(count);
        if self.home {
            used.extend(ids.iter().cloned());
            lock(&self.own.picked).extend(ids.iter().cloned());
        }
        Ok(ids)
    }
}
