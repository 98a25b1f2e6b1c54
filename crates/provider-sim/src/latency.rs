//! How long a simulated cloud takes.

use std::{fmt, time::Duration};

use bigfleet_provider_kit::Kind;
use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, Visitor, value::MapAccessDeserializer},
};

use crate::{dice::Dice, span::Span};

/// Longest simulated wait: longer ones are this long.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Per kind. In documents `none`, `cloud`, or a map of kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Latency {
    /// Bringing a host.
    pub create: Distribution,
    /// From the bootstrap to a Ready node.
    pub configure: Distribution,
    /// An orderly drain; the grace cuts it short.
    pub drain: Distribution,
    /// Destroying a host.
    pub delete: Distribution,
}

/// Of one kind. In documents a duration, or `{uniform: [a, b]}`, or
/// `{log_normal: {median: m, sigma: s}}`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Always so long.
    Constant(Duration),
    /// Anything from the first to the second.
    Uniform(Duration, Duration),
    /// Mostly short, sometimes long.
    LogNormal {
        /// Half are shorter.
        median: Duration,
        /// Deviation of the logarithm.
        sigma: f64,
    },
}

impl Default for Distribution {
    fn default() -> Self {
        Self::Constant(Duration::ZERO)
    }
}

impl Distribution {
    const fn seconds(from: u64, to: u64) -> Self {
        Self::Uniform(Duration::from_secs(from), Duration::from_secs(to))
    }

    /// The wait that this draw gives.
    #[must_use]
    pub fn draw(self, dice: Dice) -> Duration {
        match self {
            Self::Constant(wait) => wait.min(LONGEST),
            Self::Uniform(from, to) => {
                (from + to.saturating_sub(from).mul_f64(dice.share())).min(LONGEST)
            }
            Self::LogNormal { median, sigma } => {
                let seconds = median.as_secs_f64() * (sigma * dice.normal()).exp();
                Duration::from_secs_f64(seconds.clamp(0.0, LONGEST.as_secs_f64()))
            }
        }
    }
}

impl Latency {
    /// Nothing takes time.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// As clouds have it.
    #[must_use]
    pub const fn cloud() -> Self {
        Self {
            create: Distribution::seconds(30, 90),
            configure: Distribution::seconds(20, 60),
            drain: Distribution::seconds(5, 20),
            delete: Distribution::seconds(5, 30),
        }
    }

    /// Of this kind.
    #[must_use]
    pub const fn of(&self, kind: Kind) -> Distribution {
        match kind {
            Kind::Create => self.create,
            Kind::Configure => self.configure,
            Kind::Drain => self.drain,
            Kind::Delete => self.delete,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct PerKind {
    create: Distribution,
    configure: Distribution,
    drain: Distribution,
    delete: Distribution,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Shape {
    Constant(Span),
    Uniform(Span, Span),
    #[serde(rename_all = "snake_case")]
    LogNormal {
        median: Span,
        sigma: f64,
    },
}

struct LatencyVisitor;

impl<'de> Visitor<'de> for LatencyVisitor {
    type Value = Latency;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("none, cloud, or a map of create, configure, drain, delete")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Latency, E> {
        match text {
            "none" => Ok(Latency::none()),
            "cloud" => Ok(Latency::cloud()),
            _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Latency, A::Error> {
        let PerKind { create, configure, drain, delete } =
            PerKind::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Latency { create, configure, drain, delete })
    }
}

impl<'de> Deserialize<'de> for Latency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LatencyVisitor)
    }
}

struct DistributionVisitor;

impl<'de> Visitor<'de> for DistributionVisitor {
    type Value = Distribution;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration, {uniform: [5s, 20s]} or {log_normal: {median: 40s, sigma: 0.5}}")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Distribution, E> {
        bigfleet_net::duration::parse(text).map(Distribution::Constant).map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Distribution, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Distribution, A::Error> {
        match Shape::deserialize(MapAccessDeserializer::new(map))? {
            Shape::Constant(wait) => Ok(Distribution::Constant(wait.0)),
            Shape::Uniform(from, to) if from.0 > to.0 => {
                Err(de::Error::custom("the first duration must not be above the second"))
            }
            Shape::Uniform(from, to) => Ok(Distribution::Uniform(from.0, to.0)),
            Shape::LogNormal { median, sigma } if sigma.is_finite() && sigma >= 0.0 => {
                Ok(Distribution::LogNormal { median: median.0, sigma })
            }
            Shape::LogNormal { .. } => Err(de::Error::custom("sigma must be a number >= 0")),
        }
    }
}

impl<'de> Deserialize<'de> for Distribution {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DistributionVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::read;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn draws_stay_within_their_distribution() {
        let dice = |number| Dice::new(3).numbered(number);
        let draws = |of: Distribution| (0..2000).map(move |number| of.draw(dice(number)));
        assert!(draws(Distribution::Constant(SECOND)).all(|wait| wait == SECOND));
        let uniform = Latency::cloud().create;
        let (least, most) = (draws(uniform).min().unwrap(), draws(uniform).max().unwrap());
        assert!(least >= SECOND * 30 && least < SECOND * 31, "{least:?}");
        assert!(most <= SECOND * 90 && most > SECOND * 89, "{most:?}");
        let skewed = Distribution::LogNormal { median: SECOND * 40, sigma: 0.5 };
        let below = draws(skewed).filter(|wait| *wait < SECOND * 40).count();
        assert!((900..1100).contains(&below), "{below} of 2000 below the median");
        assert!(draws(skewed).max().unwrap() > SECOND * 120);
    }

    #[test]
    fn documents_write_it_three_ways() {
        let read = |text| read::<Latency>(text).unwrap();
        assert_eq!(read("none"), Latency::none());
        assert_eq!(read("cloud"), Latency::cloud());
        let own = read("{create: 30s, drain: {uniform: [5s, 20s]}, delete: {constant: 1s}}");
        assert_eq!(own.create, Distribution::Constant(SECOND * 30));
        assert_eq!(own.drain, Distribution::seconds(5, 20));
        assert_eq!(own.configure, Distribution::default());
        let skewed = read("{configure: {log_normal: {median: 40s, sigma: 0.5}}}").configure;
        assert_eq!(skewed, Distribution::LogNormal { median: SECOND * 40, sigma: 0.5 });
    }

    #[test]
    fn a_wrong_one_is_named() {
        for (text, path, problem) in [
            ("fast", "", "none, cloud"),
            ("{create: 30}", "create", "needs a unit"),
            ("{crate: 30s}", "crate", "unknown field"),
            ("{drain: {uniform: [20s, 5s]}}", "drain", "not be above"),
            ("{drain: {log_normal: {median: 1s, sigma: -1}}}", "drain", "sigma"),
        ] {
            let error = read::<Latency>(text).unwrap_err().to_string();
            assert!(error.contains(path) && error.contains(problem), "{text}: {error}");
        }
    }
}
