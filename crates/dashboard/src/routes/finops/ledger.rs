//! What the machines of one shard cost, for whom, and what is wrong with that. Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bigfleet_model::cost::effective_cost;
use bigfleet_wire::v1alpha1::{CapacityType, MachineState, MachineView};
use serde::Serialize;

use super::flag::{BESIDE_RESERVED, CHEAPER, Flag, PAST_HOLD};
use crate::{
    Holds,
    view::{capacity_type, priority_class, state},
};

impl Holds {
    /// How long an idle machine is kept; others are never given back.
    fn of(self, kind: CapacityType) -> Option<Duration> {
        let hold = match kind {
            CapacityType::OnDemand => self.on_demand,
            CapacityType::Spot => self.spot,
            _ => Duration::ZERO,
        };
        Some(hold).filter(|hold| !hold.is_zero())
    }
}

/// As a sentence says it.
fn in_words(hold: Duration) -> String {
    if hold.is_zero() { "for ever".to_owned() } else { format!("{} s", hold.as_secs_f64()) }
}

/// Machines that could stand in for each other, as far as a view can tell.
type Shape = (String, String);

/// One line of the bill.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Line {
    pub(crate) cluster: String,
    pub(crate) priority_class: &'static str,
    pub(crate) capacity_type: &'static str,
    pub(crate) state: &'static str,
    pub(crate) machines: usize,
    pub(crate) dollars_per_hour: f64,
}

/// Machines taken in one by one.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    holds: Holds,
    lines: BTreeMap<(String, &'static str, &'static str, &'static str), (usize, f64)>,
    past_hold: Vec<f64>,
    idle_reserved: BTreeMap<Shape, usize>,
    /// Free machines: price and probability.
    free: BTreeMap<Shape, Vec<(f64, f64)>>,
    /// Machines in use, by cluster.
    used: BTreeMap<String, Vec<Used>>,
}

/// A machine in use: what it costs to whom.
#[derive(Debug)]
struct Used {
    shape: Shape,
    on_demand: bool,
    cost: f64,
    penalty: f64,
}

impl Ledger {
    /// Of a shard that keeps idle machines for so long.
    pub(super) fn new(holds: Holds) -> Self {
        Self { holds, ..Self::default() }
    }

    /// One more machine.
    pub(super) fn add(&mut self, view: &MachineView, now_unix_nanos: i64) {
        let Some(machine) = &view.machine else { return };
        let (kind, at) = (machine.capacity_type(), machine.state());
        let shape = (machine.instance_type.clone(), machine.zone.clone());
        let bound = !machine.cluster.is_empty();
        let class = if bound { priority_class(view.assigned_priority) } else { "" };
        let key = (
            machine.cluster.clone(),
            class,
            capacity_type(machine.capacity_type),
            state(machine.state),
        );
        let line = self.lines.entry(key).or_default();
        line.0 += 1;
        if machine.host.is_some() {
            line.1 += machine.price_per_hour;
        }
        let free = view.claimed_by_fingerprint.is_empty() && view.in_flight.is_empty() && !bound;
        match at {
            MachineState::Idle if free => {
                let held = now_unix_nanos.saturating_sub(view.since_unix_nanos);
                let held = Duration::from_nanos(u64::try_from(held).unwrap_or(0));
                let known = view.since_unix_nanos > 0;
                if known && self.holds.of(kind).is_some_and(|hold| held > hold.saturating_mul(2)) {
                    self.past_hold.push(machine.price_per_hour);
                }
                if kind == CapacityType::Reserved {
                    *self.idle_reserved.entry(shape.clone()).or_default() += 1;
                }
                self.offer(shape, machine.price_per_hour, machine.interruption_probability);
            }
            MachineState::Speculative if free => {
                self.offer(shape, machine.price_per_hour, machine.interruption_probability);
            }
            MachineState::Configured => {
                let penalty = view.assigned_interruption_penalty_dollars.max(0.0);
                let cost = effective_cost(
                    machine.price_per_hour,
                    machine.interruption_probability,
                    penalty,
                );
                let on_demand = kind == CapacityType::OnDemand;
                let of_cluster = self.used.entry(machine.cluster.clone()).or_default();
                of_cluster.push(Used { shape, on_demand, cost, penalty });
            }
            _ => {}
        }
    }

    fn offer(&mut self, shape: Shape, price: f64, probability: f64) {
        let offers = self.free.entry(shape).or_default();
        if !offers.contains(&(price, probability)) {
            offers.push((price, probability));
        }
    }

    /// The bill, by cluster, class, type and state.
    pub(super) fn lines(&self) -> Vec<Line> {
        let line = |(key, sums): (&(String, _, _, _), &(usize, f64))| Line {
            cluster: key.0.clone(),
            priority_class: key.1,
            capacity_type: key.2,
            state: key.3,
            machines: sums.0,
            dollars_per_hour: sums.1,
        };
        self.lines.iter().map(line).collect()
    }

    /// What is wrong with it, as far as it is that of clusters that are seen and of nobody.
    pub(super) fn flags(&self, shard: &str, sees: impl Fn(&str) -> bool) -> Vec<Flag> {
        let at = || vec![shard.to_owned()];
        let mut flags = Vec::new();
        if !self.past_hold.is_empty() {
            let (count, dollars) = (self.past_hold.len(), self.past_hold.iter().sum::<f64>());
            flags.push(Flag {
                id: PAST_HOLD,
                severity: "warning",
                title: "Idle elastic machines past their hold",
                detail: format!(
                    "{count} idle machines are older than twice their hold time, if that is {} \
                     for on-demand and {} for spot ones, and cost ${dollars:.2} an hour",
                    in_words(self.holds.on_demand),
                    in_words(self.holds.spot)
                ),
                value: count as f64,
                r#where: at(),
                estimate: true,
            });
        }
        let used =
            || self.used.iter().filter(|(cluster, _)| sees(cluster)).flat_map(|(_, all)| all);
        flags.extend(self.beside_reserved(used(), at));
        flags.extend(self.cheaper(used(), at));
        flags
    }

    fn beside_reserved<'a>(
        &self,
        used: impl Iterator<Item = &'a Used>,
        at: impl FnOnce() -> Vec<String>,
    ) -> Option<Flag> {
        let mut on_demand: BTreeMap<&Shape, usize> = BTreeMap::new();
        for used in used.filter(|used| used.on_demand) {
            *on_demand.entry(&used.shape).or_default() += 1;
        }
        let both = on_demand
            .into_iter()
            .filter_map(|(shape, used)| Some((shape, used.min(*self.idle_reserved.get(shape)?))));
        let both: Vec<(&Shape, usize)> = both.collect();
        let machines: usize = both.iter().map(|(_, count)| count).sum();
        let types: BTreeSet<&str> = both.iter().map(|(shape, _)| shape.0.as_str()).collect();
        let types: Vec<&str> = types.into_iter().collect();
        (machines > 0).then(|| Flag {
            id: BESIDE_RESERVED,
            severity: "warning",
            title: "On-demand in use beside idle reserved machines",
            detail: format!(
                "{machines} on-demand machines are in use while reserved ones of the same type and \
                 zone are idle: {}",
                types.join(", ")
            ),
            value: machines as f64,
            r#where: at(),
            estimate: true,
        })
    }

    /// Buckets that pay a fifth more than the cheapest free machine of the same type and zone would
    /// cost them.
    fn cheaper<'a>(
        &self,
        used: impl Iterator<Item = &'a Used>,
        at: impl FnOnce() -> Vec<String>,
    ) -> Option<Flag> {
        let mut by_bucket: BTreeMap<String, (f64, f64)> = BTreeMap::new();
        for Used { shape, cost, penalty, .. } in used {
            let offers = self.free.get(shape).into_iter().flatten();
            let costs = offers.map(|(price, chance)| effective_cost(*price, *chance, *penalty));
            let Some(best) = costs.reduce(f64::min).filter(|best| best.is_finite()) else {
                continue;
            };
            if cost.is_finite() {
                let bucket = bigfleet_model::PenaltyBucket::from_dollars(*penalty).to_string();
                let sums = by_bucket.entry(bucket).or_default();
                sums.0 += cost;
                sums.1 += best.min(*cost);
            }
        }
        by_bucket.retain(|_, (paid, best)| *paid > 1.2 * *best);
        let surplus: f64 = by_bucket.values().map(|(paid, best)| paid - best).sum();
        let buckets: Vec<&str> = by_bucket.keys().map(String::as_str).collect();
        (!buckets.is_empty()).then(|| Flag {
            id: CHEAPER,
            severity: "warning",
            title: "Cheaper machines are free",
            detail: format!(
                "work of penalty {} pays ${surplus:.2} an hour more, in effective cost, than the \
                 cheapest free machines of the same type and zone would",
                buckets.join(", ")
            ),
            value: surplus,
            r#where: at(),
            estimate: true,
        })
    }
}

#[cfg(test)]
mod tests {
    use bigfleet_wire::v1alpha1::{HostRef, Machine};

    use super::*;

    const NOW: i64 = 10_000_000_000_000;

    fn machine(state: MachineState, kind: CapacityType, price: f64) -> MachineView {
        MachineView {
            machine: Some(Machine {
                state: state.into(),
                capacity_type: kind.into(),
                price_per_hour: price,
                instance_type: "t".to_owned(),
                zone: "z".to_owned(),
                host: (state != MachineState::Speculative).then(HostRef::default),
                cluster: if state == MachineState::Configured { "c" } else { "" }.to_owned(),
                ..Machine::default()
            }),
            since_unix_nanos: NOW,
            assigned_priority: 1_000,
            ..MachineView::default()
        }
    }

    fn ids(machines: &[MachineView]) -> Vec<&'static str> {
        let mut ledger = Ledger::default();
        machines.iter().for_each(|view| ledger.add(view, NOW));
        ledger.flags("s", |_| true).iter().map(|flag| flag.id).collect()
    }

    #[test]
    fn a_bill_counts_hosts_only() {
        let mut ledger = Ledger::default();
        for state in [MachineState::Configured, MachineState::Speculative] {
            ledger.add(&machine(state, CapacityType::Spot, 0.5), NOW);
            ledger.add(&machine(state, CapacityType::Spot, 0.5), NOW);
        }
        let lines = ledger.lines();
        assert_eq!((lines.len(), lines[0].dollars_per_hour, lines[0].machines), (2, 0.0, 2));
        assert_eq!((lines[1].cluster.as_str(), lines[1].priority_class), ("c", "service"));
        assert_eq!(lines[1].dollars_per_hour, 1.0);
    }

    #[test]
    fn idle_machines_are_flagged_past_twice_their_hold() {
        let idle = |kind, seconds: i64| MachineView {
            since_unix_nanos: NOW - seconds * 1_000_000_000,
            ..machine(MachineState::Idle, kind, 1.0)
        };
        assert_eq!(ids(&[idle(CapacityType::Spot, 121)]), [PAST_HOLD]);
        assert!(ids(&[idle(CapacityType::Spot, 120)]).is_empty());
        assert!(ids(&[idle(CapacityType::OnDemand, 1_200)]).is_empty());
        assert!(ids(&[idle(CapacityType::Reserved, 100_000)]).is_empty());
        let mut ledger = Ledger::default();
        ledger.add(&idle(CapacityType::Spot, 121), NOW);
        let flag = &ledger.flags("s", |_| true)[0];
        assert!(flag.estimate, "the holds are assumed");
        assert!(flag.detail.contains("600 s for on-demand and 60 s for spot"), "{}", flag.detail);
        // Whoever gives shards other holds says so.
        let holds = Holds { on_demand: Duration::from_secs(2), spot: Duration::ZERO };
        let mut ledger = Ledger::new(holds);
        for kind in [CapacityType::OnDemand, CapacityType::Spot] {
            ledger.add(&idle(kind, 5), NOW);
        }
        let flag = &ledger.flags("s", |_| true)[0];
        assert_eq!(flag.value, 1.0, "spot ones are kept for ever");
        assert!(flag.detail.contains("2 s for on-demand and for ever for spot"), "{}", flag.detail);
        let claimed =
            MachineView { claimed_by_fingerprint: "f".to_owned(), ..idle(CapacityType::Spot, 121) };
        assert!(ids(&[claimed]).is_empty());
        let unknown = MachineView { since_unix_nanos: 0, ..idle(CapacityType::Spot, 1) };
        assert!(ids(&[unknown]).is_empty(), "unknown age is no age");
    }

    #[test]
    fn reserved_machines_come_before_on_demand() {
        let used = machine(MachineState::Configured, CapacityType::OnDemand, 1.0);
        let idle = machine(MachineState::Idle, CapacityType::Reserved, 1.0);
        assert_eq!(ids(&[used.clone(), idle.clone()]), [BESIDE_RESERVED]);
        assert!(ids(std::slice::from_ref(&used)).is_empty());
        let mut elsewhere = idle;
        elsewhere.machine.as_mut().unwrap().zone = "y".to_owned();
        assert!(ids(&[used, elsewhere]).is_empty());
    }

    #[test]
    fn flags_are_about_what_is_seen() {
        let mut ledger = Ledger::default();
        for view in [
            machine(MachineState::Configured, CapacityType::OnDemand, 1.0),
            machine(MachineState::Idle, CapacityType::Reserved, 0.5),
        ] {
            ledger.add(&view, NOW);
        }
        let of = |cluster: &'static str| ledger.flags("s", move |seen| seen == cluster);
        assert_eq!(
            of("c").iter().map(|flag| flag.id).collect::<Vec<_>>(),
            [BESIDE_RESERVED, CHEAPER]
        );
        assert!(of("d").is_empty());
    }

    #[test]
    fn alternatives_are_compared_by_effective_cost() {
        let used = machine(MachineState::Configured, CapacityType::OnDemand, 1.0);
        let spot = machine(MachineState::Speculative, CapacityType::Spot, 0.5);
        assert_eq!(ids(&[used.clone(), spot.clone()]), [CHEAPER]);
        let mut risky = spot;
        risky.machine.as_mut().unwrap().interruption_probability = 0.5;
        let mut dear = used;
        dear.assigned_interruption_penalty_dollars = 8.0;
        assert!(ids(&[dear, risky]).is_empty());
    }
}
