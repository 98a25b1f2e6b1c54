//! The suite turned on itself (provider chapter §11.1): what is sound passes,
//! and every broken rule is noticed by the tests that say they would.

mod caught_by;
mod matrix;
mod pki;
mod reference;
mod serve;
mod sound;

use std::{path::PathBuf, time::Duration};

use clap::Args;

pub use caught_by::caught_by;
pub use matrix::{Caught, Matrix};
pub use reference::ReferenceFlags;
pub use serve::{ServeFlags, serve};

use crate::{Error, progress::Progress};

/// Flags of `self-test`.
#[derive(Debug, Clone, Default, Args)]
pub struct SelfTestFlags {
    /// The smoke tests and a few mutants only
    #[arg(long)]
    pub quick: bool,

    /// Only these mutants, and no sound target
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub mutant: Vec<String>,

    /// Targets at once
    #[arg(long, default_value_t = 4)]
    pub jobs: usize,
}

/// How a self-test runs.
#[derive(Debug, Clone)]
pub struct Plan {
    /// This program, which serves the targets.
    pub program: PathBuf,
    /// What was asked for.
    pub flags: SelfTestFlags,
}

impl Plan {
    /// How long the scale lane churns: a mutant needs no more.
    fn soak(&self) -> Duration {
        Duration::from_secs(2)
    }
}

/// Runs the self-test and prints its matrix; the exit code.
pub async fn run(flags: &SelfTestFlags) -> Result<u8, Error> {
    let program = std::env::current_exe()
        .map_err(|source| Error::File { path: "bigfleet-conformance".into(), source })?;
    let problems = check(&Plan { program, flags: flags.clone() }).await?;
    for problem in &problems {
        eprintln!("self-test: {problem}");
    }
    if problems.is_empty() {
        println!("self-test passed");
    } else {
        println!("self-test FAILED: {} problems", problems.len());
    }
    Ok(u8::from(!problems.is_empty()))
}

/// The in-process tests of the reference fake; the exit code.
pub async fn refer(flags: &ReferenceFlags) -> Result<u8, Error> {
    reference::run(flags).await
}

/// Runs the plan, prints the matrix and returns what is wrong.
pub async fn check(plan: &Plan) -> Result<Vec<String>, Error> {
    let mut problems = Vec::new();
    if plan.flags.mutant.is_empty() {
        problems.extend(sound::check(plan).await?);
    }
    let mutants = matrix::chosen(&plan.flags)?;
    let progress = Progress::on_stderr(mutants.len() as u64);
    let matrix = Matrix::run(plan, &mutants, &progress).await;
    drop(progress);
    print!("{matrix}");
    problems.extend(matrix.problems());
    Ok(problems)
}
