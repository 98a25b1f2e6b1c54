//! Running a scenario in a process of its own: memory that one leaves behind
//! must not show in the next.

use std::{
    env,
    process::{Command, ExitStatus, Stdio},
};

use super::{
    Args,
    measure::{Measurement, Report},
};
use crate::error::Error;

pub(super) fn measure(name: &'static str, args: &Args) -> Result<Vec<Measurement>, Error> {
    let failed = |reason: String| Error::Apart { name, reason };
    let child = env::current_exe().and_then(|program| {
        Command::new(program)
            .args(["bench", name, "--json", "-"])
            .args(["--cycles", &args.cycles.to_string()])
            .args(["--threads", &args.threads.to_string()])
            // Whoever started us compares; what the environment says of it is for us.
            .env_remove("BIGFLEET_BASELINE")
            .stderr(Stdio::inherit())
            .output()
    });
    let output = child.map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(ended(output.status)));
    }
    let report: Report =
        serde_json::from_slice(&output.stdout).map_err(|error| failed(error.to_string()))?;
    Ok(report.scenarios)
}

/// How a process ended; one that was killed could not say why itself.
fn ended(status: ExitStatus) -> String {
    if status.code().is_some() {
        format!("{status}; what it wrote above says why")
    } else {
        format!("{status}; somebody ended it, or memory ran out")
    }
}
