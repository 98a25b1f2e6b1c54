//! Scenarios without an audience: played one after the other, told as a table.

use std::io::Write as _;

use bigfleet_net::shutdown::Shutdown;
use bigfleet_plain::table::table;

use crate::{
    Error,
    flags::DemoFlags,
    scenario::record::{Run, Standing, Verdict},
    show::{Piece, Show},
};

/// Plays what the flags name, and says how it went.
pub(crate) async fn play(show: &Show, flags: &DemoFlags, stop: &Shutdown) -> Result<(), Error> {
    let scenarios = flags.scenarios()?;
    say(&format!("ready in {:.1} s", show.started_in.as_secs_f64()))?;
    let pieces: Vec<Piece> = match scenarios.as_slice() {
        [] => vec![Piece::Reset],
        some => some.iter().map(|scenario| Piece::Scenario(scenario)).collect(),
    };
    let total = pieces.len() * flags.repeat as usize;
    let mut runs = Vec::new();
    for piece in pieces.iter().cycle().take(total) {
        let run = tokio::select! {
            run = show.play(*piece) => run,
            () = stop.requested() => break,
        };
        let count = if total > 1 { format!("{}/{total} ", runs.len() + 1) } else { String::new() };
        say(&format!("{count}{}: {} in {:.1} s", run.name, word(&run), seconds(&run)))?;
        if run.state != Verdict::Passed {
            say(&told(&run))?;
        }
        runs.push(run);
    }
    say(&summary(&runs))?;
    if let Some(bytes) = show.fleet.resident_bytes() {
        let mebibytes = bytes as f64 / f64::from(1 << 20);
        say(&format!("{mebibytes:.0} MiB resident in all processes"))?;
    }
    let failed = runs.iter().filter(|run| run.state != Verdict::Passed).count();
    match runs.len() {
        _ if failed > 0 => Err(Error::ClaimsFailed(failed)),
        played if played < total => Err(Error::Unfinished { played, of: total }),
        _ => Ok(()),
    }
}

fn say(text: &str) -> Result<(), Error> {
    Ok(writeln!(std::io::stdout(), "{text}")?)
}

fn word(run: &Run) -> &'static str {
    match run.state {
        Verdict::Passed => "passed",
        Verdict::Failed => "FAILED",
        Verdict::Running => "unfinished",
    }
}

fn seconds(run: &Run) -> f64 {
    (run.ended_at_unix_ms.unwrap_or(run.started_at_unix_ms) - run.started_at_unix_ms) as f64 / 1e3
}

/// Every step and claim of a run.
fn told(run: &Run) -> String {
    let steps = run.steps.iter().map(|step| {
        let at = (step.at_unix_ms - run.started_at_unix_ms) as f64 / 1e3;
        format!("  {at:6.1} s {:?} {}: {}", step.state, step.text, step.detail)
    });
    let claims = run
        .claims
        .iter()
        .map(|claim| format!("  claim {:?}: {}: {}", claim.state, claim.text, claim.detail));
    steps.chain(claims).collect::<Vec<_>>().join("\n")
}

/// One row per claim.
fn summary(runs: &[Run]) -> String {
    let mut lines =
        vec![["SCENARIO", "RESULT", "SECONDS", "CLAIM", "SEEN"].map(str::to_owned).to_vec()];
    for run in runs {
        let mut head = [run.name.to_owned(), word(run).to_owned(), format!("{:.1}", seconds(run))];
        if run.claims.is_empty() {
            lines.push(row(&mut head, String::new(), String::new()));
        }
        for claim in &run.claims {
            let mark = match claim.state {
                Standing::Passed => "",
                Standing::Failed => "FAILED: ",
                Standing::Pending => "open: ",
            };
            lines.push(row(&mut head, format!("{mark}{}", claim.text), claim.detail.clone()));
        }
    }
    table(lines.into_iter())
}

/// The head is told once.
fn row(head: &mut [String; 3], claim: String, detail: String) -> Vec<String> {
    let head = head.each_mut().map(std::mem::take);
    head.into_iter().chain([claim, detail]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_claim_is_shown_as_failed() {
        let mut run = Run::begin("move", &["one", "two"], 0);
        run.settle("one", true, "as it should".to_owned());
        run.settle("two", false, "not so".to_owned());
        run.end(None, 1_500);
        let text = summary(&[run]);
        assert!(text.contains("FAILED: two") && text.contains("not so"), "{text}");
        assert_eq!(text.matches("move").count(), 1, "{text}");
        assert!(text.contains("1.5"), "{text}");
    }
}
