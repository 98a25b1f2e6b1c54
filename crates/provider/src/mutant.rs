//! Deliberate defects (provider chapter §11.1): each breaks one rule, so that the
//! conformance suite can prove that it notices. Without the feature `mutants`
//! [`active`] is a constant and nothing of them is left in the code.

macro_rules! mutants {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// One rule, broken.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Mutant { $($(#[$doc])* $name,)* }

        impl Mutant {
            /// In the order of the specification's table.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// How it is called on the command line.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

mutants! {
    // fencing (§2)
    /// Every token passes.
    FenceOff = "fence-off",
    /// A token equal to the mark passes.
    FenceAcceptsEqual = "fence-accepts-equal",
    /// One mark for all machines of a shard.
    FencePerShard = "fence-per-shard",
    /// One mark for all shards and machines.
    FenceGlobal = "fence-global",
    /// A higher epoch does not free the sequence space.
    SequenceNotReset = "sequence-not-reset",
    /// Only the sequence counts.
    EpochIgnored = "epoch-ignored",
    /// Compares with arithmetic that wraps at i64.
    TokenWraps = "token-wraps",
    /// Negative numbers are stale.
    NegativeTokenFenced = "negative-token-fenced",
    /// NOT_FOUND before the fence.
    FenceAfterExistence = "fence-after-existence",
    /// A zombie gets the recorded id.
    FenceAfterReplay = "fence-after-replay",
    /// A call that fails leaves no mark.
    MarkOnlyOnSuccess = "mark-only-on-success",
    /// A refused token moves the mark.
    MarkOnRefusal = "mark-on-refusal",
    /// After a stale call the reads of its machine are refused.
    ReadsFenced = "reads-fenced",
    /// The zero token is compared like any other.
    ZeroTokenFenced = "zero-token-fenced",
    // status codes (§1)
    /// FAILED_PRECONDITION for a call out of position.
    PositionIsFenced = "position-is-fenced",
    /// FAILED_PRECONDITION for an unknown machine.
    UnknownIsFenced = "unknown-is-fenced",
    /// A mutation of an unknown machine makes it.
    UnknownIsCreated = "unknown-is-created",
    /// Get of an unknown machine answers a made-up record.
    GetMakesUnknown = "get-makes-unknown",
    /// Delete of an unknown machine succeeds.
    DeleteUnknownOk = "delete-unknown-ok",
    /// NOT_FOUND for an empty id.
    EmptyIdNotFound = "empty-id-not-found",
    /// FAILED_PRECONDITION for a negative grace.
    NegativeGraceFenced = "negative-grace-fenced",
    /// FAILED_PRECONDITION for a large blob.
    BigBlobFenced = "big-blob-fenced",
    /// A large blob is refused after the binding was stored.
    BigBlobHalfBound = "big-blob-half-bound",
    /// INTERNAL for an unknown machine.
    UnknownIsInternal = "unknown-is-internal",
    /// A rejected call changes the state all the same.
    RejectionMoves = "rejection-moves",
    /// A rejected call clears the binding.
    RejectionUnbinds = "rejection-unbinds",
    /// Drain of an idle machine starts a drain.
    DrainIdleRuns = "drain-idle-runs",
    /// Delete of a slot starts a deletion.
    DeleteSpeculativeRuns = "delete-speculative-runs",
    // idempotency (§1)
    /// A replay mints a new id.
    NewIdPerRetry = "new-id-per-retry",
    /// A machine has one id for all its operations.
    OneIdForEver = "one-id-for-ever",
    /// Machines share operation ids.
    IdsShared = "ids-shared",
    /// The checks and the acceptance are not one step.
    CheckThenAct = "check-then-act",
    /// Operations are remembered per connection.
    KeyPerConnection = "key-per-connection",
    /// A replay at the target starts the transition again.
    ReplayReruns = "replay-reruns",
    /// The ack shows a state that is neither before nor after.
    TornSnapshot = "torn-snapshot",
    // lifecycle (§1)
    /// Another transitional state is shown.
    WrongTransitional = "wrong-transitional",
    /// Create ends bound.
    IdleSkipped = "idle-skipped",
    /// Create passes through FAILED.
    CreateShowsFailed = "create-shows-failed",
    /// Create stays CREATING.
    CreateNeverEnds = "create-never-ends",
    /// Create answers after ten seconds.
    CreateBlocks = "create-blocks",
    /// Drain with grace 0 goes back to CONFIGURED.
    DrainReverts = "drain-reverts",
    /// A settled machine moves by itself.
    SettledFlaps = "settled-flaps",
    // binding and metadata (§1, §4)
    /// The binding is set at CONFIGURED only.
    BoundLate = "bound-late",
    /// The binding is lost at CONFIGURED.
    BindingLost = "binding-lost",
    /// The binding outlives the drain.
    BindingKept = "binding-kept",
    /// The metadata outlives the drain.
    MetadataKept = "metadata-kept",
    /// Unknown keys are dropped.
    MetadataWhitelisted = "metadata-whitelisted",
    /// Values end at the first NUL.
    MetadataNulCut = "metadata-nul-cut",
    /// White space around values is lost.
    MetadataTrimmed = "metadata-trimmed",
    /// Fifty keys are kept.
    MetadataFirstFifty = "metadata-first-fifty",
    /// Values are cut at 4 KiB.
    MetadataValuesCut = "metadata-values-cut",
    /// Maps are cut at 500 keys.
    MetadataKeysCut = "metadata-keys-cut",
    /// The next map is merged with the old one.
    MetadataMerged = "metadata-merged",
    /// The caller's own map is kept (in process only).
    MetadataAliased = "metadata-aliased",
    // shape (§4)
    /// A slot shows a host.
    HostAtSpeculative = "host-at-speculative",
    /// An idle machine shows no host.
    NoHostAtIdle = "no-host-at-idle",
    /// The host outlives the deletion.
    HostKept = "host-kept",
    /// The provider's name differs from call to call.
    HostProviderChanges = "host-provider-changes",
    /// The instance type is a label only.
    TypeInLabels = "type-in-labels",
    /// No zone.
    ZoneEmpty = "zone-empty",
    /// No capacity type.
    CapacityUnset = "capacity-unset",
    /// The price is not a number.
    PriceNan = "price-nan",
    /// A probability of 1.5.
    ProbabilityTooHigh = "probability-too-high",
    /// SPOT with probability 0.
    SpotWithoutRisk = "spot-without-risk",
    /// A quantity "abc".
    QuantityGarbled = "quantity-garbled",
    // List (§6)
    /// All states, whatever the filter.
    FilterIgnored = "filter-ignored",
    /// Of several states only the last counts.
    UnionIsLast = "union-is-last",
    /// max_results has no effect.
    CapIgnored = "cap-ignored",
    /// One record too many.
    CapOffByOne = "cap-off-by-one",
    /// max_results 0 gives nothing.
    CapZeroIsNone = "cap-zero-is-none",
    /// One record twice.
    DuplicateRow = "duplicate-row",
    /// The revision never rises.
    RevisionFrozen = "revision-frozen",
    /// Reads bump the revision of a record.
    RevisionOnRead = "revision-on-read",
    /// A sweep that finds nothing bumps revisions.
    RevisionOnSweep = "revision-on-sweep",
    /// A delta lacks a record.
    DeltaMissesOne = "delta-misses-one",
    /// A delta has one too many.
    DeltaAddsOne = "delta-adds-one",
    /// A garbled cursor is an error.
    JunkCursorErrors = "junk-cursor-errors",
    /// A garbled cursor gives nothing.
    JunkCursorEmpty = "junk-cursor-empty",
    /// A cursor ahead of head gives nothing.
    CursorAheadTrusted = "cursor-ahead-trusted",
    /// Pages are in order of id.
    PageOrderById = "page-order-by-id",
    /// A cut page returns head.
    CutPageReturnsHead = "cut-page-returns-head",
    // failure (§3, §5)
    /// A failed transition returns to where it began.
    ErrorGoesBack = "error-goes-back",
    /// FAILED with an empty error.
    FailedWithoutText = "failed-without-text",
    /// The text differs from read to read.
    FailedTextChanges = "failed-text-changes",
    /// FAILED takes a Configure.
    FailedAcceptsConfigure = "failed-accepts-configure",
    /// A success after the timeout counts.
    LateSuccessApplied = "late-success-applied",
    /// Nothing ends a hanging transition.
    TimeoutNeverFires = "timeout-never-fires",
    /// CONFIGURED without readiness.
    ConfiguredBeforeReady = "configured-before-ready",
    // durability (§7)
    /// Marks are lost with the process.
    MarksNotStored = "marks-not-stored",
    /// Operation records are lost.
    OperationsNotStored = "operations-not-stored",
    /// Bindings are lost.
    BindingNotStored = "binding-not-stored",
    /// The last hundredth of the machines is lost.
    LastMachinesNotStored = "last-machines-not-stored",
    /// Ids begin again at one.
    OperationCounterRestarts = "operation-counter-restarts",
    /// Interrupted transitions stay as they were.
    TransitionalLeft = "transitional-left",
    /// The answer does not wait for the store.
    AckBeforeCommit = "ack-before-commit",
    /// A store that fails is not noticed.
    CommitErrorSwallowed = "commit-error-swallowed",
    /// A half-written commit is taken for whole.
    TornRecordAccepted = "torn-record-accepted",
    // scale (§6, §9)
    /// Every commit costs the whole fleet.
    StoreScans = "store-scans",
    /// List compares every record with every other.
    ListQuadratic = "list-quadratic",
    /// Each cycle leaves one slot more.
    SlotLeaked = "slot-leaked",
    /// Each cycle loses a slot.
    SlotLost = "slot-lost",
    // strict (beyond)
    /// Configure for another cluster is answered as a replay.
    OtherClusterOk = "other-cluster-ok",
    /// An empty cluster_id is taken.
    EmptyClusterOk = "empty-cluster-ok",
    /// Interrupted transitions fail instead of going on.
    NoResume = "no-resume",
    /// A host that is gone is not noticed.
    LossIgnored = "loss-ignored",
    /// FAILED is never cleaned.
    RepairOff = "repair-off",
    /// The host of a late Create is forgotten.
    LateHostLeaked = "late-host-leaked",
    /// The certificate is not compared with shard_id.
    CallerIgnored = "caller-ignored",
    /// A drain has ten minutes, whatever its grace.
    DrainTimeoutFixed = "drain-timeout-fixed",
    /// An interruption notice changes nothing.
    NoticeIgnored = "notice-ignored",
    /// Marks of unknown machines are kept without end.
    GhostMarksUnbounded = "ghost-marks-unbounded",
}

#[cfg(feature = "mutants")]
mod switch {
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::Mutant;

    const NONE: u8 = u8::MAX;

    /// One per process: a mutant is a whole broken provider.
    static ACTIVE: AtomicU8 = AtomicU8::new(NONE);

    /// Breaks the process from now on; `None` mends it.
    pub fn set(mutant: Option<Mutant>) {
        ACTIVE.store(mutant.map_or(NONE, |mutant| mutant as u8), Ordering::Relaxed);
    }

    /// Whether this rule is the broken one.
    pub fn active(mutant: Mutant) -> bool {
        ACTIVE.load(Ordering::Relaxed) == mutant as u8
    }
}

#[cfg(not(feature = "mutants"))]
mod switch {
    use super::Mutant;

    /// Nothing is broken in this build.
    pub const fn active(_: Mutant) -> bool {
        false
    }
}

pub use switch::*;
