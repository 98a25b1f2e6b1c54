//! The document as it is written. Everything omitted takes its default, so that
//! worlds can be written by hand; unknown fields are errors.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Number;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
pub(super) struct World {
    pub(super) now: f64,
    pub(super) machines: Vec<Machine>,
    pub(super) needs: Vec<Need>,
    pub(super) pending: Vec<Action>,
    pub(super) ready: Option<Vec<String>>,
    pub(super) gang_ages: Vec<GangAge>,
    pub(super) no_acquire: Vec<NoAcquire>,
    pub(super) held_back: BTreeMap<String, HeldBack>,
    pub(super) options: Options,
}

/// A Kubernetes quantity, or a plain number.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Amount {
    Text(String),
    Number(Number),
}

pub(super) type Amounts = BTreeMap<String, Amount>;

/// Dollars, or a word for infinitely many.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum Dollars {
    Number(f64),
    Word(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Machine {
    pub(super) id: String,
    pub(super) count: Option<u32>,
    #[serde(default = "idle")]
    pub(super) state: State,
    #[serde(default)]
    pub(super) cluster: String,
    #[serde(default)]
    pub(super) host: String,
    #[serde(default)]
    pub(super) instance_type: String,
    #[serde(default)]
    pub(super) zone: String,
    #[serde(default)]
    pub(super) last_error: String,
    #[serde(default)]
    pub(super) capacity_type: CapacityType,
    #[serde(default)]
    pub(super) labels: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) resources: Amounts,
    #[serde(default)]
    pub(super) allocatable: Amounts,
    #[serde(default)]
    pub(super) price_per_hour: f64,
    #[serde(default)]
    pub(super) interruption_probability: f64,
    pub(super) stamp: Option<Stamp>,
    pub(super) idle_since: Option<f64>,
    pub(super) drain: Option<Drain>,
}

fn idle() -> State {
    State::Idle
}

#[derive(Clone, Copy, Deserialize)]
pub(super) enum State {
    Speculative,
    Creating,
    Idle,
    Configuring,
    Configured,
    Draining,
    Deleting,
    Failed,
}

#[derive(Clone, Copy, Default, Deserialize)]
pub(super) enum CapacityType {
    #[default]
    Unspecified,
    BareMetal,
    Reserved,
    OnDemand,
    Spot,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stamp {
    pub(super) need: Option<String>,
    pub(super) priority: Option<i32>,
    pub(super) interruption_dollars: Option<Dollars>,
    pub(super) reclamation_dollars: Option<Dollars>,
    pub(super) fingerprint: Option<String>,
    pub(super) group: Option<String>,
    pub(super) for_cluster: Option<String>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Drain {
    pub(super) deadline: Option<f64>,
    pub(super) preemptor_priority: Option<i32>,
    pub(super) r#for: Option<NeedRef>,
}

/// A need by its name in this document, or by its identity.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum NeedRef {
    Name(String),
    Key(NeedKey),
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NeedKey {
    pub(super) cluster: String,
    pub(super) fingerprint: String,
    #[serde(default)]
    pub(super) group: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Need {
    pub(super) cluster: String,
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) requirements: Vec<Requirement>,
    #[serde(default)]
    pub(super) spread: Vec<Spread>,
    #[serde(default)]
    pub(super) priority: i32,
    pub(super) interruption_bucket: Option<i32>,
    pub(super) interruption_penalty: Option<Dollars>,
    pub(super) reclamation_bucket: Option<i32>,
    pub(super) reclamation_penalty: Option<Dollars>,
    #[serde(default)]
    pub(super) aggregate: Amounts,
    #[serde(default)]
    pub(super) min_unit: Amounts,
    #[serde(default)]
    pub(super) group: String,
    #[serde(default)]
    pub(super) arrival: f64,
}

/// In fields, or as the text `<key> <operator> <value,value>`.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Requirement {
    Text(String),
    Fields(RequirementFields),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequirementFields {
    pub(super) key: String,
    pub(super) operator: String,
    #[serde(default)]
    pub(super) values: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Spread {
    pub(super) topology_key: String,
    #[serde(default = "one")]
    pub(super) max_skew: i32,
    #[serde(default)]
    pub(super) when_unsatisfiable: WhenUnsatisfiable,
}

fn one() -> i32 {
    1
}

#[derive(Clone, Copy, Default, Deserialize)]
pub(super) enum WhenUnsatisfiable {
    Unspecified,
    #[default]
    DoNotSchedule,
    ScheduleAnyway,
}

/// An action in the form of the output; what execution does not need is ignored.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Action {
    pub(super) kind: ActionKind,
    pub(super) machine: String,
    #[serde(default)]
    pub(super) cluster: String,
    pub(super) stamp: Option<Stamp>,
    pub(super) grace_seconds: Option<f64>,
    pub(super) preemptor_priority: Option<i32>,
    pub(super) r#for: Option<NeedRef>,
    #[serde(default, rename = "need")]
    _need: serde::de::IgnoredAny,
    #[serde(default, rename = "reason")]
    _reason: serde::de::IgnoredAny,
    #[serde(default, rename = "cost")]
    _cost: serde::de::IgnoredAny,
    #[serde(default, rename = "runner_up_cost")]
    _runner_up_cost: serde::de::IgnoredAny,
    #[serde(default, rename = "explain")]
    _explain: serde::de::IgnoredAny,
}

#[derive(Clone, Copy, Deserialize)]
pub(super) enum ActionKind {
    Bootstrap,
    Provision,
    Preempt,
    Reclaim,
    Delete,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GangAge {
    pub(super) cluster: String,
    pub(super) group: String,
    pub(super) fingerprint: String,
    pub(super) age: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoAcquire {
    pub(super) cluster: Option<String>,
    pub(super) fingerprint: Option<String>,
    pub(super) group: Option<String>,
    pub(super) need: Option<String>,
    pub(super) why: Why,
}

#[derive(Clone, Copy, Deserialize)]
pub(super) enum Why {
    NoSession,
    BootstrapRefused,
}

#[derive(Clone, Copy, Deserialize)]
pub(super) enum HeldBack {
    ProviderFailing,
    Quota,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Options {
    pub(super) weight_priority: f64,
    pub(super) weight_drain: f64,
    pub(super) weight_interruption: f64,
    pub(super) weight_reclamation: f64,
    pub(super) estimated_drain_seconds: f64,
    pub(super) hold_on_demand_seconds: f64,
    pub(super) hold_spot_seconds: f64,
}

impl Default for Options {
    fn default() -> Self {
        let phase2 = crate::Phase2Options::default();
        let release = crate::ReleasePolicy::default();
        Self {
            weight_priority: phase2.weight_priority,
            weight_drain: phase2.weight_drain,
            weight_interruption: phase2.weight_interruption,
            weight_reclamation: phase2.weight_reclamation,
            estimated_drain_seconds: phase2.estimated_drain_seconds,
            hold_on_demand_seconds: release.on_demand.as_secs_f64(),
            hold_spot_seconds: release.spot.as_secs_f64(),
        }
    }
}
