//! What can be measured.

use super::{
    Args, across, assignment, bound, colocated, coordinator, field, fleet, gangs, gate,
    measure::{Measurement, Run},
    pods,
    quality::{self, Grade},
    sessions, shard_step, snapshot,
};
use crate::error::Error;

/// A scenario by its name.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) measure: Measure,
}

/// What a scenario gives.
#[derive(Clone, Copy)]
pub(super) enum Measure {
    /// Times, compared with a baseline.
    Timed(fn(&Run) -> Result<Vec<Measurement>, Error>),
    /// Figures with bars of their own.
    Graded(fn(&Run) -> Vec<Grade>),
    /// The same of a load that flags describe.
    Loaded(fn(&Run, &Args) -> Result<Vec<Grade>, Error>),
}

use Measure::{Graded, Loaded, Timed};

/// All of them, in the order in which `all` runs them.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "gate-need",
        about: "1,000 needs, one by one, through the demand gate",
        measure: Timed(gate::needs),
    },
    Scenario {
        name: "gate-rollup-25k",
        about: "a roll-up of 25,000 needs through the demand gate, in identity order",
        measure: Timed(gate::ordered_roll_up),
    },
    Scenario {
        name: "gate-rollup-25k-unordered",
        about: "the same in no order",
        measure: Timed(gate::unordered_roll_up),
    },
    Scenario {
        name: "gate-machines-100k",
        about: "100,000 machines through the inventory gate",
        measure: Timed(gate::machines),
    },
    Scenario {
        name: "realistic-50k",
        about: "50,000 needs of 50 clusters meet 60,000 idle machines",
        measure: Timed(assignment::realistic_50k),
    },
    Scenario {
        name: "realistic-50k-all-same",
        about: "the same, every need a gang of one",
        measure: Timed(assignment::realistic_50k_all_same),
    },
    Scenario {
        name: "late-5k",
        about: "160 large needs meet 5,000 bound machines and 13,000 more",
        measure: Timed(assignment::late_5k),
    },
    Scenario {
        name: "late-5k-unaggregated",
        about: "the same machines, 250,000 small needs",
        measure: Timed(assignment::late_5k_unaggregated),
    },
    Scenario {
        name: "same-pool-100k",
        about: "20,000 gangs of one choose among 100,000 idle machines",
        measure: Timed(assignment::same_pool_100k),
    },
    Scenario {
        name: "same-repeated",
        about: "50,000 gangs of one, machines for a fifth of them",
        measure: Timed(assignment::same_repeated),
    },
    Scenario {
        name: "colocated-5k",
        about: "2,540 gangs that fit a machine or do not, with folding and without",
        measure: Timed(colocated::colocated_5k),
    },
    Scenario {
        name: "phase2-inversions",
        about: "100 urgent needs take machines from 100,000",
        measure: Timed(bound::phase2_inversions),
    },
    Scenario {
        name: "phase3-high-demand",
        about: "500,000 bound machines, two thirds of them excess",
        measure: Timed(bound::phase3_high_demand),
    },
    Scenario {
        name: "phase3-high-demand-mixed",
        about: "the same, every cluster with machines of all types",
        measure: Timed(bound::phase3_high_demand_mixed),
    },
    Scenario {
        name: "phase3-keep-all",
        about: "450,000 bound machines, all of them wanted and more",
        measure: Timed(bound::phase3_keep_all),
    },
    Scenario {
        name: "cycle-steady-1k",
        about: "50,000 needs and 1,000 machines, then at rest",
        measure: Timed(assignment::cycle_steady_1k),
    },
    Scenario {
        name: "cycle-steady-10k",
        about: "the same with 10,000 machines",
        measure: Timed(assignment::cycle_steady_10k),
    },
    Scenario {
        name: "cycle-steady-50k",
        about: "the same with 50,000 machines",
        measure: Timed(assignment::cycle_steady_50k),
    },
    Scenario {
        name: "cycle-steady-100k",
        about: "the same with 100,000 machines",
        measure: Timed(assignment::cycle_steady_100k),
    },
    Scenario {
        name: "cycle-steady-500k",
        about: "the same with 500,000 machines",
        measure: Timed(assignment::cycle_steady_500k),
    },
    Scenario {
        name: "domain-totals",
        about: "one gang compares 30 racks of 12,000 machines for sale",
        measure: Timed(snapshot::domain_totals),
    },
    Scenario {
        name: "inventory-snapshot",
        about: "60,000 machines taken in from nothing, then one that changed",
        measure: Timed(snapshot::inventory_snapshot),
    },
    Scenario {
        name: "needs-snapshot",
        about: "50,000 gangs taken in from nothing, then a cluster that comes or goes",
        measure: Timed(snapshot::needs_snapshot),
    },
    Scenario {
        name: "fleet-500k",
        about: "200 clusters on 500,000 machines: cold, quiet, 10 % burst, 2 % churn a cycle",
        measure: Timed(fleet::fleet_500k),
    },
    Scenario {
        name: "gangs-776k",
        about: "776,000 needs, most of them gangs, and 550,000 machines",
        measure: Timed(gangs::gangs_776k),
    },
    Scenario {
        name: "preempt-storm",
        about: "5,000 needs evict from 500,000 machines of 20 priorities",
        measure: Timed(bound::preempt_storm),
    },
    Scenario {
        name: "field-5k",
        about: "the standard catalogue: 22,500 machine records, 2 % churn a minute",
        measure: Timed(field::field_5k),
    },
    Scenario {
        name: "field-50k",
        about: "the same with 225,000 records",
        measure: Timed(field::field_50k),
    },
    Scenario {
        name: "field-500k",
        about: "the same with 2,250,000 records",
        measure: Timed(field::field_500k),
    },
    Scenario {
        name: "shard-step",
        about: "a whole shard at 50 K, 100 K, 500 K machines: reconcile, decide, enqueue, publish",
        measure: Timed(shard_step::shard_step),
    },
    Scenario {
        name: "sessions",
        about: "thousands of operators over gRPC against a shard process, with bars",
        measure: Loaded(sessions::sessions),
    },
    Scenario {
        name: "pods",
        about: "10,000 pods become requests, a roll-up, needs and a decision",
        measure: Loaded(pods::pods),
    },
    Scenario {
        name: "rollup",
        about: "25,000 requests folded, and folded again after one changed",
        measure: Loaded(pods::rollup),
    },
    Scenario {
        name: "coordinator",
        about: "three replicas: commits beside raw fsyncs, 4,000 shards, 100,000 domains, with bars",
        measure: Loaded(coordinator::coordinator),
    },
    Scenario {
        name: "across",
        about: "100,000 domains of 200 shards, a lost zone, a pass over 400,000 shortfalls, with bars",
        measure: Loaded(across::across),
    },
    Scenario {
        name: "growth",
        about: "the field at constant change, machines doubled three times",
        measure: Timed(field::growth),
    },
    Scenario {
        name: "quality",
        about: "hourly cost against the optimum and first-fit-decreasing, with bars",
        measure: Graded(quality::grades),
    },
    Scenario {
        name: "scan",
        about: "a linear read of the records of fleet-500k, the unit of ratios",
        measure: Timed(fleet::scan),
    },
];

/// The scenarios of these names.
pub(super) fn choose(names: &[String]) -> Result<Vec<&'static Scenario>, Error> {
    if names == ["all"] {
        return Ok(SCENARIOS.iter().collect());
    }
    let find = |name: &String| {
        let found = SCENARIOS.iter().find(|scenario| scenario.name == name);
        found.ok_or_else(|| Error::UnknownScenario { name: name.clone() })
    };
    names.iter().map(find).collect()
}
