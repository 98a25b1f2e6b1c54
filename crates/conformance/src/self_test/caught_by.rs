//! Which tests must notice which broken rule (provider chapter §11.1).

use bigfleet_provider::mutant::Mutant;

/// Every one of these must fail against the mutant.
#[must_use]
pub fn caught_by(mutant: Mutant) -> &'static [&'static str] {
    match mutant {
        // fencing (§2)
        Mutant::FenceOff => &["SM-17", "SM-19", "FE-08", "CO-05"],
        Mutant::FenceAcceptsEqual => &["FE-03", "PR-01"],
        Mutant::FencePerShard => &["SM-20", "FE-02", "PR-04"],
        Mutant::FenceGlobal => &["FE-02", "DU-07"],
        Mutant::SequenceNotReset => &["SM-21"],
        Mutant::EpochIgnored => &["SM-18", "FE-09"],
        Mutant::TokenWraps => &["ER-12"],
        Mutant::NegativeTokenFenced => &["ER-11"],
        Mutant::FenceAfterExistence => &["FE-01"],
        Mutant::FenceAfterReplay => &["FE-05", "FE-06"],
        Mutant::MarkOnlyOnSuccess => &["FE-10"],
        Mutant::MarkOnRefusal => &["FE-11", "PR-01"],
        Mutant::ReadsFenced => &["SM-22", "FE-04"],
        Mutant::ZeroTokenFenced => &["FE-07"],
        // status codes (§1)
        Mutant::PositionIsFenced => &["SM-13", "ER-01", "PR-03"],
        Mutant::UnknownIsFenced => &["ER-07"],
        Mutant::UnknownIsCreated => &["ER-07"],
        Mutant::GetMakesUnknown => &["SM-06"],
        Mutant::DeleteUnknownOk => &["SM-07", "ER-15"],
        Mutant::EmptyIdNotFound => &["ER-08", "PR-05"],
        Mutant::NegativeGraceFenced => &["ER-10"],
        Mutant::BigBlobFenced => &["ER-13"],
        Mutant::BigBlobHalfBound => &["ER-13"],
        Mutant::UnknownIsInternal => &["PR-05"],
        Mutant::RejectionMoves => &["ER-01", "ER-02", "SM-16"],
        Mutant::RejectionUnbinds => &["ER-01", "SM-16"],
        Mutant::DrainIdleRuns => &["ER-03"],
        Mutant::DeleteSpeculativeRuns => &["ER-04"],
        // idempotency (§1)
        Mutant::NewIdPerRetry => &["SM-02", "SM-03", "SM-04", "SM-05", "ER-06"],
        Mutant::OneIdForEver => &["ER-14"],
        Mutant::IdsShared => &["CO-07", "SC-08"],
        Mutant::CheckThenAct => &["CO-01", "CO-02", "CO-03", "CO-04", "CO-09"],
        Mutant::KeyPerConnection => &["CO-06"],
        Mutant::ReplayReruns => &["ER-05"],
        Mutant::TornSnapshot => &["CO-08"],
        // lifecycle (§1)
        Mutant::WrongTransitional => &["LC-02", "LC-03", "LC-08"],
        Mutant::IdleSkipped => &["LC-04"],
        Mutant::CreateShowsFailed => &["SM-14"],
        Mutant::CreateNeverEnds => &["SM-01"],
        Mutant::CreateBlocks => &["SC-06"],
        Mutant::DrainReverts => &["SM-15"],
        Mutant::SettledFlaps => &["LC-07", "SC-09"],
        // binding and metadata (§1, §4)
        Mutant::BoundLate => &["LC-05", "MD-04"],
        Mutant::BindingLost => &["SM-23"],
        Mutant::BindingKept => &["SM-24", "LC-01"],
        Mutant::MetadataKept => &["MD-02", "SC-04"],
        Mutant::MetadataWhitelisted => &["SM-25"],
        Mutant::MetadataNulCut => &["MD-01"],
        Mutant::MetadataTrimmed => &["SM-25", "PR-02"],
        Mutant::MetadataFirstFifty => &["MD-01"],
        Mutant::MetadataValuesCut => &["MD-03"],
        Mutant::MetadataKeysCut => &["ER-09"],
        Mutant::MetadataMerged => &["MD-02"],
        Mutant::MetadataAliased => &["MD-05"],
        // shape (§4)
        Mutant::HostAtSpeculative => &["LC-06", "SH-03"],
        Mutant::NoHostAtIdle => &["SH-03"],
        Mutant::HostKept => &["LC-08", "SH-07"],
        Mutant::HostProviderChanges => &["SH-05"],
        Mutant::TypeInLabels => &["SM-10", "SH-01"],
        Mutant::ZoneEmpty => &["SH-06", "SC-01"],
        Mutant::CapacityUnset => &["SH-06"],
        Mutant::PriceNan => &["SM-11"],
        Mutant::ProbabilityTooHigh => &["SM-11"],
        Mutant::SpotWithoutRisk => &["SH-02"],
        Mutant::QuantityGarbled => &["SH-04"],
        // List (§6)
        Mutant::FilterIgnored => &["SM-08"],
        Mutant::UnionIsLast => &["LI-01"],
        Mutant::CapIgnored => &["SM-09"],
        Mutant::CapOffByOne => &["LI-02"],
        Mutant::CapZeroIsNone => &["LI-02"],
        Mutant::DuplicateRow => &["LI-01"],
        Mutant::RevisionFrozen => &["SM-12", "LI-03"],
        Mutant::RevisionOnRead => &["LI-04"],
        Mutant::RevisionOnSweep => &["LI-08"],
        Mutant::DeltaMissesOne => &["LI-05", "SC-02"],
        Mutant::DeltaAddsOne => &["LI-04", "SC-02"],
        Mutant::JunkCursorErrors => &["LI-06", "LI-09"],
        Mutant::JunkCursorEmpty => &["LI-06", "LI-09"],
        Mutant::CursorAheadTrusted => &["ST-04"],
        Mutant::PageOrderById => &["LI-07", "SC-03"],
        Mutant::CutPageReturnsHead => &["ST-03"],
        // failure (§3, §5)
        Mutant::ErrorGoesBack => &["FA-01"],
        Mutant::FailedWithoutText => &["FA-01", "FA-02"],
        Mutant::FailedTextChanges => &["FA-07"],
        Mutant::FailedAcceptsConfigure => &["FA-05"],
        Mutant::LateSuccessApplied => &["FA-04"],
        Mutant::TimeoutNeverFires => &["FA-03", "FA-06"],
        Mutant::ConfiguredBeforeReady => &["FA-08", "SM-26"],
        // durability (§7)
        Mutant::MarksNotStored => &["DU-01"],
        Mutant::OperationsNotStored => &["DU-02"],
        Mutant::BindingNotStored => &["DU-03"],
        Mutant::LastMachinesNotStored => &["DU-04"],
        Mutant::OperationCounterRestarts => &["DU-05"],
        Mutant::TransitionalLeft => &["DU-06"],
        Mutant::AckBeforeCommit => &["ST-06"],
        Mutant::CommitErrorSwallowed => &["ST-10"],
        Mutant::TornRecordAccepted => &["ST-06"],
        // scale (§6, §9)
        Mutant::StoreScans => &["ST-15"],
        Mutant::ListQuadratic => &["SC-07"],
        Mutant::SlotLeaked => &["SC-05"],
        Mutant::SlotLost => &["SC-05"],
        // strict (beyond)
        Mutant::OtherClusterOk => &["ST-01"],
        Mutant::EmptyClusterOk => &["ST-02"],
        Mutant::NoResume => &["ST-05"],
        Mutant::LossIgnored => &["ST-07"],
        Mutant::RepairOff => &["ST-08"],
        Mutant::LateHostLeaked => &["ST-09"],
        Mutant::CallerIgnored => &["ST-11"],
        Mutant::DrainTimeoutFixed => &["ST-12"],
        Mutant::NoticeIgnored => &["ST-13"],
        Mutant::GhostMarksUnbounded => &["ST-14"],
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::catalogue::{self, Severity};

    #[test]
    fn every_must_kills_a_mutant() {
        let killers: BTreeSet<_> =
            Mutant::ALL.iter().flat_map(|&mutant| caught_by(mutant)).copied().collect();
        let idle: Vec<_> = catalogue::all()
            .filter(|test| test.severity == Severity::M && !killers.contains(test.id))
            .collect();
        assert!(idle.is_empty(), "these tests kill nothing: {idle:?}");
    }

    #[test]
    fn every_mutant_is_caught_by_tests_that_exist() {
        for &mutant in Mutant::ALL {
            assert!(!caught_by(mutant).is_empty(), "{mutant:?}");
            for id in caught_by(mutant) {
                assert!(catalogue::find(id).is_some(), "{mutant:?}: {id}");
            }
        }
    }
}
