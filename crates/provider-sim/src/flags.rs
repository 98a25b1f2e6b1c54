//! Flags of `bigfleet-provider-sim`: those of every provider, and what clouds there are.

use std::{path::PathBuf, time::Duration};

use bigfleet_net::{duration, flags::path_parser, listen::MetricsAddr};
use bigfleet_provider_kit::flags::ProviderFlags;
use clap::{
    ArgMatches, Args, Command, CommandFactory, FromArgMatches, Parser, parser::ValueSource,
};
use serde::de::DeserializeOwned;

use crate::{
    Config, Error,
    config::{CloudConfig, ONLY_CLOUD, read},
    latency::Latency,
    price_walk::PriceWalk,
    quota::Quotas,
    rate_limit::ApiRate,
    stock::StockConfig,
    tier::Tier,
    topology::{Region, region},
};

/// As parsed.
#[derive(Clone, Debug)]
pub struct SimFlags {
    /// Those of every provider.
    pub provider: ProviderFlags,
    /// Its own.
    pub sim: OwnFlags,
    /// How many uniform slots, where `--seed-count` or `--use-fake-backend` asks for them.
    uniform: Option<usize>,
}

/// Simulated clouds
///
/// Without --config, --tier, --seed-count or --use-fake-backend there are 120 machines of
/// three clouds.
/// Values that are documents are written in YAML: --latency '{create: 30s}'.
#[derive(Clone, Debug, Parser)]
#[command(name = "bigfleet-provider-sim", version)]
struct Plain {
    #[command(flatten)]
    provider: ProviderFlags,
    #[command(flatten)]
    sim: OwnFlags,
}

/// What the simulation is like.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Simulation")]
pub struct OwnFlags {
    /// Clouds from a YAML file
    #[arg(long, value_name = "FILE", value_parser = path_parser(), conflicts_with_all = ["tier", "region"])]
    pub config: Option<PathBuf>,

    /// A region of one cloud of one's own, in YAML; repeated for more
    #[arg(long, value_name = "YAML", value_parser = document::<Region>, requires = "tier")]
    pub region: Vec<Region>,

    /// A tier of one cloud of one's own, in YAML; repeated for more
    #[arg(long, value_name = "YAML", value_parser = document::<Tier>)]
    pub tier: Vec<Tier>,

    /// Every draw follows from it
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// none, cloud, or a YAML map of create, configure, drain, delete to 30s,
    /// {uniform: [5s, 20s]} or {log_normal: {median: 40s, sigma: 0.5}} [default: none]
    #[arg(long, value_name = "LATENCY", value_parser = document::<Latency>)]
    pub latency: Option<Latency>,

    /// Most hosts at once, in YAML: {types: {m8: 10}, capacities: {SPOT: 20}}
    #[arg(long, value_name = "YAML", value_parser = document::<Quotas>)]
    pub quotas: Option<Quotas>,

    /// What a zone has of a type, in YAML: {type: m8, zone: east-a, count: 4,
    /// refill_per_hour: 2}; repeated for more
    #[arg(long, value_name = "YAML", value_parser = document::<StockConfig>)]
    pub stock: Vec<StockConfig>,

    /// Share of Creates that fail for good
    #[arg(long, value_name = "SHARE")]
    pub create_error_rate: Option<f64>,

    /// Share of bootstraps whose node never becomes Ready
    #[arg(long, value_name = "SHARE")]
    pub readiness_fail_rate: Option<f64>,

    /// Share of hosts that die within an hour without a word
    #[arg(long, value_name = "SHARE")]
    pub host_death_rate: Option<f64>,

    /// How often spot hosts are taken: 1 as declared, 0 never [default: 1; 0 with
    /// --seed-count]
    #[arg(long, value_name = "FACTOR")]
    pub interruption_factor: Option<f64>,

    /// From the termination notice of a spot host to its end [default: 2m]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub interruption_notice: Option<Duration>,

    /// Spot prices that move, in YAML: {interval: 5m, sigma: 0.02}
    #[arg(long, value_name = "YAML", value_parser = document::<PriceWalk>)]
    pub price_walk: Option<PriceWalk>,

    /// Calls of the cloud's API, in YAML: {per_second: 10, burst: 20}
    #[arg(long, value_name = "YAML", value_parser = document::<ApiRate>)]
    pub api_rate: Option<ApiRate>,

    /// HTTP address of POST /interrupt, /kill, /stock and /freeze; loopback only; 0
    /// disables
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9091")]
    pub admin_addr: MetricsAddr,
}

fn document<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    read(text)
}

impl SimFlags {
    /// What they come to.
    pub fn config(&self) -> Result<Config, Error> {
        let sim = &self.sim;
        // The flag that asks for uniform slots.
        let asks =
            if self.provider.use_fake_backend { "--use-fake-backend" } else { "--seed-count" };
        let mut config = match (&sim.config, self.uniform) {
            (Some(_), Some(_)) => {
                let problem = "--config says what slots there are; give one of them";
                return Err(Error::field(asks, problem));
            }
            (None, Some(_)) if !sim.tier.is_empty() => {
                let problem = "--tier says what slots there are; give one of them";
                return Err(Error::field(asks, problem));
            }
            (Some(path), None) => Config::load(path).map_err(|error| match error {
                Error::File { .. } => error,
                other => Error::Syntax(format!("{}: {other}", path.display())),
            })?,
            (None, Some(count)) => Config::uniform(count),
            (None, None) if !sim.tier.is_empty() => self.own_cloud(),
            (None, None) => Config::default_fleet(),
        };
        config.seed = sim.seed.unwrap_or(config.seed);
        config.clouds.iter_mut().for_each(|cloud| sim.apply(cloud));
        config.check()?;
        Ok(config)
    }

    fn own_cloud(&self) -> Config {
        let mut cloud = CloudConfig::new(ONLY_CLOUD, region("region", &["zone-a"]));
        if !self.sim.region.is_empty() {
            cloud.regions.clone_from(&self.sim.region);
        }
        Config { seed: 0, clouds: vec![cloud.offers(self.sim.tier.clone())] }
    }
}

impl OwnFlags {
    /// A flag wins over the document, in every cloud.
    fn apply(&self, cloud: &mut CloudConfig) {
        cloud.latency = self.latency.unwrap_or(cloud.latency);
        cloud.price_walk = self.price_walk.or(cloud.price_walk);
        if let Some(quotas) = &self.quotas {
            cloud.quotas.clone_from(quotas);
        }
        if !self.stock.is_empty() {
            cloud.stock.clone_from(&self.stock);
        }
        let mishaps = &mut cloud.mishaps;
        let set = |value: &mut f64, flag: Option<f64>| *value = flag.unwrap_or(*value);
        set(&mut mishaps.create_error_rate, self.create_error_rate);
        set(&mut mishaps.readiness_fail_rate, self.readiness_fail_rate);
        set(&mut mishaps.host_death_rate, self.host_death_rate);
        set(&mut mishaps.interruptions.factor, self.interruption_factor);
        mishaps.api_rate = self.api_rate.or(mishaps.api_rate);
        mishaps.interruptions.notice =
            self.interruption_notice.unwrap_or(mishaps.interruptions.notice);
    }
}

impl CommandFactory for SimFlags {
    fn command() -> Command {
        Plain::command()
            .mut_arg("provider", |arg| arg.default_value("sim"))
            .mut_arg("use_fake_backend", |arg| {
                arg.help("As in other providers: --seed-count uniform slots, and no mishaps")
            })
    }

    fn command_for_update() -> Command {
        Self::command()
    }
}

impl FromArgMatches for SimFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let Plain { provider, sim } = Plain::from_arg_matches(matches)?;
        let given = matches.value_source("seed_count") != Some(ValueSource::DefaultValue);
        let uniform = (given || provider.use_fake_backend).then_some(provider.seed_count);
        Ok(Self { provider, sim, uniform })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Config, String> {
        let args = std::iter::once("sim").chain(args.iter().copied());
        let flags: SimFlags =
            bigfleet_net::flags::try_parse_from(args).map_err(|error| error.to_string())?;
        flags.config().map_err(|error| error.to_string())
    }

    const TIER: &str = "--tier={name: t, type: m8, capacity: ON_DEMAND, price: 1, count: 3, \
                        resources: {cpu: 8}}";

    #[test]
    fn the_fleet_is_what_the_flags_say() {
        assert_eq!(parse(&[]).unwrap(), Config::default_fleet());
        assert_eq!(parse(&["--seed-count=512"]).unwrap(), Config::uniform(512));
        let own = parse(&[TIER, "--region={name: r, zones: [{name: z}]}"]).unwrap();
        assert_eq!((own.clouds[0].tiers[0].count, &*own.clouds[0].regions[0].name), (3, "r"));
        assert!(parse(&[TIER, "--seed-count=3"]).unwrap_err().starts_with("--seed-count: "));
        assert!(parse(&["--config=x", TIER]).unwrap_err().contains("cannot be used with"));
        assert!(parse(&["--config=/nowhere"]).unwrap_err().starts_with("/nowhere: "));
    }

    #[test]
    fn a_fake_backend_is_what_other_providers_offer_under_that_name() {
        let fake = |more: &[&str]| parse(&[&["--use-fake-backend"], more].concat());
        assert_eq!(fake(&[]).unwrap(), Config::uniform(32));
        assert_eq!(fake(&["--seed-count=8"]).unwrap(), Config::uniform(8));
        assert_eq!(parse(&["--use-fake-backend=false"]).unwrap(), Config::default_fleet());
        for other in [TIER, "--config=x"] {
            assert!(fake(&[other]).unwrap_err().starts_with("--use-fake-backend: "));
        }
    }

    #[test]
    fn flags_reach_every_cloud() {
        let args = ["--latency=cloud", "--seed=9", "--create-error-rate=0.5"];
        let config = parse(&args).unwrap();
        assert_eq!(config.seed, 9);
        for cloud in &config.clouds {
            assert_eq!(cloud.latency, Latency::cloud());
            assert_eq!(cloud.mishaps.create_error_rate, 0.5);
            assert_eq!(cloud.mishaps.interruptions.factor, 1.0);
        }
        let quiet = parse(&["--seed-count=4"]).unwrap();
        assert_eq!(quiet.clouds[0].mishaps.interruptions.factor, 0.0);
        let stormy = parse(&["--seed-count=4", "--interruption-factor=2"]).unwrap();
        assert_eq!(stormy.clouds[0].mishaps.interruptions.factor, 2.0);
    }

    #[test]
    fn a_wrong_flag_is_named() {
        for (arg, problem) in [
            ("--latency=fast", "none, cloud"),
            ("--latency={create: 5}", "create: "),
            ("--create-error-rate=2", "mishaps.create_error_rate: "),
            ("--price-walk={interval: 5m}", "sigma"),
            ("--tier={name: t}", "type"),
        ] {
            let error = parse(&[arg]).unwrap_err();
            assert!(error.contains(problem), "{arg}: {error}");
        }
    }
}
