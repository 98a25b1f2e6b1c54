//! The command line.

use std::{path::PathBuf, time::Duration};

use bigfleet_net::duration;
use clap::{Args, Parser, Subcommand};

use crate::{
    Error,
    catalogue::{self, Profile},
    filter::Filter,
    progress::Progress,
    report::Report,
    runner::{self, Options},
    target::{Target, TargetCommand},
    tls::{Credentials, ShardIssuer},
};

/// Certifies a provider: six calls, from the outside.
#[derive(Debug, Parser)]
#[command(name = "bigfleet-conformance", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// What to do; without it: run.
    #[command(subcommand)]
    pub command: Option<Command>,

    /// Flags of run.
    #[command(flatten)]
    pub run: RunFlags,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the suite against a target (the default).
    Run(Box<RunFlags>),
    /// List the tests.
    List,
    /// Turn the suite on itself: sound targets pass, every mutant is caught.
    #[cfg(feature = "self-test")]
    SelfTest(crate::self_test::SelfTestFlags),
    /// Serve a target of the self-test.
    #[cfg(feature = "self-test")]
    #[command(hide = true)]
    Serve(crate::self_test::ServeFlags),
    /// Run the in-process tests of the reference fake.
    #[cfg(feature = "self-test")]
    #[command(hide = true)]
    Reference(crate::self_test::ReferenceFlags),
}

/// Flags of `run`.
#[derive(Debug, Clone, Args)]
pub struct RunFlags {
    /// Address of a running provider
    #[arg(long, value_name = "HOST:PORT", env = "BIGFLEET_PROVIDER_TARGET")]
    pub target: Option<String>,

    /// Command that serves a provider; the suite boots, kills and reboots it.
    /// Places: {addr}, {state}, {seed}, {metrics}
    #[arg(long, value_name = "COMMAND", conflicts_with = "target")]
    pub target_cmd: Option<String>,

    /// HTTP address of the target's metrics, to report its readiness mode
    #[arg(long, value_name = "HOST:PORT")]
    pub target_metrics: Option<String>,

    /// What to certify
    #[arg(long, value_delimiter = ',', default_value = "core")]
    pub profile: Vec<Profile>,

    /// Run these tests only, for example SM,FE-0*
    #[arg(long, value_name = "IDS", default_value = "")]
    pub filter: String,

    /// Decides every random choice; a new one is drawn and printed without it
    #[arg(long)]
    pub seed: Option<u64>,

    /// Stretches every wait, for slow clouds
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub timeout_scale: f64,

    /// How long the scale lane churns
    #[arg(long, value_parser = duration::parse, default_value = "10s")]
    pub soak: Duration,

    /// Machines of the scale lane
    #[arg(long, value_name = "COUNT", default_value_t = 8_000)]
    pub scale_seed: u64,

    /// Print the report for people (the default)
    #[arg(long)]
    pub human: bool,

    /// Write the report as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write the report as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,

    /// CA bundle that the target's certificate chains to
    #[arg(long, value_name = "FILE")]
    pub tls_ca: Option<PathBuf>,

    /// Certificate of a test CA that the target trusts; shards' certificates are issued from it
    #[arg(long, value_name = "FILE")]
    pub tls_issuer_cert: Option<PathBuf>,

    /// Private key of --tls-issuer-cert
    #[arg(long, value_name = "FILE")]
    pub tls_issuer_key: Option<PathBuf>,
}

impl RunFlags {
    fn target(&self) -> Result<Target, Error> {
        match (&self.target, &self.target_cmd) {
            (_, Some(command)) => Ok(Target::Command(TargetCommand::parse(command)?)),
            (Some(addr), None) if !addr.is_empty() => Ok(Target::Address(addr.clone())),
            _ => Err(Error::Usage(
                "no target; give --target HOST:PORT or --target-cmd 'bin --addr={addr} …'".into(),
            )),
        }
    }

    fn credentials(&self) -> Result<Credentials, Error> {
        match (&self.tls_ca, &self.tls_issuer_cert, &self.tls_issuer_key) {
            (None, None, None) => Ok(Credentials::Plaintext),
            (Some(ca), Some(cert), Some(key)) => {
                Ok(Credentials::Issued(Box::new(ShardIssuer::load(ca, cert, key)?)))
            }
            _ => Err(Error::Usage(
                "incomplete TLS flags; give --tls-ca, --tls-issuer-cert and --tls-issuer-key, \
                 or none of them for plaintext"
                    .into(),
            )),
        }
    }

    fn options(&self) -> Result<Options, Error> {
        if !(self.timeout_scale.is_finite() && self.timeout_scale > 0.0) {
            return Err(Error::Usage("--timeout-scale must be above 0".into()));
        }
        Ok(Options {
            profiles: self.profile.clone(),
            filter: Filter::parse(&self.filter),
            seed: self.seed.unwrap_or_else(fresh_seed),
            timeout_scale: self.timeout_scale,
            soak: self.soak,
            scale_seed: self.scale_seed,
            metrics: self.target_metrics.clone(),
            ..Options::default()
        })
    }
}

fn fresh_seed() -> u64 {
    u64::from(time::OffsetDateTime::now_utc().nanosecond())
}

/// Runs the suite and writes its reports.
pub async fn run(flags: &RunFlags) -> Result<Report, Error> {
    let (target, credentials, options) = (flags.target()?, flags.credentials()?, flags.options()?);
    let asked = catalogue::all().filter(|test| test.is_asked_by(&options.profiles)).count();
    eprintln!("{asked} tests of {target}, seed {}", options.seed);
    let report = {
        let progress = Progress::on_stderr(asked as u64);
        runner::run(options, target, credentials, &progress).await?
    };
    let write = |path: &PathBuf, text: String| {
        std::fs::write(path, text).map_err(|source| Error::File { path: path.clone(), source })
    };
    if let Some(path) = &flags.json {
        let text = report
            .json()
            .map_err(|error| Error::File { path: path.clone(), source: error.into() })?;
        write(path, text)?;
    }
    if let Some(path) = &flags.junit {
        write(path, report.junit())?;
    }
    if flags.human || (flags.json.is_none() && flags.junit.is_none()) {
        print!("{}", report.human());
    } else {
        println!("{}", report.verdict);
    }
    Ok(report)
}

/// The table of `list`.
#[must_use]
pub fn listing() -> String {
    let mut text = String::new();
    for test in catalogue::all() {
        let profiles: Vec<_> = test.profiles.iter().map(ToString::to_string).collect();
        let gates: Vec<_> = test.gates.iter().map(|gate| gate.name()).collect();
        let profiles =
            if profiles.is_empty() { "self-test".to_owned() } else { profiles.join(",") };
        text.push_str(&format!(
            "{} {:?} {:13} {:9} {}\n",
            test.id,
            test.severity,
            profiles,
            gates.join(","),
            test.title
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use bigfleet_net::flags;

    use super::*;

    fn parse(words: &[&str]) -> Cli {
        flags::try_parse_from([&["bigfleet-conformance"], words].concat()).unwrap()
    }

    #[test]
    fn run_is_the_default() {
        let cli = parse(&["--target", "h:1", "--profile", "core,bare-metal", "--soak", "10m"]);
        assert!(cli.command.is_none());
        assert_eq!(cli.run.profile, [Profile::Core, Profile::BareMetal]);
        assert_eq!(cli.run.soak, Duration::from_secs(600));
        let Some(Command::Run(run)) = parse(&["run", "--target-cmd", "x {addr}"]).command else {
            panic!("not run");
        };
        assert!(matches!(run.target().unwrap(), Target::Command(_)));
    }

    #[test]
    fn refusals_say_what_to_do() {
        for (words, text) in [
            (&[][..], "--target HOST:PORT"),
            (&["--target", "h:1", "--timeout-scale", "0"], "above 0"),
            (&["--target", "h:1", "--tls-ca", "f"], "--tls-issuer-cert"),
        ] {
            let run = parse(words).run;
            let error = run
                .target()
                .and_then(|_| run.credentials())
                .and_then(|_| run.options())
                .unwrap_err()
                .to_string();
            assert!(error.contains(text), "{error}");
        }
        let both = ["x", "--target", "h:1", "--target-cmd", "c {addr}"];
        assert!(flags::try_parse_from::<Cli>(both).is_err());
    }

    #[test]
    fn listing_has_every_test() {
        assert_eq!(listing().lines().count(), catalogue::all().count());
    }
}
