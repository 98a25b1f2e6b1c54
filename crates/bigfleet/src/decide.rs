//! `bigfleet decide`: one cycle from a file, for offline planning, bug reports
//! and tests.

use std::{
    fs,
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use bigfleet_engine::json;

use crate::error::Error;

/// Arguments of `bigfleet decide`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The world to decide for, as JSON; `-` reads standard input.
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// Where to write the decision; standard output if left out.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Also say how gangs chose their domain.
    #[arg(long)]
    explain: bool,
}

pub(crate) fn run(args: &Args) -> Result<(), Error> {
    let text = read(&args.input)
        .map_err(|source| Error::ReadWorld { path: args.input.clone(), source })?;
    let world = json::read_world(&text).map_err(Error::World)?;
    let decision = json::print_output(&bigfleet_engine::decide(&world), args.explain);
    match &args.output {
        Some(path) => fs::write(path, decision)
            .map_err(|source| Error::WriteFile { path: path.clone(), source }),
        None => Ok(io::stdout().lock().write_all(decision.as_bytes())?),
    }
}

fn read(path: &Path) -> io::Result<String> {
    if path.as_os_str() == "-" {
        let mut text = String::new();
        io::stdin().lock().read_to_string(&mut text)?;
        return Ok(text);
    }
    fs::read_to_string(path)
}
