//! One line of the audit log.

use std::borrow::Cow;

use bigfleet_engine::{Action, ActionKind};
use bigfleet_model::{ClusterId, Fingerprint, Group, MachineId, Stamp};
use bigfleet_wire::v1alpha1::DecisionRecord;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::json::{instant, text};

/// The kind of lines that tell a change of the actuation mode.
pub const SET_ACTUATION: &str = "SetActuation";

/// A decision, or its outcome, or a change of the actuation mode.
///
/// Texts are as written: a log may be older or newer than its reader.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// When, in UTC.
    #[serde(with = "instant")]
    pub time: Timestamp,
    /// The cycle that decided.
    pub cycle: i64,
    /// What is done.
    pub kind: Cow<'static, str>,
    /// With which machine.
    #[serde(with = "text")]
    pub machine: MachineId,
    /// Who gets or loses it; empty for Delete.
    #[serde(with = "text")]
    pub cluster: ClusterId,
    /// Why, in the engine's words.
    pub reason: Cow<'static, str>,
    /// Time to leave; 0 unless Preempt or Reclaim.
    pub grace_seconds: i64,
    /// What became of it.
    pub outcome: Cow<'static, str>,
    /// Rises over restarts.
    pub seq: i64,
    /// The decision this outcome belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<i64>,
    /// Fingerprint of the need served.
    #[serde(with = "text")]
    pub need: Fingerprint,
    /// Its group.
    #[serde(with = "text")]
    pub group: Group,
    /// Its priority.
    pub priority: i32,
    /// Priority of the need that preempts.
    pub preemptor_priority: i32,
    /// Dollars per hour; none if infinite.
    pub cost: Option<f64>,
    /// What the next best class would have cost.
    pub runner_up_cost: Option<f64>,
    /// The provider's name of the operation.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub operation_id: String,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// Who changed the actuation mode.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub set_by: String,
}

impl Record {
    /// A decision of the engine; `stamp` is that of the machine it takes away.
    pub(super) fn decision(cycle: i64, action: &Action, stamp: Option<&Stamp>) -> Self {
        let (grace, preemptor_priority, stamp) = match &action.kind {
            ActionKind::Bootstrap(acquisition) | ActionKind::Provision(acquisition) => {
                (0, 0, Some(&*acquisition.stamp))
            }
            ActionKind::Preempt { grace, preemptor_priority, .. } => {
                (grace.as_secs(), *preemptor_priority, stamp)
            }
            ActionKind::Reclaim { grace, .. } => (grace.as_secs(), 0, stamp),
            ActionKind::Delete => (0, 0, None),
        };
        Self {
            cycle,
            kind: Cow::Borrowed(action.kind.name()),
            machine: action.machine.clone(),
            cluster: action.kind.cluster().cloned().unwrap_or_else(|| "".into()),
            reason: Cow::Borrowed(action.kind.reason()),
            grace_seconds: i64::try_from(grace).unwrap_or(i64::MAX),
            need: stamp.map_or_else(|| "".into(), |stamp| stamp.fingerprint.clone()),
            group: stamp.map_or_else(Group::none, |stamp| stamp.group.clone()),
            priority: stamp.and_then(|stamp| stamp.priority).unwrap_or(0),
            preemptor_priority,
            cost: Some(action.cost).filter(|cost| cost.is_finite()),
            runner_up_cost: action.runner_up_cost.filter(|cost| cost.is_finite()),
            ..Self::empty()
        }
    }

    /// A change of the actuation mode.
    pub(super) fn actuation(mode: &'static str, reason: &str, set_by: &str) -> Self {
        Self {
            kind: Cow::Borrowed(SET_ACTUATION),
            reason: Cow::Owned(reason.to_owned()),
            outcome: Cow::Borrowed(mode),
            set_by: set_by.to_owned(),
            ..Self::empty()
        }
    }

    fn empty() -> Self {
        Self {
            time: Timestamp::UNIX_EPOCH,
            cycle: 0,
            kind: Cow::Borrowed(""),
            machine: "".into(),
            cluster: "".into(),
            reason: Cow::Borrowed(""),
            grace_seconds: 0,
            outcome: Cow::Borrowed(""),
            seq: 0,
            of: None,
            need: "".into(),
            group: Group::none(),
            priority: 0,
            preemptor_priority: 0,
            cost: None,
            runner_up_cost: None,
            operation_id: String::new(),
            error: String::new(),
            set_by: String::new(),
        }
    }

    /// As `WatchDecisions` and `ExplainNeed` send it.
    #[must_use]
    pub fn to_wire(&self, gap: bool) -> DecisionRecord {
        DecisionRecord {
            sequence: self.seq,
            cycle: self.cycle,
            time_unix_nanos: i64::try_from(self.time.as_nanosecond()).unwrap_or(i64::MAX),
            kind: self.kind.to_string(),
            machine_id: self.machine.to_string(),
            cluster_id: self.cluster.to_string(),
            profile_fingerprint: self.need.to_string(),
            group: self.group.to_string(),
            priority: self.priority,
            preemptor_priority: self.preemptor_priority,
            effective_cost: self.cost.unwrap_or(-1.0),
            runner_up_cost: self.runner_up_cost.unwrap_or(-1.0),
            reason: self.reason.to_string(),
            outcome: self.outcome.to_string(),
            grace_seconds: self.grace_seconds,
            error: self.error.clone(),
            of_sequence: self.of.unwrap_or(0),
            gap,
        }
    }
}
