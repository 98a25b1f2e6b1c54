//! From the document to a cycle's input, through the gates that guard the wire.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use bigfleet_model::{
    CapacityType, ClusterId, MachineState, Need, Operator, PenaltyBucket, Stamp, WhenUnsatisfiable,
    gate::{Refusal, demand, inventory},
};
use bigfleet_wire::v1alpha1 as wire;

use super::form;
use crate::{
    action::{Acquisition, Action, ActionKind},
    input::{
        CycleInput, Drain, GangKey, HeldBack, NeedKey, NoAcquire, Phase2Options, ReleasePolicy,
        Time, Tracked,
    },
    output::NeedIdx,
};

/// Machines of one entry: a slip of the finger must not fill the memory.
const MAX_COUNT: u32 = 5_000_000;

type Result<T> = std::result::Result<T, Refusal>;

pub(super) fn convert(world: form::World) -> Result<CycleInput> {
    let options = world.options;
    let mut demand = Vec::with_capacity(world.needs.len());
    let mut names = Names::default();
    for (index, form) in world.needs.into_iter().enumerate() {
        let path = format!("needs[{index}]");
        let name = form.name.clone();
        let need = need(form).map_err(|refusal| inside(&path, refusal))?;
        names.add(&path, name, &need)?;
        demand.push(need);
    }
    let mut snapshot = Vec::new();
    let mut ids = BTreeSet::new();
    for (index, form) in world.machines.into_iter().enumerate() {
        let path = format!("machines[{index}]");
        for tracked in machines(form, &names).map_err(|refusal| inside(&path, refusal))? {
            if !ids.insert(tracked.machine.id.clone()) {
                let id = &tracked.machine.id;
                return Err(refuse(format!("{path}.id"), format!("{id:?} stands twice")));
            }
            snapshot.push(tracked);
        }
    }
    let mut pending = Vec::with_capacity(world.pending.len());
    for (index, form) in world.pending.into_iter().enumerate() {
        let path = format!("pending[{index}]");
        pending.push(action(form, &names).map_err(|refusal| inside(&path, refusal))?);
    }
    let ready = match world.ready {
        Some(clusters) => clusters.into_iter().map(ClusterId::from).collect(),
        None => named_clusters(&snapshot, &demand),
    };
    let mut no_acquire = BTreeMap::new();
    for (index, form) in world.no_acquire.into_iter().enumerate() {
        let why = match form.why {
            form::Why::NoSession => NoAcquire::NoSession,
            form::Why::BootstrapRefused => NoAcquire::BootstrapRefused,
        };
        let path = format!("no_acquire[{index}]");
        no_acquire.insert(held_need(&path, form, &names)?, why);
    }
    Ok(CycleInput {
        snapshot,
        demand: crate::input::merge(demand),
        pending,
        ready,
        gang_ages: world.gang_ages.into_iter().map(gang_age).collect(),
        no_acquire,
        held_back: world
            .held_back
            .into_iter()
            .map(|(id, why)| (id.into(), held_back(why)))
            .collect(),
        phase2: Phase2Options {
            weight_priority: options.weight_priority,
            weight_drain: options.weight_drain,
            weight_interruption: options.weight_interruption,
            weight_reclamation: options.weight_reclamation,
            estimated_drain_seconds: options.estimated_drain_seconds,
        },
        release: ReleasePolicy {
            on_demand: duration("options.hold_on_demand_seconds", options.hold_on_demand_seconds)?,
            spot: duration("options.hold_spot_seconds", options.hold_spot_seconds)?,
        },
        now: time(world.now),
    })
}

/// Needs by the names they have in this document only.
#[derive(Default)]
struct Names(BTreeMap<String, (NeedKey, Arc<Stamp>)>);

impl Names {
    fn add(&mut self, path: &str, name: String, need: &Need) -> Result<()> {
        if name.is_empty() {
            return Ok(());
        }
        if self.0.contains_key(&name) {
            return Err(refuse(format!("{path}.name"), format!("{name:?} stands twice")));
        }
        self.0.insert(name, (NeedKey::of(need), Arc::new(Stamp::of(need))));
        Ok(())
    }

    fn get(&self, path: &str, name: &str) -> Result<&(NeedKey, Arc<Stamp>)> {
        self.0.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.0.keys().map(String::as_str).collect();
            let hint = match known.as_slice() {
                [] => String::new(),
                known => format!("; names are: {}", known.join(", ")),
            };
            refuse(path.to_owned(), format!("no need is named {name:?}{hint}"))
        })
    }
}

fn need(form: form::Need) -> Result<Need> {
    let bucket = |field: &str, ordinal: Option<i32>, dollars: Option<form::Dollars>| match (
        ordinal, dollars,
    ) {
        (Some(_), Some(_)) => Err(refuse(
            format!("{field}_bucket"),
            format!("give this or {field}_penalty, not both"),
        )),
        (Some(ordinal), None) => Ok(ordinal),
        (None, Some(form::Dollars::Word(word))) if word == "pinned" => {
            Ok(PenaltyBucket::PINNED.to_wire())
        }
        (None, Some(amount)) => {
            Ok(PenaltyBucket::from_dollars(dollars_of(&format!("{field}_penalty"), amount)?)
                .to_wire())
        }
        (None, None) => Ok(PenaltyBucket::ZERO.to_wire()),
    };
    let mut requirements = Vec::with_capacity(form.requirements.len());
    for (index, one) in form.requirements.into_iter().enumerate() {
        requirements.push(requirement(&format!("requirements[{index}]"), one)?);
    }
    let message = wire::CapacityNeed {
        requirements,
        aggregate_resources: quantities(form.aggregate),
        priority: form.priority,
        spread: form.spread.into_iter().map(spread).collect(),
        interruption_penalty_bucket: bucket(
            "interruption",
            form.interruption_bucket,
            form.interruption_penalty,
        )?,
        reclamation_penalty_bucket: bucket(
            "reclamation",
            form.reclamation_bucket,
            form.reclamation_penalty,
        )?,
        min_unit: quantities(form.min_unit),
        group: form.group,
    };
    demand::need(&form.cluster.into(), time(form.arrival).0, message).map_err(|refusal| Refusal {
        path: refusal
            .path
            .replace("aggregate_resources", "aggregate")
            .replace("_penalty_bucket", "_bucket"),
        ..refusal
    })
}

fn requirement(path: &str, form: form::Requirement) -> Result<wire::NodeSelectorRequirement> {
    let (key, operator, values) = match form {
        form::Requirement::Fields(fields) => (fields.key, fields.operator, fields.values),
        form::Requirement::Text(text) => {
            let mut words = text.splitn(3, ' ');
            let (Some(key), Some(operator)) = (words.next(), words.next()) else {
                let reason = format!("{text:?} is not of the form \"<key> <operator> <v,v>\"");
                return Err(refuse(path.to_owned(), reason));
            };
            let values = words
                .next()
                .map_or_else(Vec::new, |values| values.split(',').map(str::to_owned).collect());
            (key.to_owned(), operator.to_owned(), values)
        }
    };
    let operator =
        Operator::ALL.iter().find(|known| format!("{known:?}") == operator).ok_or_else(|| {
            let reason = format!(
                "unknown operator {operator:?}; write In, NotIn, Exists, DoesNotExist or Same"
            );
            refuse(format!("{path}.operator"), reason)
        })?;
    Ok(wire::NodeSelectorRequirement { key, operator: operator.to_wire(), values })
}

fn spread(form: form::Spread) -> wire::TopologySpread {
    let when = match form.when_unsatisfiable {
        form::WhenUnsatisfiable::Unspecified => WhenUnsatisfiable::Unspecified,
        form::WhenUnsatisfiable::DoNotSchedule => WhenUnsatisfiable::DoNotSchedule,
        form::WhenUnsatisfiable::ScheduleAnyway => WhenUnsatisfiable::ScheduleAnyway,
    };
    wire::TopologySpread {
        topology_key: form.topology_key,
        max_skew: form.max_skew,
        when_unsatisfiable: when.to_wire(),
    }
}

/// One machine, or `count` of them.
fn machines(form: form::Machine, names: &Names) -> Result<Vec<Tracked>> {
    let state = state(form.state);
    let stamp = form.stamp.map(|one| stamp("stamp", one, names)).transpose()?;
    let drain = form.drain.map(|one| drain(one, names)).transpose()?;
    let message = wire::Machine {
        id: form.id.clone(),
        state: state.to_wire(),
        host: None,
        instance_type: form.instance_type,
        zone: form.zone,
        capacity_type: capacity_type(form.capacity_type).to_wire(),
        price_per_hour: form.price_per_hour,
        interruption_probability: form.interruption_probability,
        resources: Some(wire::Resources { resources: quantities(form.resources) }),
        labels: form.labels,
        // A world is written by hand: what failed need not say why.
        last_error: match (state, form.last_error) {
            (MachineState::Failed, error) if error.is_empty() => "failed".to_owned(),
            (_, error) => error,
        },
        allocatable: Some(wire::Resources { resources: quantities(form.allocatable) }),
        cluster: form.cluster,
        shard_metadata: BTreeMap::new(),
    };
    let ids = match form.count {
        None => vec![form.id],
        Some(count) if count > MAX_COUNT => {
            let reason = format!("{count} machines are more than {MAX_COUNT}");
            return Err(refuse("count".to_owned(), reason));
        }
        Some(count) => (0..count).map(|number| format!("{}-{number}", form.id)).collect(),
    };
    let hosted = !matches!(state, MachineState::Speculative | MachineState::Creating);
    ids.into_iter()
        .map(|id| {
            let reference = match form.host.as_str() {
                // The state needs one, so one is invented.
                "" if hosted => id.clone(),
                host => host.to_owned(),
            };
            let host = wire::HostRef { provider: String::new(), r#ref: reference };
            let message = wire::Machine { id, host: Some(host), ..message.clone() };
            let accepted = inventory::machine(message).map_err(|rejected| rejected.refusal)?;
            let mut machine = accepted.machine;
            machine.stamp.clone_from(&stamp);
            Ok(Tracked { machine, idle_since: form.idle_since.map(time), drain: drain.clone() })
        })
        .collect()
}

fn state(form: form::State) -> MachineState {
    match form {
        form::State::Speculative => MachineState::Speculative,
        form::State::Creating => MachineState::Creating,
        form::State::Idle => MachineState::Idle,
        form::State::Configuring => MachineState::Configuring,
        form::State::Configured => MachineState::Configured,
        form::State::Draining => MachineState::Draining,
        form::State::Deleting => MachineState::Deleting,
        form::State::Failed => MachineState::Failed,
    }
}

fn capacity_type(form: form::CapacityType) -> CapacityType {
    match form {
        form::CapacityType::Unspecified => CapacityType::Unspecified,
        form::CapacityType::BareMetal => CapacityType::BareMetal,
        form::CapacityType::Reserved => CapacityType::Reserved,
        form::CapacityType::OnDemand => CapacityType::OnDemand,
        form::CapacityType::Spot => CapacityType::Spot,
    }
}

fn stamp(path: &str, form: form::Stamp, names: &Names) -> Result<Arc<Stamp>> {
    if let Some(name) = &form.need {
        return Ok(names.get(&format!("{path}.need"), name)?.1.clone());
    }
    let amount = |field: &str, dollars: Option<form::Dollars>| {
        dollars.map_or(Ok(0.0), |dollars| dollars_of(&format!("{path}.{field}"), dollars))
    };
    Ok(Arc::new(Stamp {
        priority: form.priority,
        interruption: amount("interruption_dollars", form.interruption_dollars)?,
        reclamation: amount("reclamation_dollars", form.reclamation_dollars)?,
        fingerprint: form.fingerprint.unwrap_or_default().into(),
        group: form.group.unwrap_or_default().into(),
        for_cluster: form.for_cluster.filter(|cluster| !cluster.is_empty()).map(Into::into),
    }))
}

fn drain(form: form::Drain, names: &Names) -> Result<Drain> {
    Ok(Drain {
        deadline: form.deadline.map(time),
        preemptor_priority: form.preemptor_priority,
        preemptor: form.r#for.map(|one| need_key("drain.for", one, names)).transpose()?,
    })
}

fn need_key(path: &str, form: form::NeedRef, names: &Names) -> Result<NeedKey> {
    match form {
        form::NeedRef::Name(name) => Ok(names.get(path, &name)?.0.clone()),
        form::NeedRef::Key(key) => Ok(NeedKey {
            cluster: key.cluster.into(),
            fingerprint: key.fingerprint.into(),
            group: key.group.into(),
        }),
    }
}

fn action(form: form::Action, names: &Names) -> Result<Action> {
    let cluster: ClusterId = form.cluster.into();
    let grace = || duration("grace_seconds", form.grace_seconds.unwrap_or(600.0));
    let missing = |field: &str| refuse(field.to_owned(), "required for this kind".to_owned());
    let acquisition = |given: Option<form::Stamp>| {
        let stamp = match given {
            Some(given) => stamp("stamp", given, names)?,
            None => return Err(missing("stamp")),
        };
        Ok(Acquisition { cluster: cluster.clone(), stamp, need: NeedIdx::default() })
    };
    let kind = match form.kind {
        form::ActionKind::Bootstrap => ActionKind::Bootstrap(acquisition(form.stamp)?),
        form::ActionKind::Provision => ActionKind::Provision(acquisition(form.stamp)?),
        form::ActionKind::Preempt => ActionKind::Preempt {
            grace: grace()?,
            preemptor_priority: form
                .preemptor_priority
                .ok_or_else(|| missing("preemptor_priority"))?,
            preemptor: need_key("for", form.r#for.ok_or_else(|| missing("for"))?, names)?,
            need: NeedIdx::default(),
            cluster,
        },
        form::ActionKind::Reclaim => ActionKind::Reclaim { grace: grace()?, cluster },
        form::ActionKind::Delete => ActionKind::Delete,
    };
    Ok(Action {
        machine: form.machine.into(),
        kind,
        cost: 0.0,
        runner_up_cost: None,
        domain_rule: 0,
    })
}

fn held_need(path: &str, form: form::NoAcquire, names: &Names) -> Result<NeedKey> {
    match (form.need, form.cluster, form.fingerprint) {
        (Some(name), None, None) => Ok(names.get(&format!("{path}.need"), &name)?.0.clone()),
        (None, Some(cluster), Some(fingerprint)) => Ok(NeedKey {
            cluster: cluster.into(),
            fingerprint: fingerprint.into(),
            group: form.group.unwrap_or_default().into(),
        }),
        _ => Err(refuse(path.to_owned(), "give need, or cluster and fingerprint".to_owned())),
    }
}

fn held_back(form: form::HeldBack) -> HeldBack {
    match form {
        form::HeldBack::ProviderFailing => HeldBack::ProviderFailing,
        form::HeldBack::Quota => HeldBack::Quota,
    }
}

fn gang_age(form: form::GangAge) -> (GangKey, u32) {
    let key = GangKey {
        cluster: form.cluster.into(),
        group: form.group.into(),
        fingerprint: form.fingerprint.into(),
    };
    (key, form.age)
}

fn named_clusters(snapshot: &[Tracked], demand: &[Need]) -> BTreeSet<ClusterId> {
    let bound = snapshot.iter().filter_map(|tracked| tracked.machine.cluster.clone());
    bound.chain(demand.iter().map(|need| need.cluster.clone())).collect()
}

fn quantities(form: form::Amounts) -> BTreeMap<String, String> {
    let text = |amount| match amount {
        form::Amount::Text(text) => text,
        form::Amount::Number(number) => number.to_string(),
    };
    form.into_iter().map(|(name, amount)| (name, text(amount))).collect()
}

fn dollars_of(path: &str, form: form::Dollars) -> Result<f64> {
    let dollars = match form {
        form::Dollars::Number(dollars) => dollars,
        form::Dollars::Word(word) if matches!(word.as_str(), "+Inf" | "pinned") => f64::INFINITY,
        form::Dollars::Word(word) => {
            let reason = format!("{word:?} is no amount; write a number or \"+Inf\"");
            return Err(refuse(path.to_owned(), reason));
        }
    };
    Ok(dollars)
}

fn time(seconds: f64) -> Time {
    Time((seconds * 1e9).round() as i64)
}

fn duration(path: &str, seconds: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| refuse(path.to_owned(), format!("{seconds} is no duration in seconds")))
}

fn refuse(path: String, reason: String) -> Refusal {
    Refusal { path, reason }
}

fn inside(parent: &str, refusal: Refusal) -> Refusal {
    Refusal { path: format!("{parent}.{}", refusal.path), reason: refusal.reason }
}
