//! What a document must not say. Each refusal names its path.

use std::collections::HashSet;

use bigfleet_provider_kit::ShapeCheck;

use super::{CloudConfig, Config, Mishaps};
use crate::{Error, price_walk::PriceWalk, slot::slots, stock::StockConfig, tier::Tier};

impl Config {
    /// Whether clouds can be made of it.
    pub fn check(&self) -> Result<(), Error> {
        if self.clouds.is_empty() {
            return Err(Error::field("clouds", "empty; a simulation needs one at least"));
        }
        let mut names = HashSet::new();
        for (number, cloud) in self.clouds.iter().enumerate() {
            let path = format!("clouds[{number}]");
            let legal = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
            if cloud.name.is_empty() || !cloud.name.bytes().all(legal) {
                let problem = "write lower-case letters and digits: machines are found by the \
                               part of their id before the first `-`";
                return Err(Error::field(format!("{path}.name"), problem));
            }
            if !names.insert(&cloud.name) {
                return Err(Error::field(format!("{path}.name"), "another cloud has it, too"));
            }
            cloud.check(&path)?;
        }
        Ok(())
    }
}

impl CloudConfig {
    fn check(&self, path: &str) -> Result<(), Error> {
        let zones = self.check_regions(path)?;
        let mut names = HashSet::new();
        for (number, tier) in self.tiers.iter().enumerate() {
            let path = format!("{path}.tiers[{number}]");
            if !is_name(&tier.name) {
                return Err(Error::field(format!("{path}.name"), NAME));
            }
            if !names.insert(&tier.name) {
                return Err(Error::field(format!("{path}.name"), "another tier has it, too"));
            }
            if let Some(at) = tier.zones.iter().position(|zone| !zones.contains(zone.as_str())) {
                let problem = format!("{:?} is no zone of this cloud", tier.zones[at]);
                return Err(Error::field(format!("{path}.zones[{at}]"), problem));
            }
        }
        self.check_shapes(path)?;
        for (number, pile) in self.stock.iter().enumerate() {
            self.check_pile(&format!("{path}.stock[{number}]"), pile, &zones)?;
        }
        for name in self.quotas.types.keys() {
            if !self.has_type(name) {
                let problem = "no tier has this type";
                return Err(Error::field(format!("{path}.quotas.types.{name}"), problem));
            }
        }
        if let Some(name) = self.quotas.unknown_capacity() {
            let problem = "write BARE_METAL, RESERVED, ON_DEMAND or SPOT";
            return Err(Error::field(format!("{path}.quotas.capacities.{name}"), problem));
        }
        if let Some(PriceWalk { interval, sigma }) = self.price_walk {
            if interval.is_zero() {
                return Err(Error::field(format!("{path}.price_walk.interval"), "must be above 0"));
            }
            number(&format!("{path}.price_walk.sigma"), sigma, 1.0)?;
        }
        self.mishaps.check(&format!("{path}.mishaps"))
    }

    fn check_regions(&self, path: &str) -> Result<HashSet<&str>, Error> {
        let mut zones = HashSet::new();
        for (number, region) in self.regions.iter().enumerate() {
            let path = format!("{path}.regions[{number}]");
            for (number, zone) in region.zones.iter().enumerate() {
                let path = format!("{path}.zones[{number}]");
                if !is_name(&zone.name) {
                    return Err(Error::field(format!("{path}.name"), NAME));
                }
                if !zones.insert(zone.name.as_str()) {
                    return Err(Error::field(format!("{path}.name"), "another zone has it, too"));
                }
                if zone.racks == 0 {
                    return Err(Error::field(format!("{path}.racks"), "must be above 0"));
                }
            }
        }
        if zones.is_empty() {
            return Err(Error::field(
                format!("{path}.regions"),
                "no zone in it; name one at least",
            ));
        }
        Ok(zones)
    }

    /// The kit refuses the same at its start, but by machine and not by path.
    fn check_shapes(&self, path: &str) -> Result<(), Error> {
        let shape = ShapeCheck::new("sim");
        let mut checked = HashSet::new();
        for slot in slots(self).iter().filter(|slot| checked.insert(slot.tier)) {
            let tier: &Tier = &self.tiers[slot.tier];
            let offer = slot.offer(tier, tier.price, Some("sim://any".into()));
            if let Err(misshapen) = shape.machine(&offer) {
                let field = match misshapen.field {
                    "instance_type" => "type",
                    "capacity_type" => "capacity",
                    "price_per_hour" => "price",
                    "interruption_probability" => "probability",
                    other => other,
                };
                let path = format!("{path}.tiers[{}].{field}", slot.tier);
                return Err(Error::field(path, misshapen.problem));
            }
        }
        Ok(())
    }

    fn has_type(&self, name: &str) -> bool {
        self.tiers.iter().any(|tier| tier.instance_type == name)
    }

    fn check_pile(
        &self,
        path: &str,
        pile: &StockConfig,
        zones: &HashSet<&str>,
    ) -> Result<(), Error> {
        if !self.has_type(&pile.instance_type) {
            return Err(Error::field(format!("{path}.type"), "no tier has this type"));
        }
        if !zones.contains(pile.zone.as_str()) {
            return Err(Error::field(format!("{path}.zone"), "no zone of this cloud"));
        }
        number(&format!("{path}.refill_per_hour"), pile.refill_per_hour, f64::INFINITY)
    }
}

impl Mishaps {
    fn check(&self, path: &str) -> Result<(), Error> {
        for (name, share) in [
            ("create_error_rate", self.create_error_rate),
            ("readiness_fail_rate", self.readiness_fail_rate),
            ("host_death_rate", self.host_death_rate),
        ] {
            number(&format!("{path}.{name}"), share, 1.0)?;
        }
        number(&format!("{path}.interruptions.factor"), self.interruptions.factor, f64::INFINITY)?;
        let Some(rate) = self.api_rate else { return Ok(()) };
        let path = format!("{path}.api_rate");
        if rate.burst == 0 {
            return Err(Error::field(format!("{path}.burst"), "must be above 0"));
        }
        number(&format!("{path}.per_second"), rate.per_second, f64::INFINITY)
    }
}

const NAME: &str = "write letters, digits, `-`, `_` and `.` only";

fn is_name(name: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !name.is_empty() && name.bytes().all(legal)
}

fn number(path: &str, value: f64, most: f64) -> Result<(), Error> {
    if !value.is_nan() && (0.0..=most).contains(&value) && value.is_finite() {
        return Ok(());
    }
    let range = if most.is_finite() { format!("0 to {most}") } else { "0 or more".to_owned() };
    Err(Error::field(path, format!("{value} is out of range; write {range}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: &str = "
clouds:
  - name: alpha
    regions: [{name: east, zones: [{name: east-a}, {name: east-b, racks: 2}]}]
    tiers:
      - {name: spot, type: m8, capacity: SPOT, price: 0.12, probability: 0.3, count: 4,
         resources: {cpu: 8, memory: 32Gi}, zones: [east-a]}
    stock: [{type: m8, zone: east-a, count: 2}]
    quotas: {types: {m8: 3}, capacities: {SPOT: 2}}
    price_walk: {interval: 5m, sigma: 0.02}
    mishaps: {api_rate: {per_second: 10, burst: 5}, interruptions: {notice: 30s}}
";

    #[test]
    fn a_sound_document_is_taken() {
        let config = Config::parse(SOUND).unwrap();
        assert_eq!(config.clouds[0].tiers[0].resources["cpu"], "8");
        assert_eq!(config.clouds[0].regions[0].zones[1].racks, 2);
        assert_eq!(config.clouds[0].mishaps.interruptions.notice.as_secs(), 30);
    }

    #[test]
    fn a_wrong_value_is_named_by_its_path() {
        for (from, to, path) in [
            ("name: alpha", "name: al-pha", "clouds[0].name"),
            ("racks: 2", "racks: 0", "clouds[0].regions[0].zones[1].racks"),
            ("racks: 2", "racks: two", "clouds[0].regions[0].zones[1].racks"),
            ("name: east-b", "name: east-a", "clouds[0].regions[0].zones[1].name"),
            ("price: 0.12", "price: 0", "clouds[0].tiers[0].price"),
            ("price: 0.12", "prize: 0.12", "clouds[0].tiers[0].prize"),
            ("probability: 0.3", "probability: 1.3", "clouds[0].tiers[0].probability"),
            ("probability: 0.3", "probability: 0", "clouds[0].tiers[0].probability"),
            ("capacity: SPOT", "capacity: spot", "clouds[0].tiers[0].capacity"),
            ("memory: 32Gi", "memory: plenty", "clouds[0].tiers[0].resources"),
            ("zones: [east-a]", "zones: [east-c]", "clouds[0].tiers[0].zones[0]"),
            ("name: spot", "name: a b", "clouds[0].tiers[0].name"),
            ("stock: [{type: m8", "stock: [{type: m9", "clouds[0].stock[0].type"),
            ("m8: 3", "m9: 3", "clouds[0].quotas.types.m9"),
            ("SPOT: 2", "SPORT: 2", "clouds[0].quotas.capacities.SPORT"),
            ("interval: 5m", "interval: 5", "clouds[0].price_walk.interval"),
            ("sigma: 0.02", "sigma: 2", "clouds[0].price_walk.sigma"),
            ("burst: 5", "burst: 0", "clouds[0].mishaps.api_rate.burst"),
            ("notice: 30s", "factor: -1", "clouds[0].mishaps.interruptions.factor"),
        ] {
            assert!(SOUND.contains(from), "{from}");
            let error = Config::parse(&SOUND.replace(from, to)).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{path}: ")), "{to}: {error}");
        }
        assert!(matches!(Config::parse("clouds: [").unwrap_err(), Error::Syntax(_)));
    }
}
