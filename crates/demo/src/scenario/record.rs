//! What a run did and found, as the guide shows it.

use serde::Serialize;

/// How far something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    Running,
    Passed,
    Failed,
}

/// What a step is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Phase {
    Precondition,
    Act,
    Check,
}

/// How far a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Progress {
    Running,
    Done,
    Failed,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Step {
    pub(crate) phase: Phase,
    pub(crate) text: String,
    pub(crate) state: Progress,
    pub(crate) at_unix_ms: i64,
    pub(crate) detail: String,
}

/// How a claim stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Standing {
    Pending,
    Passed,
    Failed,
}

/// What a scenario says of the engine, and whether it was so.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Claim {
    pub(crate) text: &'static str,
    pub(crate) state: Standing,
    pub(crate) detail: String,
}

/// Where the explanation of a need is to be opened.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Explain {
    pub(crate) shard: String,
    pub(crate) cluster: String,
    pub(crate) fingerprint: String,
    pub(crate) group: String,
    pub(crate) same_domain: String,
    pub(crate) domains: Vec<Domain>,
}

/// A domain that was looked at.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Domain {
    pub(crate) domain: String,
    pub(crate) coverage_per_mille: i32,
    pub(crate) satisfiable: bool,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Run {
    pub(crate) name: &'static str,
    pub(crate) state: Verdict,
    pub(crate) started_at_unix_ms: i64,
    pub(crate) ended_at_unix_ms: Option<i64>,
    pub(crate) steps: Vec<Step>,
    pub(crate) claims: Vec<Claim>,
    pub(crate) explain: Option<Explain>,
}

impl Run {
    /// Begins; every claim is open.
    pub(crate) fn begin(name: &'static str, claims: &[&'static str], now: i64) -> Self {
        let open =
            |text: &&'static str| Claim { text, state: Standing::Pending, detail: String::new() };
        Self {
            name,
            state: Verdict::Running,
            started_at_unix_ms: now,
            ended_at_unix_ms: None,
            steps: Vec::new(),
            claims: claims.iter().map(open).collect(),
            explain: None,
        }
    }

    /// The next step begins; the one before it is done.
    pub(crate) fn step(&mut self, phase: Phase, text: &str, now: i64) {
        self.close(Progress::Done, None);
        self.steps.push(Step {
            phase,
            text: text.to_owned(),
            state: Progress::Running,
            at_unix_ms: now,
            detail: String::new(),
        });
    }

    /// What the current step sees.
    pub(crate) fn detail(&mut self, detail: &str) {
        if let Some(step) = self.steps.last_mut() {
            step.detail = detail.to_owned();
        }
    }

    /// A claim is settled. One that failed stays so.
    pub(crate) fn settle(&mut self, text: &str, holds: bool, detail: String) {
        let Some(claim) = self.claims.iter_mut().find(|claim| claim.text == text) else { return };
        if claim.state != Standing::Failed {
            claim.state = if holds { Standing::Passed } else { Standing::Failed };
            claim.detail = detail;
        }
    }

    /// Ends. A claim that nobody settled has failed, whatever the steps did.
    pub(crate) fn end(&mut self, problem: Option<&str>, now: i64) {
        let how = if problem.is_some() { Progress::Failed } else { Progress::Done };
        self.close(how, problem);
        for claim in &mut self.claims {
            if claim.state == Standing::Pending {
                claim.state = Standing::Failed;
                claim.detail = "not reached".to_owned();
            }
        }
        let all = self.claims.iter().all(|claim| claim.state == Standing::Passed);
        let passed = problem.is_none() && all;
        self.state = if passed { Verdict::Passed } else { Verdict::Failed };
        self.ended_at_unix_ms = Some(now);
    }

    fn close(&mut self, how: Progress, problem: Option<&str>) {
        let Some(step) = self.steps.last_mut() else { return };
        if step.state == Progress::Running {
            step.state = how;
            // What it last waited for is no longer so.
            step.detail.clear();
        }
        if let Some(problem) = problem {
            step.detail = problem.to_owned();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_passes_only_if_every_claim_was_settled_and_held() {
        let run = || Run::begin("x", &["a", "b"], 1);
        let mut good = run();
        good.step(Phase::Act, "does", 2);
        good.detail("1 of 2 done");
        good.settle("a", true, "1".to_owned());
        good.settle("b", true, "2".to_owned());
        good.end(None, 3);
        assert_eq!((good.state, good.steps[0].state), (Verdict::Passed, Progress::Done));
        assert_eq!(good.steps[0].detail, "", "a step that is done waits for nothing");

        let mut open = run();
        open.settle("a", true, String::new());
        open.end(None, 3);
        assert_eq!((open.state, open.claims[1].state), (Verdict::Failed, Standing::Failed));

        let mut wrong = run();
        wrong.settle("a", false, "no".to_owned());
        wrong.settle("a", true, "yes".to_owned());
        wrong.settle("b", true, String::new());
        wrong.end(None, 3);
        assert_eq!((wrong.state, wrong.claims[0].detail.as_str()), (Verdict::Failed, "no"));

        let mut stuck = run();
        stuck.step(Phase::Check, "waits", 2);
        stuck.settle("a", true, String::new());
        stuck.settle("b", true, String::new());
        stuck.end(Some("nothing came"), 3);
        assert_eq!((stuck.state, stuck.steps[0].state), (Verdict::Failed, Progress::Failed));
        assert_eq!(stuck.steps[0].detail, "nothing came");
    }
}
