//! What an experimenter does to running clouds.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bigfleet_provider_kit::Notice;
use serde::Deserialize;
use tokio::time::Instant;

use crate::{
    Error,
    forecast::{Due, Event},
    freeze::Answer,
    selector::{Place, Selector},
    span,
    world::World,
};

/// A handle on all clouds of a fleet. Clones reach the same.
#[derive(Clone, Debug)]
pub struct Controls {
    worlds: Arc<Vec<Arc<World>>>,
}

/// Take hosts back, with a warning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Interrupt {
    /// What the owner is told.
    pub notice: Warning,
    /// From the notice to the end; the configured notice if not given.
    #[serde(deserialize_with = "span::optional")]
    pub after: Option<Duration>,
}

/// What the owner of a host is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Warning {
    /// It may be taken; nothing happens.
    Rebalance,
    /// It will be taken, and is.
    #[default]
    Termination,
}

/// End hosts, without a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kill {}

/// Set what is left of a type in a zone.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetStock {
    /// How many are left.
    pub count: u32,
    /// How many come back an hour; as before if not given.
    #[serde(default)]
    pub refill_per_hour: Option<f64>,
}

/// Stop what moves, or let it go on.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Freeze {
    /// False thaws.
    pub frozen: bool,
    /// What calls get meanwhile.
    pub answer: Answer,
    /// Thaws by itself after this; never if not given.
    #[serde(rename = "for", deserialize_with = "span::optional")]
    pub length: Option<Duration>,
}

impl Default for Freeze {
    fn default() -> Self {
        Self { frozen: true, answer: Answer::Hang, length: None }
    }
}

impl Controls {
    pub(crate) fn new(worlds: Vec<Arc<World>>) -> Self {
        Self { worlds: Arc::new(worlds) }
    }

    /// How many hosts were told.
    pub fn interrupt(&self, whom: &Selector, how: Interrupt) -> Result<usize, Error> {
        let told = whom.select(&self.worlds, has_host)?;
        for (world, slot) in &told {
            match how.notice {
                Warning::Rebalance => world.notice(*slot, Notice::Rebalance),
                Warning::Termination => {
                    world.notice(*slot, Notice::Termination);
                    let after = how.after.unwrap_or(world.config.mishaps.interruptions.notice);
                    let mut state = world.state();
                    if let Some(generation) = state.hosts.generation(&world.slots[*slot].id) {
                        let (at, event) = (Instant::now() + after, Event::Take);
                        state.forecast.add(Due { at, slot: *slot, generation, event });
                    }
                    drop(state);
                    world.announce();
                }
            }
        }
        Ok(told.len())
    }

    /// How many hosts ended.
    pub fn kill(&self, whom: &Selector, _: Kill) -> Result<usize, Error> {
        let killed = whom.select(&self.worlds, has_host)?;
        Ok(killed.into_iter().filter(|(world, slot)| world.lose(*slot)).count())
    }

    /// How many pairs of type and zone were set.
    pub fn stock(&self, whom: &Selector, stock: SetStock) -> Result<usize, Error> {
        if let Some(rate) = stock.refill_per_hour.filter(|rate| !(rate.is_finite() && *rate >= 0.0))
        {
            let problem = format!("{rate} is out of range; write 0 or more");
            return Err(Error::field("refill_per_hour", problem));
        }
        let mut set = BTreeSet::new();
        for (world, slot) in whom.select(&self.worlds, |_| true)? {
            let pair = (world.tier(slot).instance_type.as_str(), world.slots[slot].zone.as_str());
            if set.insert((world.config.name.as_str(), pair)) {
                let now = Instant::now();
                world.state().stock.set(pair, stock.count, stock.refill_per_hour, now);
            }
        }
        Ok(set.len())
    }

    /// How many machines froze or thawed.
    pub fn freeze(&self, whom: &Selector, how: Freeze) -> Result<usize, Error> {
        let places = whom.select(&self.worlds, |_| true)?;
        let mut count = 0;
        for (world, slot) in places {
            let id = &world.slots[slot].id;
            if how.frozen {
                world.state().frozen.freeze(id, how.answer, how.length, Instant::now());
                count += 1;
            } else if world.state().frozen.thaw(id) {
                count += 1;
            }
        }
        self.worlds.iter().for_each(|world| world.announce());
        Ok(count)
    }
}

fn has_host((world, slot): Place<'_>) -> bool {
    world.state().hosts.generation(&world.slots[slot].id).is_some()
}
