//! One cycle, from nothing.

use std::collections::BTreeMap;

use bigfleet_model::{ClusterId, Need};

use crate::{
    engine::Engine,
    input::{CycleInput, GangKey},
    output::CycleOutput,
};

/// Decides one cycle. Pure: equal input, equal output, whatever its order.
pub fn decide(input: &CycleInput) -> CycleOutput {
    let mut engine = Engine::load(input);
    engine.cycle(input.now);
    engine.output()
}

impl Engine {
    /// Knows what `input` says.
    pub fn load(input: &CycleInput) -> Self {
        let mut engine = Self::new(input.phase2, input.release);
        input.snapshot.iter().for_each(|tracked| engine.upsert(tracked));
        let mut demand: BTreeMap<&ClusterId, Vec<Need>> = BTreeMap::new();
        for need in &input.demand {
            demand.entry(&need.cluster).or_default().push(need.clone());
        }
        for (cluster, needs) in demand {
            engine.replace(cluster, &needs);
            engine.set_ready(cluster, false);
        }
        input.ready.iter().for_each(|cluster| engine.set_ready(cluster, true));
        input.pending.iter().for_each(|action| engine.pend(action.clone()));
        for (need, why) in &input.no_acquire {
            engine.hold(need, Some(*why));
        }
        for (machine, why) in &input.held_back {
            engine.hold_back(machine, Some(*why));
        }
        for (gang, age) in &input.gang_ages {
            engine.set_age(gang, *age);
        }
        engine
    }

    /// How long a gang has been hopeless, in cycles.
    fn set_age(&mut self, gang: &GangKey, age: u32) {
        let names = &self.world.names;
        let account = names.known_account(&gang.cluster, &gang.fingerprint, &gang.group);
        let need = account.and_then(|account| names.accounts[account].need);
        if let Some(need) = need
            && self.world.needs[need].constraint == crate::world::Constraint::Same
        {
            self.world.needs[need].age = age;
        }
    }
}
