//! What an operator is like from the start.

use std::time::Duration;

use bigfleet_net::rule::Rule;

/// Sends the second `ReclaimAck`.
pub const FINAL_RECLAIM_ACK: &str = "final-reclaim-ack";

/// Takes `NeedStatusUpdate`.
pub const NEED_STATUS: &str = "need-status";

/// An operator, before it dials.
#[derive(Debug, Clone)]
pub struct OperatorOptions {
    /// The cluster it speaks for.
    pub cluster: String,
    /// What its Hello says that it does. Without [`FINAL_RECLAIM_ACK`] it sends
    /// no final acks.
    pub features: Vec<String>,
    /// What its Hello says that it speaks.
    pub protocol_version: String,
    /// Who the other end must be under mTLS.
    pub expect: Rule,
    /// How long a Hello may go unanswered.
    pub patience: Duration,
    /// Whether frames are kept for [`State::frames`](super::State::frames);
    /// switch it off for runs that do not end soon.
    pub record: bool,
    /// Bytes that may be under way to this operator before it reads them. Small
    /// ones make a stall felt soon; none is the transport's default of megabytes.
    pub window: Option<u32>,
}

impl OperatorOptions {
    /// An operator of this cluster as ours are.
    #[must_use]
    pub fn new(cluster: impl Into<String>) -> Self {
        Self {
            cluster: cluster.into(),
            features: vec![FINAL_RECLAIM_ACK.to_owned(), NEED_STATUS.to_owned()],
            protocol_version: "v1alpha1".to_owned(),
            expect: Rule::any_shard(),
            patience: Duration::from_secs(30),
            record: true,
            window: None,
        }
    }

    /// Other features than the default.
    #[must_use]
    pub fn features(mut self, features: &[&str]) -> Self {
        self.features = features.iter().map(|&feature| feature.to_owned()).collect();
        self
    }

    /// Keeps no frames.
    #[must_use]
    pub const fn without_record(mut self) -> Self {
        self.record = false;
        self
    }

    /// Lets so many bytes be under way at most.
    #[must_use]
    pub const fn window(mut self, bytes: u32) -> Self {
        self.window = Some(bytes);
        self
    }

    pub(super) fn has(&self, feature: &str) -> bool {
        self.features.iter().any(|known| known == feature)
    }
}
