//! Mutants: each is a whole provider with one rule broken.

use std::{fmt, sync::Arc};

use bigfleet_provider::mutant::Mutant;
use futures_util::{StreamExt, stream};

use super::{
    Plan, SelfTestFlags, caught_by,
    pki::TestCa,
    reference,
    serve::{LARGE_METADATA, fault},
};
use crate::{
    Error,
    catalogue::Profile,
    filter::Filter,
    gates::Gates,
    progress::Progress,
    runner::{self, Options},
    target::Target,
    tls::Credentials,
    verdict::Status,
};

/// A few mutants of every kind, for a short self-test.
const QUICK: &[Mutant] = &[
    Mutant::FenceOff,
    Mutant::PositionIsFenced,
    Mutant::NewIdPerRetry,
    Mutant::CheckThenAct,
    Mutant::BindingKept,
    Mutant::MetadataTrimmed,
    Mutant::HostAtSpeculative,
    Mutant::FilterIgnored,
    Mutant::RevisionFrozen,
    Mutant::FailedWithoutText,
    Mutant::MarksNotStored,
    Mutant::OtherClusterOk,
    Mutant::CallerIgnored,
];

const EVERY_PROFILE: &[Profile] = &[
    Profile::Core,
    Profile::Cloud,
    Profile::Spot,
    Profile::Fault,
    Profile::Durable,
    Profile::Scale,
    Profile::Strict,
];

/// The mutants that the flags ask for.
pub(super) fn chosen(flags: &SelfTestFlags) -> Result<Vec<Mutant>, Error> {
    if flags.mutant.is_empty() {
        return Ok(if flags.quick { QUICK.to_vec() } else { Mutant::ALL.to_vec() });
    }
    let find = |name: &String| {
        let found = Mutant::ALL.iter().copied().find(|mutant| mutant.name() == name);
        found.ok_or_else(|| Error::Usage(format!("--mutant {name:?}: no such mutant")))
    };
    flags.mutant.iter().map(find).collect()
}

/// What became of one mutant.
#[derive(Debug, Clone)]
pub struct Caught {
    /// Which.
    pub mutant: Mutant,
    /// The tests that noticed it.
    pub by: Vec<&'static str>,
    /// The tests that should have, and how they ended.
    pub missed: Vec<(&'static str, String)>,
}

/// Mutant by mutant, who noticed.
#[derive(Debug, Clone)]
pub struct Matrix(Vec<Caught>);

impl Matrix {
    /// Runs the listed tests against every mutant, several at once.
    pub(super) async fn run(plan: &Plan, mutants: &[Mutant], progress: &Progress) -> Self {
        let runs = mutants.iter().map(|&mutant| async move {
            progress.begins(mutant.name());
            let caught = one(plan, mutant).await;
            let word = if caught.missed.is_empty() { "caught" } else { "SURVIVED" };
            progress.line(&format!("{} {word}", mutant.name()));
            caught
        });
        let mut rows: Vec<_> =
            stream::iter(runs).buffer_unordered(plan.flags.jobs.max(1)).collect().await;
        rows.sort_by_key(|caught: &Caught| caught.mutant);
        Self(rows)
    }

    /// Every test that should have noticed a mutant and did not.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let missed = self.0.iter().flat_map(|caught| {
            caught.missed.iter().map(move |(id, how)| {
                format!("mutant {} survived {id}: the test {how}", caught.mutant.name())
            })
        });
        missed.collect()
    }
}

impl fmt::Display for Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:28} caught by", "mutant")?;
        for caught in &self.0 {
            write!(f, "{:28} {}", caught.mutant.name(), caught.by.join(" "))?;
            if !caught.missed.is_empty() {
                let missed: Vec<_> = caught.missed.iter().map(|(id, _)| *id).collect();
                write!(f, "  SURVIVED {}", missed.join(" "))?;
            }
            writeln!(f)?;
        }
        let survived = self.0.iter().filter(|caught| !caught.missed.is_empty()).count();
        writeln!(f, "{} mutants, {survived} survived a test", self.0.len())
    }
}

async fn one(plan: &Plan, mutant: Mutant) -> Caught {
    let mut caught = Caught { mutant, by: Vec::new(), missed: Vec::new() };
    let due = caught_by(mutant);
    match results(plan, mutant, due).await {
        Err(error) => {
            let how = format!("could not run: {error}");
            caught.missed = due.iter().map(|&id| (id, how.clone())).collect();
        }
        Ok(results) => {
            for &id in due {
                match results.iter().find(|(tested, _)| *tested == id) {
                    Some((_, Status::Failed(_))) => caught.by.push(id),
                    Some((_, status)) => {
                        caught.missed.push((id, format!("{} {}", status.word(), status.reason())));
                    }
                    None => caught.missed.push((id, "did not run".to_owned())),
                }
            }
        }
    }
    caught
}

async fn results(
    plan: &Plan,
    mutant: Mutant,
    due: &[&str],
) -> Result<Vec<(&'static str, Status)>, Error> {
    let mut further = vec!["--state={state}".to_owned(), format!("--mutant={}", mutant.name())];
    let mut credentials = Credentials::Plaintext;
    // Only over mTLS there is an identity to ignore.
    let ca = (mutant == Mutant::CallerIgnored).then(TestCa::new).transpose()?.map(Arc::new);
    if let Some(ca) = &ca {
        further.extend(ca.target_flags());
        credentials = ca.credentials()?;
    }
    // Maps that are cut can be seen only where they are taken at all.
    if matches!(mutant, Mutant::MetadataKeysCut | Mutant::MetadataValuesCut) {
        further.extend(LARGE_METADATA.map(str::to_owned));
    }
    let options = Options {
        profiles: EVERY_PROFILE.to_vec(),
        filter: Filter::of(due),
        soak: plan.soak(),
        // A broken target must not hide behind a gate that it closes itself.
        gates: Some(Gates::all()),
        ..Options::default()
    };
    let target = Target::Command(fault(&plan.program, &further));
    let mut results = Vec::new();
    if due.iter().any(|id| !reference::IN_PROCESS.contains(id)) {
        let report = runner::run(options, target, credentials, &Progress::silent()).await?;
        results.extend(report.tests.into_iter().map(|tested| (tested.test.id, tested.status)));
    }
    // What the reference says of these replaces what the wire could not show.
    if due.iter().any(|id| reference::IN_PROCESS.contains(id)) {
        let seen = reference::ask(&plan.program, Some(mutant)).await?;
        results.retain(|(id, _)| !reference::IN_PROCESS.contains(id));
        results.extend(seen);
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_survivor_is_named_with_the_test_it_survived() {
        let caught = |mutant, by: &[&'static str], missed: &[&'static str]| Caught {
            mutant,
            by: by.to_vec(),
            missed: missed.iter().map(|&id| (id, "passed".to_owned())).collect(),
        };
        let matrix = Matrix(vec![
            caught(Mutant::FenceOff, &["SM-17", "SM-19"], &[]),
            caught(Mutant::FencePerShard, &["SM-20"], &["FE-02"]),
        ]);
        assert_eq!(matrix.problems(), ["mutant fence-per-shard survived FE-02: the test passed"]);
        assert_eq!(
            matrix.to_string(),
            "mutant                       caught by\n\
             fence-off                    SM-17 SM-19\n\
             fence-per-shard              SM-20  SURVIVED FE-02\n\
             2 mutants, 1 survived a test\n"
        );
    }

    #[test]
    fn mutants_are_chosen_by_name() {
        let named = |names: &[&str]| SelfTestFlags {
            mutant: names.iter().map(|&name| name.to_owned()).collect(),
            ..SelfTestFlags::default()
        };
        assert_eq!(chosen(&named(&["fence-off"])).unwrap(), [Mutant::FenceOff]);
        assert!(chosen(&named(&["no-such"])).is_err());
        assert_eq!(chosen(&named(&[])).unwrap(), Mutant::ALL);
    }
}
