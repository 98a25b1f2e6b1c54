//! Which machines are meant.

use std::sync::Arc;

use serde::Deserialize;

use crate::{Error, world::World};

/// Machines by name, tier or zone; what is given must all hold, and something must be
/// given.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Selector {
    /// Of this cloud alone.
    pub cloud: Option<String>,
    /// By id.
    pub machines: Vec<String>,
    /// All of this tier.
    pub tier: Option<String>,
    /// All in this zone.
    pub zone: Option<String>,
    /// This share of them, chosen by the seed.
    pub share: Option<f64>,
}

/// A slot of a world.
pub(crate) type Place<'a> = (&'a Arc<World>, usize);

impl Selector {
    /// These machines.
    #[must_use]
    pub fn machines(ids: &[&str]) -> Self {
        Self { machines: ids.iter().map(|id| (*id).to_owned()).collect(), ..Self::default() }
    }

    /// This tier.
    #[must_use]
    pub fn tier(name: &str) -> Self {
        Self { tier: Some(name.to_owned()), ..Self::default() }
    }

    /// This zone.
    #[must_use]
    pub fn zone(name: &str) -> Self {
        Self { zone: Some(name.to_owned()), ..Self::default() }
    }

    /// So much of it.
    #[must_use]
    pub fn share(mut self, share: f64) -> Self {
        self.share = Some(share);
        self
    }

    /// In the order of ids. `eligible` leaves out those that the share is not of.
    pub(crate) fn select<'a>(
        &self,
        worlds: &'a [Arc<World>],
        eligible: impl Fn(Place<'_>) -> bool,
    ) -> Result<Vec<Place<'a>>, Error> {
        self.check(worlds)?;
        let mut places: Vec<Place<'a>> = worlds
            .iter()
            .filter(|world| self.cloud.as_ref().is_none_or(|cloud| *cloud == world.config.name))
            .flat_map(|world| (0..world.slots.len()).map(move |slot| (world, slot)))
            .filter(|place| self.means(*place) && eligible(*place))
            .collect();
        if let Some(share) = self.share {
            let lot = |(world, slot): &Place<'_>| {
                world.dice.named("share").named(&world.slots[*slot].id).share()
            };
            places.sort_by(|one, other| lot(one).total_cmp(&lot(other)));
            places.truncate((places.len() as f64 * share).round() as usize);
        }
        places.sort_by_key(|(world, slot)| &world.slots[*slot].id);
        Ok(places)
    }

    fn means(&self, (world, slot): Place<'_>) -> bool {
        let (slot, tier) = (&world.slots[slot], world.tier(slot));
        (self.machines.is_empty() || self.machines.contains(&slot.id))
            && self.tier.as_ref().is_none_or(|name| *name == tier.name)
            && self.zone.as_ref().is_none_or(|name| *name == slot.zone)
    }

    fn check(&self, worlds: &[Arc<World>]) -> Result<(), Error> {
        if self.machines.is_empty() && self.tier.is_none() && self.zone.is_none() {
            let problem = "name machines, a tier or a zone";
            return Err(Error::field("machines", problem));
        }
        let unknown = |id: &String| worlds.iter().all(|world| world.find(id).is_none());
        if let Some(at) = self.machines.iter().position(unknown) {
            let problem = format!("{:?} is no machine", self.machines[at]);
            return Err(Error::field(format!("machines[{at}]"), problem));
        }
        let tiers = worlds.iter().flat_map(|world| &world.config.tiers).map(|tier| &tier.name);
        one_of("tier", self.tier.as_ref(), tiers)?;
        let zones = worlds.iter().flat_map(|world| &world.slots).map(|slot| &slot.zone);
        one_of("zone", self.zone.as_ref(), zones)?;
        one_of("cloud", self.cloud.as_ref(), worlds.iter().map(|world| &world.config.name))?;
        match self.share {
            Some(share) if !(0.0..=1.0).contains(&share) => {
                Err(Error::field("share", format!("{share} is out of range; write 0 to 1")))
            }
            _ => Ok(()),
        }
    }
}

fn one_of<'a>(
    field: &str,
    name: Option<&String>,
    known: impl Iterator<Item = &'a String>,
) -> Result<(), Error> {
    let Some(name) = name else { return Ok(()) };
    let known: std::collections::BTreeSet<_> = known.map(String::as_str).collect();
    if known.contains(name.as_str()) {
        return Ok(());
    }
    let known: Vec<_> = known.into_iter().collect();
    Err(Error::field(field, format!("there is no {name:?}; there are {}", known.join(", "))))
}
