//! Flags of `bigfleet demo` (experience chapter §8).

use bigfleet_net::{
    flags::{DiagnosticFlags, LogFlags, LogFormat},
    listen::ListenAddr,
    telemetry::LogLevel,
};
use clap::Args;

use crate::{Error, kubernetes::Assets, scenario};

/// Stands for every scenario, one after the other.
const ALL: &str = "all";

/// A whole fleet on this machine, to watch and to break. Nothing is installed, nothing is left
/// behind.
#[derive(Clone, Debug, Args)]
pub struct DemoFlags {
    /// HTTP address of the guide; loopback only unless --hosted
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8090")]
    pub listen: ListenAddr,

    /// Play a scenario at the start, or all of them: move, burst, saturate, preemption,
    /// spot-interruption, zone-outage, gang, stock-out, provider-brown-out, leader-loss,
    /// coordinator-loss, shard-crash, everything-down, accident, kill-switch-and-dry-run
    #[arg(long, value_name = "NAME|all")]
    pub scenario: Option<String>,

    /// No guide: play, print a summary table, and end; exit 1 if a claim failed
    #[arg(long)]
    pub headless: bool,

    /// Play that often, with --headless
    #[arg(long, value_name = "N", default_value_t = 1, requires = "headless")]
    pub repeat: u32,

    /// The fleet in this terminal instead of a browser
    #[arg(long, conflicts_with = "headless")]
    pub tui: bool,

    /// Latencies and chance of the simulated clouds follow from it
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,

    /// Real API servers and schedulers, from $KUBEBUILDER_ASSETS or $PATH
    #[arg(long, conflicts_with = "hosted")]
    pub kubernetes: bool,

    /// For visitors: sessions by a secret, with limits
    #[arg(long, conflicts_with_all = ["headless", "tui"])]
    pub hosted: bool,

    /// off, error, warn, info, debug or trace; off with --tui
    #[arg(
        long,
        value_name = "LEVEL",
        env = "BIGFLEET_LOG_LEVEL",
        default_value = "error",
        default_value_if("tui", "true", "off")
    )]
    pub log_level: LogLevel,

    /// Form of log lines on stderr
    #[arg(long, value_name = "FORMAT", env = "BIGFLEET_LOG_FORMAT", default_value = "text")]
    pub log_format: LogFormat,

    /// `--debug-endpoints`, `--otlp-endpoint`.
    #[command(flatten)]
    pub diagnostics: DiagnosticFlags,
}

impl DemoFlags {
    /// What is logged: little, for a fleet whose parts are killed complains a lot.
    pub(crate) fn log(&self) -> LogFlags {
        LogFlags { log_level: self.log_level.clone(), log_format: self.log_format }
    }

    /// What is to be played, in order.
    pub(crate) fn scenarios(&self) -> Result<Vec<&'static scenario::Scenario>, Error> {
        // As people write their titles, too.
        let written = self.scenario.as_ref().map(|name| name.to_lowercase().replace(' ', "-"));
        match written.as_deref() {
            None => Ok(Vec::new()),
            Some(ALL) => Ok(scenario::all().iter().collect()),
            Some(name) => match scenario::named(name) {
                Some(scenario) => Ok(vec![scenario]),
                None => Err(Error::Flag {
                    flag: "--scenario",
                    problem: format!("{name:?} is none; write all or one of {}", names()),
                }),
            },
        }
    }

    /// Refuses what must not be.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.scenarios()?;
        let host = self.listen.host();
        let loopback = |ip: std::net::IpAddr| ip.is_loopback();
        if !self.hosted && host != "localhost" && !host.parse().is_ok_and(loopback) {
            let problem = format!(
                "{} is not loopback, and whoever reaches the guide can break the fleet; write \
                 127.0.0.1:{}",
                self.listen,
                self.listen.port()
            );
            return Err(Error::Flag { flag: "--listen", problem });
        }
        if self.kubernetes {
            Assets::find()?;
        }
        Ok(())
    }
}

/// All names, for who wrote another one.
pub(crate) fn names() -> String {
    let names: Vec<&str> = scenario::all().iter().map(|scenario| scenario.name).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    #[derive(Parser)]
    struct Binary {
        #[command(flatten)]
        flags: DemoFlags,
    }

    fn parse(args: &[&str]) -> DemoFlags {
        Binary::try_parse_from(["x"].iter().chain(args)).unwrap().flags
    }

    #[test]
    fn the_guide_is_on_loopback_only() {
        for listen in ["127.0.0.1:0", "localhost:1", "[::1]:8090"] {
            parse(&["--listen", listen]).check().unwrap();
        }
        for listen in [":8090", "0.0.0.0:8090", "10.0.0.1:80", "example.org:80"] {
            let error = parse(&["--listen", listen]).check().unwrap_err();
            assert!(error.is_usage() && error.to_string().starts_with("--listen: "), "{error}");
        }
    }

    #[test]
    fn scenarios_are_chosen_by_name() {
        assert!(parse(&[]).scenarios().unwrap().is_empty());
        assert_eq!(parse(&["--scenario=all"]).scenarios().unwrap().len(), 15);
        assert_eq!(parse(&["--scenario=move"]).scenarios().unwrap()[0].name, "move");
        let error = parse(&["--scenario=mov"]).check().unwrap_err().to_string();
        assert!(error.contains("move, burst, saturate"), "{error}");
    }

    #[test]
    fn the_help_names_every_scenario() {
        let help = Binary::command().render_long_help().to_string();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        for scenario in scenario::all() {
            assert!(help.contains(scenario.name), "{}", scenario.name);
        }
    }
}
