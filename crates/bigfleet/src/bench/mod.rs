//! `bigfleet bench`: exact quantiles, allocations, peak memory, and the ratio to
//! a plain scan of the same records in the same run, because machines are noisy
//! and a ratio is less so (experience chapter §7.1).

mod across;
mod apart;
mod assignment;
mod baseline;
mod bound;
mod catalog;
mod colocated;
mod coordinator;
mod counter;
mod cycles;
mod driver;
mod field;
mod fleet;
mod gangs;
mod gate;
mod grade;
mod make;
mod measure;
mod memory;
mod pods;
mod progress;
mod provider;
mod quality;
mod random;
mod report;
mod scenario;
mod sessions;
mod shard_step;
mod snapshot;
mod supply;

use std::{
    fs,
    io::{self, Write},
    path::PathBuf,
};

use crate::error::Error;
use measure::Run;
use scenario::{Measure, SCENARIOS, Scenario};

/// Arguments of `bigfleet bench`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// `list`, `all`, or names of scenarios.
    #[arg(required = true, value_name = "SCENARIO")]
    what: Vec<String>,
    /// Timed cycles of each scenario, after one untimed cycle to warm up.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    cycles: u32,
    /// Threads of the engine; a part that is sequential says so by measuring 1.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    threads: u32,
    /// Write the measurements as JSON, which `--baseline` reads; `-` writes them
    /// to standard output instead of the table.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Compare with an earlier run; fails where something got 10 % worse.
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    #[command(flatten)]
    sessions: sessions::SessionFlags,
    #[command(flatten)]
    coordinator: coordinator::CoordinatorArgs,
    #[command(flatten)]
    across: across::AcrossArgs,
    #[command(flatten)]
    pods: pods::PodsArgs,
}

pub(crate) fn run(args: &Args) -> Result<(), Error> {
    if args.what == ["list"] {
        return print(&report::list(SCENARIOS));
    }
    let chosen = scenario::choose(&args.what)?;
    let baseline = args.baseline.as_deref().map(baseline::read).transpose()?;
    let alone = chosen.len() == 1;
    let mut measured = Vec::new();
    let mut grades = Vec::new();
    // A scenario that fails does not take the figures of the others with it.
    let mut broken = Vec::new();
    for scenario in chosen {
        match scenario.measure {
            Measure::Timed(measure) if alone => measured.extend(measure(&args.run(scenario))?),
            Measure::Timed(_) => match apart::measure(scenario.name, args) {
                Ok(found) => measured.extend(found),
                Err(error) => {
                    eprintln!("bigfleet bench: {error}");
                    broken.push(scenario.name);
                }
            },
            Measure::Graded(grade) => grades.extend(grade(&args.run(scenario))),
            Measure::Loaded(load) => grades.extend(load(&args.run(scenario), args)?),
        }
    }
    let baseline = baseline.unwrap_or_default();
    match &args.json {
        Some(path) if path.as_os_str() == "-" => print(&report::json(&measured))?,
        path => {
            if let Some(path) = path {
                fs::write(path, report::json(&measured))
                    .map_err(|source| Error::WriteFile { path: path.clone(), source })?;
            }
            print(&report::table(&measured, &baseline))?;
            print(&report::growth(&measured))?;
            print(&report::quiet(&measured))?;
            print(&report::grades(&grades))?;
        }
    }
    if !broken.is_empty() {
        return Err(Error::Broken(broken.join(", ")));
    }
    baseline::check(&measured, &baseline)?;
    let failed = grades.iter().filter(|grade| !grade.holds).map(|grade| grade.what);
    let failed: Vec<_> = failed.collect();
    if failed.is_empty() { Ok(()) } else { Err(Error::BelowBar(failed.join("; "))) }
}

impl Args {
    fn run(&self, scenario: &Scenario) -> Run {
        Run::new(scenario.name, self.cycles, self.threads)
    }
}

fn print(text: &str) -> Result<(), Error> {
    Ok(io::stdout().lock().write_all(text.as_bytes())?)
}
