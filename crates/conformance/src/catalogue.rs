//! Every test with its frozen id. Ids are append-only: a certificate names them.

use std::{fmt, pin::Pin};

use clap::ValueEnum;
use serde::Serialize;

use crate::{case::Case, gates::Gate, outcome::Outcome};

/// What a provider claims to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// The contract; every provider.
    Core,
    /// Delete works.
    Cloud,
    /// Machines that may be taken back.
    Spot,
    /// Delete is UNIMPLEMENTED, walks start at IDLE. Runs the core rows.
    BareMetal,
    /// Wire-driven faults.
    Fault,
    /// Survives kill -9.
    Durable,
    /// Large fleets.
    Scale,
    /// The rules beyond the plain contract.
    Strict,
}

impl Profile {
    /// The gates without which the profile is an empty claim.
    #[must_use]
    pub fn claims(self) -> &'static [Gate] {
        match self {
            Self::Cloud => &[Gate::Del],
            Self::Fault => &[Gate::Flt],
            Self::Durable => &[Gate::Dur],
            Self::Core | Self::Spot | Self::BareMetal | Self::Scale | Self::Strict => &[],
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Core => "core",
            Self::Cloud => "cloud",
            Self::Spot => "spot",
            Self::BareMetal => "bare-metal",
            Self::Fault => "fault",
            Self::Durable => "durable",
            Self::Scale => "scale",
            Self::Strict => "strict",
        })
    }
}

/// Whether a failure costs the certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Severity {
    /// Must.
    M,
    /// Warning.
    W,
}

/// A group of tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the headings of the specification")]
pub enum Area {
    Smoke,
    Lifecycle,
    Errors,
    Fencing,
    Concurrency,
    Metadata,
    Failure,
    Shape,
    List,
    Durable,
    Scale,
    Property,
    Strict,
}

impl fmt::Display for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{self:?}"))
    }
}

/// What a test does.
pub type Run = fn(Case) -> Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// One row of the specification.
#[derive(Clone, Copy)]
pub struct Test {
    /// Frozen.
    pub id: &'static str,
    /// What must hold.
    pub title: &'static str,
    /// Its group.
    pub area: Area,
    /// Who must pass it; nobody: it runs in the self-test only.
    pub profiles: &'static [Profile],
    /// Without these it is skipped.
    pub gates: &'static [Gate],
    /// What a failure means.
    pub severity: Severity,
    /// Its body.
    pub run: Run,
}

impl fmt::Debug for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id)
    }
}

impl Test {
    /// Whether one of these profiles asks for it.
    #[must_use]
    pub fn is_asked_by(&self, profiles: &[Profile]) -> bool {
        let bare_metal = profiles.contains(&Profile::BareMetal);
        self.profiles
            .iter()
            .any(|profile| profiles.contains(profile) || (bare_metal && *profile == Profile::Core))
    }
}

/// All tests, in the order of the specification.
pub fn all() -> impl Iterator<Item = &'static Test> {
    crate::tests::AREAS.iter().copied().flatten()
}

/// The test of this id.
#[must_use]
pub fn find(id: &str) -> Option<&'static Test> {
    all().find(|test| test.id == id)
}

/// Declares the tests of an area: id, title, profiles, gates, severity, body.
macro_rules! rows {
    ($area:ident: $($id:literal $title:literal [$($profile:ident)*] [$($gate:ident)*] $severity:ident $run:ident;)*) => {
        pub(crate) const TESTS: &[$crate::catalogue::Test] = &[$($crate::catalogue::Test {
            id: $id,
            title: $title,
            area: $crate::catalogue::Area::$area,
            profiles: &[$($crate::catalogue::Profile::$profile),*],
            gates: &[$($crate::gates::Gate::$gate),*],
            severity: $crate::catalogue::Severity::$severity,
            run: |case| Box::pin($run(case)),
        }),*];
    };
}
pub(crate) use rows;

#[cfg(test)]
mod tests_of_the_catalogue {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_unique_and_complete() {
        let ids: Vec<_> = all().map(|test| test.id).collect();
        let unique: BTreeSet<_> = ids.iter().collect();
        assert_eq!(ids.len(), unique.len());
        // The tables of provider chapter §11.
        for (prefix, count) in [
            ("SM", 26),
            ("LC", 8),
            ("ER", 15),
            ("FE", 11),
            ("CO", 9),
            ("MD", 5),
            ("FA", 8),
            ("SH", 7),
            ("LI", 9),
            ("DU", 7),
            ("SC", 9),
            ("PR", 5),
            ("ST", 15),
        ] {
            for number in 1..=count {
                let id = format!("{prefix}-{number:02}");
                assert!(find(&id).is_some(), "{id} is missing");
            }
        }
        assert_eq!(ids.len(), 134);
    }

    #[test]
    fn only_the_self_test_runs_what_no_profile_asks_for() {
        let orphans: Vec<_> =
            all().filter(|test| test.profiles.is_empty()).map(|test| test.id).collect();
        assert_eq!(orphans, ["SM-26"]);
    }

    #[test]
    fn bare_metal_asks_for_the_core() {
        let test = find("SM-01").unwrap();
        assert!(test.is_asked_by(&[Profile::BareMetal]));
        assert!(!test.is_asked_by(&[Profile::Cloud]));
    }
}
