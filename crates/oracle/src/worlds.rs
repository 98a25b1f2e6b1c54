//! Random small worlds: one seed, one world. Few classes, few tiers and few
//! names, so that rules meet; every feature of the input is hit.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bigfleet_engine::{
    Action, ActionKind, CycleInput, Drain, GangKey, HeldBack, NeedKey, NoAcquire, Phase2Options,
    ReleasePolicy, Time, Tracked, action::Acquisition, input::merge, output::NeedIdx,
};
use bigfleet_model::{
    CapacityType, ClusterId, Group, MachineState, Need, Operator, Stamp, WhenUnsatisfiable,
    gate::{demand, inventory},
};
use bigfleet_wire::v1alpha1 as wire;

use crate::fold::{folded_group, folded_profile};

/// SplitMix64: small, seeded, the same everywhere.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// From a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `bound`, which is positive.
    pub const fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// True `percent` times of a hundred.
    pub const fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of several.
    pub fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }

    /// In another order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, self.below(end as u64 + 1) as usize);
        }
    }
}

const ZONE: &str = "topology.kubernetes.io/zone";
const TYPE: &str = "node.kubernetes.io/instance-type";
const GPU: &str = "example.com/gpu";
/// Seconds; all times lie around it.
const NOW: i64 = 10_000;

/// The world of a seed: up to about sixty machines and thirty needs, mostly far
/// fewer.
pub fn world(seed: u64) -> CycleInput {
    let mut random = SplitMix64::new(seed);
    let (machines, needs) = *random.one(&[(5, 3), (10, 5), (14, 6), (14, 8), (24, 12), (60, 30)]);
    let mut builder = Builder::new(random, needs);
    builder.machines(machines);
    builder.rest()
}

/// What a world has much of, so that the rarer rules meet often enough.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flavour {
    /// Everything.
    Mixed,
    /// Bound machines and little else: needs must evict.
    Tight,
    /// Hard spreads and machines to acquire.
    Spread,
}

struct Builder {
    random: SplitMix64,
    flavour: Flavour,
    clusters: Vec<ClusterId>,
    classes: Vec<wire::Machine>,
    needs: Vec<Need>,
    /// Stamps that machines and drains carry: of needs, of folds, of needs that
    /// are gone.
    stamps: Vec<Stamp>,
    snapshot: Vec<Tracked>,
}

impl Builder {
    fn new(mut random: SplitMix64, needs: u64) -> Self {
        let flavour =
            *random.one(&[Flavour::Mixed, Flavour::Mixed, Flavour::Tight, Flavour::Spread]);
        let clusters: Vec<ClusterId> = ["a", "b", "c"][..=random.below(3) as usize]
            .iter()
            .map(|name| (*name).into())
            .collect();
        let kinds = 1 + random.below(4);
        let mut builder = Self {
            random,
            flavour,
            clusters,
            classes: Vec::new(),
            needs: Vec::new(),
            stamps: Vec::new(),
            snapshot: Vec::new(),
        };
        builder.classes = (0..kinds).map(|_| builder.class()).collect();
        let number = needs / 2 + builder.random.below(needs / 2 + 1);
        let templates: Vec<wire::CapacityNeed> =
            (0..1 + builder.random.below(4)).map(|_| builder.need()).collect();
        let tiers = builder.tiers();
        let units: Vec<BTreeMap<String, i64>> =
            (0..1 + builder.random.below(3)).map(|_| builder.unit()).collect();
        let sent =
            (0..number).filter_map(|_| builder.sent_need(&templates, &tiers, &units)).collect();
        builder.needs = merge(sent);
        builder.stamps = builder.needs.iter().map(Stamp::of).collect();
        for need in builder.needs.clone() {
            let folded = Need {
                profile: Arc::new(folded_profile(&need.profile)),
                group: folded_group(&need.aggregate).into(),
                ..need.clone()
            };
            if folded.profile != need.profile {
                builder.stamps.push(Stamp::of(&folded));
            }
            if builder.random.chance(10) {
                let gone = Need { group: Group::from("gone"), ..need };
                builder.stamps.push(Stamp::of(&gone));
            }
        }
        builder
    }

    /// A kind of machine, as yet without id, state and domain.
    fn class(&mut self) -> wire::Machine {
        let random = &mut self.random;
        let mut resources = BTreeMap::new();
        resources.insert("cpu".to_owned(), random.one(&["2", "4", "4", "8", "3500m"]).to_string());
        if random.chance(85) {
            resources.insert("memory".to_owned(), random.one(&["2", "4", "8", "16"]).to_string());
        }
        if random.chance(25) {
            resources.insert(GPU.to_owned(), random.one(&["1", "4"]).to_string());
        }
        if random.chance(10) {
            resources.insert("hugepages-2Mi".to_owned(), "4".to_owned());
        }
        let mut allocatable = BTreeMap::new();
        if random.chance(15) {
            allocatable.clone_from(&resources);
            allocatable.insert("cpu".to_owned(), random.one(&["1", "3", "10"]).to_string());
        }
        let types = [CapacityType::Unspecified, CapacityType::BareMetal, CapacityType::Reserved];
        let capacity_type = match random.below(3) {
            0 => *random.one(&types),
            1 => CapacityType::OnDemand,
            _ => CapacityType::Spot,
        };
        wire::Machine {
            instance_type: random.one(&["t0", "t1", "t2", ""]).to_string(),
            capacity_type: capacity_type.to_wire(),
            price_per_hour: *random.one(&[0.0, 0.0, 0.1, 0.2, 0.25, 1.0, 3.0]),
            interruption_probability: *random.one(&[0.0, 0.0, 0.0, 0.05, 0.5]),
            resources: Some(wire::Resources { resources }),
            allocatable: Some(wire::Resources { resources: allocatable }),
            ..wire::Machine::default()
        }
    }

    /// Few precedences, so that tiers have several needs.
    fn tiers(&mut self) -> Vec<(i32, i32, i32)> {
        let random = &mut self.random;
        (0..1 + random.below(4) + u64::from(self.flavour == Flavour::Tight))
            .map(|_| {
                let buckets = [1, 1, 3, 6, 27];
                (
                    *random.one(&[0, 100, 1000, 1000, 200_000, 700_000, 1_000_000, -5]),
                    *random.one(&buckets),
                    *random.one(&buckets),
                )
            })
            .collect()
    }

    /// What must stay together.
    fn unit(&mut self) -> BTreeMap<String, i64> {
        let random = &mut self.random;
        let cpu = *random.one(&[500, 1000, 1000, 2000, 3000]);
        let mut unit = BTreeMap::from([("cpu".to_owned(), cpu)]);
        if random.chance(35) {
            unit.insert("memory".to_owned(), *random.one(&[1000, 2000, 4000]));
        }
        if random.chance(8) {
            unit.insert(GPU.to_owned(), 1000);
        }
        unit
    }

    /// What needs of one kind ask for.
    fn need(&mut self) -> wire::CapacityNeed {
        let random = &mut self.random;
        let mut requirements = Vec::new();
        let mut require = |key: &str, operator: Operator, values: &[&str]| {
            requirements.push(wire::NodeSelectorRequirement {
                key: key.to_owned(),
                operator: operator.to_wire(),
                values: values.iter().map(|value| (*value).to_owned()).collect(),
            });
        };
        if random.chance(12) {
            require(TYPE, Operator::In, &["t0", "t1"]);
        }
        match random.below(30) {
            0 => require(ZONE, Operator::NotIn, &["z0"]),
            1 => require("rack", Operator::Exists, &[]),
            2 => require("rack", Operator::DoesNotExist, &[]),
            3 => require(ZONE, Operator::In, &["z0", "z1"]),
            4 => require(ZONE, Operator::Unspecified, &[]),
            _ => {}
        }
        let same = random.chance(if self.flavour == Flavour::Spread { 15 } else { 45 });
        if same {
            match random.below(6) {
                0 => require(ZONE, Operator::Same, &[]),
                1 => require("rack", Operator::Same, &["r0", "r1"]),
                2 => {
                    require("rack", Operator::Same, &[]);
                    require(ZONE, Operator::Same, &[]);
                }
                _ => require("rack", Operator::Same, &[]),
            }
        }
        let mut spread = Vec::new();
        let often = if self.flavour == Flavour::Spread { 80 } else { 30 };
        if random.chance(if same { 10 } else { often }) {
            let when = *random.one(&[
                WhenUnsatisfiable::DoNotSchedule,
                WhenUnsatisfiable::DoNotSchedule,
                WhenUnsatisfiable::ScheduleAnyway,
            ]);
            spread.push(wire::TopologySpread {
                topology_key: random.one(&[ZONE, "rack"]).to_string(),
                max_skew: *random.one(&[0, 1, 1, 2]),
                when_unsatisfiable: when.to_wire(),
            });
        }
        wire::CapacityNeed { requirements, spread, ..wire::CapacityNeed::default() }
    }

    fn sent_need(
        &mut self,
        templates: &[wire::CapacityNeed],
        tiers: &[(i32, i32, i32)],
        units: &[BTreeMap<String, i64>],
    ) -> Option<Need> {
        let random = &mut self.random;
        let (priority, interruption, reclamation) = *random.one(tiers);
        let template = random.one(templates).clone();
        let same = template.requirements.iter().any(|r| r.operator == Operator::Same.to_wire());
        let mut unit = random.one(units).clone();
        // None, fewer than one unit, one, several; often the same, so that gangs
        // fold together.
        let aggregate: BTreeMap<String, i64> = match random.below(24) {
            0 => BTreeMap::new(),
            1 => unit.iter().map(|(name, milli)| (name.clone(), milli / 2)).collect(),
            2 => BTreeMap::from([("cpu".to_owned(), 4000)]),
            number => {
                let units = match number {
                    3..8 => 1,
                    8..16 => 2,
                    16..20 => 3,
                    _ => 1 + random.below(8) as i64,
                };
                let units = if self.flavour == Flavour::Tight { 2 * units } else { units };
                unit.iter().map(|(name, milli)| (name.clone(), milli * units)).collect()
            }
        };
        let mut aggregate = aggregate;
        match random.below(20) {
            0 | 1 => unit.clear(),
            // One request is larger than all the others: than some machines, than all.
            number @ 2..5 => {
                let name = *random.one(&["cpu", "cpu", "memory", GPU]);
                let large = if number == 2 { 500_000 } else { *random.one(&[3800, 5000, 9000]) };
                *aggregate.entry(name.to_owned()).or_default() += large;
                unit.insert(name.to_owned(), large);
            }
            _ => {}
        }
        let text = |amounts: BTreeMap<String, i64>| {
            amounts.into_iter().map(|(name, milli)| (name, format!("{milli}m"))).collect()
        };
        let group = match (same, random.below(10)) {
            (true, number) => format!("g{}", number % 5),
            (false, 0) => "g0".to_owned(),
            (false, _) => String::new(),
        };
        let message = wire::CapacityNeed {
            priority,
            interruption_penalty_bucket: interruption,
            reclamation_penalty_bucket: reclamation,
            aggregate_resources: text(aggregate),
            min_unit: text(unit),
            group,
            ..template
        };
        let arrival = *random.one(&[0, 1, 1, 2, 3, 4, 5, 6]);
        let cluster = random.one(&self.clusters).clone();
        demand::need(&cluster, arrival, message).ok()
    }

    fn machines(&mut self, most: u64) {
        for number in 0..most / 2 + self.random.below(most / 2 + 1) {
            let tracked = self.machine(number);
            self.snapshot.extend(tracked);
        }
    }

    fn machine(&mut self, number: u64) -> Option<Tracked> {
        let random = &mut self.random;
        let (from, to) = match self.flavour {
            Flavour::Mixed => (0, 100),
            Flavour::Tight => (44, 90),
            Flavour::Spread => (0, 70),
        };
        let state = match from + random.below(to - from) {
            0..20 => MachineState::Idle,
            20..35 => MachineState::Speculative,
            35..45 => MachineState::Creating,
            45..55 => MachineState::Configuring,
            55..87 => MachineState::Configured,
            87..96 => MachineState::Draining,
            96..98 => MachineState::Deleting,
            _ => MachineState::Failed,
        };
        let mut message = random.one(&self.classes).clone();
        message.id = format!("m{:02}", (number * 7) % 61);
        message.state = state.to_wire();
        message.zone = random.one(&["z0", "z0", "z1", "z2", ""]).to_string();
        if random.chance(85) {
            let rack = random.one(&["r0", "r0", "r1", "r2"]);
            message.labels.insert("rack".to_owned(), rack.to_string());
        }
        if !matches!(state, MachineState::Speculative | MachineState::Creating) {
            let reference = message.id.clone();
            message.host = Some(wire::HostRef { provider: "p".to_owned(), r#ref: reference });
        }
        let bound = matches!(
            state,
            MachineState::Configured | MachineState::Configuring | MachineState::Draining
        );
        if bound {
            message.cluster = random.one(&self.clusters).to_string();
        }
        if state == MachineState::Failed {
            message.last_error = "broken".to_owned();
        }
        let mut machine = inventory::machine(message).ok()?.machine;
        if bound || state == MachineState::Creating {
            machine.stamp = self.stamp(&mut machine.cluster).map(Arc::new);
        }
        let random = &mut self.random;
        let times = [NOW, NOW - 1, NOW - 59, NOW - 60, NOW - 600, NOW - 599, NOW - 5000, NOW + 5];
        let idle_since = (state == MachineState::Idle && random.chance(80))
            .then(|| seconds(*random.one(&times)));
        let drain = if state == MachineState::Draining && random.chance(80) {
            Some(self.drain())
        } else {
            None
        };
        Some(Tracked { machine, idle_since, drain })
    }

    /// Mostly of a need that is there; then the binding mostly is its cluster's.
    fn stamp(&mut self, cluster: &mut Option<ClusterId>) -> Option<Stamp> {
        let random = &mut self.random;
        if self.stamps.is_empty() || random.chance(20) {
            return None;
        }
        if self.flavour == Flavour::Tight && random.chance(40) {
            // Of something unimportant that is gone: whoever is here claims it, or
            // it is excess.
            let priority = Some(*random.one(&[-100, 0, 50, 2000]));
            return Some(Stamp { priority, interruption: 1.0, ..Stamp::default() });
        }
        let mut stamp = random.one(&self.stamps).clone();
        if random.chance(80) && cluster.is_some() {
            cluster.clone_from(&stamp.for_cluster);
        }
        match random.below(12) {
            0 => stamp.priority = None,
            1 => stamp.fingerprint = "".into(),
            2 => stamp.for_cluster = None,
            3 => stamp.reclamation = *random.one(&[0.0, 2.0, f64::INFINITY]),
            4 => stamp.priority = Some(*random.one(&[-10, 50, 100, 500_000])),
            _ => {}
        }
        Some(stamp)
    }

    fn drain(&mut self) -> Drain {
        let random = &mut self.random;
        let deadlines = [NOW - 5, NOW + 5, NOW + 10, NOW + 60, NOW + 120, NOW + 600, NOW + 601];
        let deadline = random.chance(80).then(|| seconds(*random.one(&deadlines)));
        let preemptor = if self.stamps.is_empty() || random.chance(40) {
            None
        } else {
            Some(random.one(&self.stamps).clone())
        };
        Drain {
            deadline,
            preemptor_priority: preemptor.as_ref().and_then(|stamp| stamp.priority),
            preemptor: preemptor.and_then(|stamp| key(&stamp)),
        }
    }

    /// An action already under way for a machine.
    fn pending(&mut self, tracked: &Tracked) -> Option<Action> {
        let random = &mut self.random;
        let cluster = random.one(&self.clusters).clone();
        let stamp = random.one(&self.stamps).clone();
        let grace = Duration::from_secs(*random.one(&[10, 30, 120, 600]));
        let acquisition = Acquisition {
            cluster: stamp.for_cluster.clone().unwrap_or_else(|| cluster.clone()),
            stamp: Arc::new(stamp.clone()),
            need: NeedIdx::default(),
        };
        let kind = match (tracked.machine.state, random.below(3)) {
            (MachineState::Idle, 0) => ActionKind::Delete,
            (MachineState::Idle | MachineState::Configuring, _) => {
                ActionKind::Bootstrap(acquisition)
            }
            (MachineState::Speculative | MachineState::Creating, _) => {
                ActionKind::Provision(acquisition)
            }
            (MachineState::Configured, 0) => ActionKind::Reclaim { cluster, grace },
            (MachineState::Configured, _) => ActionKind::Preempt {
                cluster,
                grace,
                preemptor_priority: stamp.priority?,
                preemptor: key(&stamp)?,
                need: NeedIdx::default(),
            },
            _ => return None,
        };
        let machine = tracked.machine.id.clone();
        Some(Action { machine, kind, cost: 0.0, runner_up_cost: None, domain_rule: 0 })
    }

    fn rest(mut self) -> CycleInput {
        let mut input = CycleInput { now: seconds(NOW), ..CycleInput::default() };
        let busy = self.random.chance(40);
        for tracked in self.snapshot.clone() {
            if busy && !self.stamps.is_empty() && self.random.chance(15) {
                input.pending.extend(self.pending(&tracked));
            }
        }
        let Self { mut random, clusters, needs, snapshot, .. } = self;
        input.ready = clusters.into_iter().filter(|_| !random.chance(12)).collect();
        let (ages, held, kept) = (random.chance(50), random.chance(30), random.chance(30));
        for need in &needs {
            if ages && random.chance(60) {
                let key = GangKey {
                    cluster: need.cluster.clone(),
                    group: need.group.clone(),
                    fingerprint: need.profile.fingerprint().clone(),
                };
                input.gang_ages.insert(key, *random.one(&[1, 7, 8, 9, 31, 32, 33, 63, 64]));
            }
            if held && random.chance(40) {
                let why = *random.one(&[NoAcquire::NoSession, NoAcquire::BootstrapRefused]);
                input.no_acquire.insert(NeedKey::of(need), why);
            }
        }
        for tracked in &snapshot {
            if kept && random.chance(25) {
                let why = *random.one(&[HeldBack::ProviderFailing, HeldBack::Quota]);
                input.held_back.insert(tracked.machine.id.clone(), why);
            }
        }
        if random.chance(15) {
            input.phase2 = Phase2Options {
                weight_priority: *random.one(&[0.0, 1.0]),
                weight_drain: *random.one(&[0.0, 0.1]),
                weight_interruption: *random.one(&[0.0, 0.1, 1000.0]),
                weight_reclamation: *random.one(&[0.0, 0.1, 1000.0]),
                estimated_drain_seconds: *random.one(&[0.0, 30.0]),
            };
            input.release = ReleasePolicy {
                on_demand: Duration::from_secs(*random.one(&[0, 600])),
                spot: Duration::from_secs(*random.one(&[0, 60])),
            };
        }
        input.snapshot = snapshot;
        input.demand = needs;
        input
    }
}

fn seconds(seconds: i64) -> Time {
    Time(seconds * 1_000_000_000)
}

fn key(stamp: &Stamp) -> Option<NeedKey> {
    Some(NeedKey {
        cluster: stamp.for_cluster.clone()?,
        fingerprint: stamp.fingerprint.clone(),
        group: stamp.group.clone(),
    })
}
