//! `bigfleet bench`: exact quantiles, allocations, peak memory, and the ratio to
//! a plain scan of the same records in the same run, because machines are noisy
//! and a ratio is less so.

mod gate;
mod measure;
mod report;

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use clap::ValueEnum;

use crate::error::Error;
use gate::Order;
use measure::Measurement;

/// Arguments of `bigfleet bench`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to measure; everything if left out.
    #[arg(value_enum)]
    scenarios: Vec<Scenario>,
    /// Timed runs of each scenario, after one untimed run to warm up.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Print JSON, which `--baseline` reads.
    #[arg(long)]
    json: bool,
    /// Compare with an earlier run.
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Scenario {
    /// One need through the demand gate: parse, canonicalise, fingerprint.
    Need,
    /// A roll-up of 25,000 needs through the demand gate, in identity order.
    #[value(name = "rollup-25k")]
    RollUp25k,
    /// The same in no order.
    #[value(name = "rollup-25k-unordered")]
    RollUp25kUnordered,
    /// 100,000 machines through the inventory gate.
    #[value(name = "machines-100k")]
    Machines100k,
}

impl Scenario {
    fn measure(self, runs: u32) -> Result<Measurement, Error> {
        match self {
            Self::Need => gate::need(runs),
            Self::RollUp25k => gate::roll_up("rollup-25k", Order::Identity, runs),
            Self::RollUp25kUnordered => gate::roll_up("rollup-25k-unordered", Order::Any, runs),
            Self::Machines100k => gate::machines(runs),
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Error> {
    let scenarios: &[Scenario] =
        if args.scenarios.is_empty() { Scenario::value_variants() } else { &args.scenarios };
    let baseline = args.baseline.as_deref().map(read_baseline).transpose()?;
    let mut measured = Vec::with_capacity(scenarios.len());
    for scenario in scenarios {
        if let Some(value) = scenario.to_possible_value() {
            eprintln!("measuring {} ({} runs) ...", value.get_name(), args.runs);
        }
        measured.push(scenario.measure(args.runs)?);
    }
    let text = if args.json {
        report::json(&measured)
    } else {
        report::table(&measured, baseline.as_deref().unwrap_or_default())
    };
    Ok(io::stdout().lock().write_all(text.as_bytes())?)
}

fn read_baseline(path: &Path) -> Result<Vec<Measurement>, Error> {
    let text = fs::read_to_string(path)
        .map_err(|source| Error::ReadBaseline { path: path.to_owned(), source })?;
    serde_json::from_str(&text)
        .map_err(|source| Error::ParseBaseline { path: path.to_owned(), source })
}
