//! `bigfleet bench`: exact quantiles, allocations, peak memory, and the ratio to
//! a plain scan of the same records in the same run, because machines are noisy
//! and a ratio is less so (experience chapter §7.1).

mod baseline;
mod catalog;
mod engine;
mod gate;
mod measure;
mod report;
mod scenario;

use std::{
    fs,
    io::{self, Write},
    path::PathBuf,
};

use crate::error::Error;
use scenario::SCENARIOS;

/// Arguments of `bigfleet bench`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// `list`, `all`, or names of scenarios.
    #[arg(required = true, value_name = "SCENARIO")]
    what: Vec<String>,
    /// Timed cycles of each scenario, after one untimed cycle to warm up.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    cycles: u32,
    /// Write the measurements as JSON, which `--baseline` reads.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Compare with an earlier run; fails where something got 10 % worse.
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<(), Error> {
    if args.what == ["list"] {
        return print(&report::list(SCENARIOS));
    }
    let chosen = scenario::choose(&args.what)?;
    let baseline = args.baseline.as_deref().map(baseline::read).transpose()?;
    let mut measured = Vec::new();
    for scenario in chosen {
        eprintln!("measuring {} ({} cycles) ...", scenario.name, args.cycles);
        measured.extend((scenario.measure)(scenario.name, args.cycles)?);
    }
    if let Some(path) = &args.json {
        fs::write(path, report::json(&measured))
            .map_err(|source| Error::WriteFile { path: path.clone(), source })?;
    }
    let baseline = baseline.unwrap_or_default();
    print(&report::table(&measured, &baseline))?;
    baseline::check(&measured, &baseline)
}

fn print(text: &str) -> Result<(), Error> {
    Ok(io::stdout().lock().write_all(text.as_bytes())?)
}
