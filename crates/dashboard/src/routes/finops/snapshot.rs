//! Machines, demand and money by penalty, as metrics have them.

use std::{collections::BTreeMap, time::Duration};

use axum::{extract::State, response::IntoResponse};
use jiff::Timestamp;
use serde::Serialize;

use super::{
    super::{
        Shared,
        numbers::{Age, By, ByTwo, age, by, by_two, sum},
    },
    flag::{
        BESIDE_RESERVED, CHEAPER, Flag, PAST_HOLD, Unchecked, is_rising, pinned_on_spot, rising,
    },
};
use crate::{
    api::{Asked, Refusal},
    source::metrics::{How, Query, Sample, Span, Track, names},
    view::{CAPACITY_TYPES, buckets, finite},
};

const BUCKET: &str = "interruption_penalty_bucket";

/// Seconds over which rates are compared.
const COMPARED: u32 = 900;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Snapshot<'a> {
    totals: Totals,
    buckets: &'a [String],
    capacity_types: [&'static str; 5],
    configured: Option<Matrix>,
    machines: Option<Matrix>,
    machines_by_type_and_state: ByTwo<'a>,
    demand_by_bucket: Option<Vec<Option<f64>>>,
    supply_by_bucket: Option<Vec<Option<f64>>>,
    dollars_per_hour: Option<ByTwo<'a>>,
    action_rates_per_sec: By<'a>,
    red_flags: Vec<Flag>,
    unchecked: Vec<Unchecked>,
    #[serde(flatten)]
    age: Age,
}

type Matrix = Vec<Vec<Option<f64>>>;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Totals {
    machines: Option<f64>,
    configured: Option<f64>,
    idle: Option<f64>,
    idle_share: Option<f64>,
    dollars_per_hour: Option<f64>,
    demand_rows: Option<f64>,
}

/// No machine, which is known.
const NONE: Option<f64> = Some(0.0);

/// Numbers by capacity type and bucket. Where the metric is known, a combination that it does not
/// show has no machine.
fn matrix(samples: &[Sample], buckets: &[String]) -> Option<Matrix> {
    let known = by_two(samples);
    (!samples.is_empty()).then(|| {
        let row = |kind: &&str| {
            let of_kind = known.get(kind);
            let cell = |bucket: &String| of_kind.and_then(|known| known.get(bucket.as_str()));
            buckets.iter().map(|bucket| cell(bucket).copied().unwrap_or(NONE)).collect()
        };
        CAPACITY_TYPES.iter().map(row).collect()
    })
}

fn by_bucket(samples: &[Sample], buckets: &[String]) -> Option<Vec<Option<f64>>> {
    let known = by(samples);
    let cell = |bucket: &String| known.get(bucket.as_str()).copied().unwrap_or(NONE);
    (!samples.is_empty()).then(|| buckets.iter().map(cell).collect())
}

/// A sum of which a part is unknown is unknown.
fn columns(matrix: &Matrix) -> Vec<Option<f64>> {
    let width = matrix.first().map_or(0, Vec::len);
    (0..width).map(|at| matrix.iter().filter_map(|row| row.get(at).copied()).sum()).collect()
}

/// Where does the money go?
pub(crate) async fn snapshot(State(app): State<Shared>) -> Result<impl IntoResponse, Refusal> {
    let metrics = &app.sources.metrics;
    let ask = |metric, how, by| metrics.instant(Query::new(metric, how, by));
    let of_state = |state| {
        let query = Query::new(names::MACHINES, How::Sum, &["capacity_type", BUCKET]);
        metrics.instant(query.matching("state", state))
    };
    let pinned = Query::new(names::MACHINES, How::Sum, &["pod"])
        .matching("capacity_type", "spot")
        .matching(BUCKET, "pinned");
    let quarter = Duration::from_secs(COMPARED.into());
    let windows = Span::until(Timestamp::now(), quarter, quarter);
    let kinds = Query::new(names::ACTIONS, How::Rate(COMPARED), &["pod", "kind"]);
    let (configured, machines, states, demand, cost, actions, pinned, rates, age) = tokio::join!(
        of_state("configured"),
        ask(names::MACHINES, How::Sum, &["capacity_type", BUCKET]),
        ask(names::MACHINES, How::Sum, &["capacity_type", "state"]),
        ask(names::DEMAND, How::Sum, &[BUCKET]),
        ask(names::COST, How::Sum, &["capacity_type", "state"]),
        ask(names::ACTIONS, How::Rate(300), &["kind"]),
        metrics.instant(pinned),
        metrics.range(kinds, windows),
        age(&app),
    );
    let mut asked = Asked::new();
    let age = Age::new(&mut asked, age)?;
    let (configured, machines) = (asked.take(configured)?, asked.take(machines)?);
    let (states, demand) = (asked.take(states)?, asked.take(demand)?);
    let (cost, actions) = (asked.take(cost)?, asked.take(actions)?);
    let (pinned, rates) = (asked.take(pinned)?, asked.take(rates)?);
    let buckets = buckets();
    // No machine is configured where machines are known and none of them is.
    let known = !machines.value.is_empty();
    let configured_matrix = matrix(&configured.value, &buckets)
        .or_else(|| known.then(|| vec![vec![NONE; buckets.len()]; CAPACITY_TYPES.len()]));
    let number_of = |wanted: &dyn Fn(&str) -> bool| {
        let of_state =
            states.value.iter().filter(|one| one.labels.get(1).is_some_and(|s| s == state));
        known.then(|| of_state.map(|one| finite(one.value)).sum::<Option<f64>>()).flatten()
    };
    let in_state = |state: &str| number_of(&|other| other == state);
    let total = sum(&states.value);
    // What is only on offer has no host, and is not idle either.
    let hosts = number_of(&|state| state != "speculative").filter(|hosts| *hosts > 0.0);
    let idle = in_state("idle");
    let mut red_flags = Vec::new();
    red_flags.extend(pinned_flag(&pinned.value));
    red_flags.extend(rising_flag(&rates.value));
    let per_shard = |id| Unchecked { id, why: "looked for one shard at a time".to_owned() };
    let mut unchecked: Vec<Unchecked> =
        [PAST_HOLD, BESIDE_RESERVED, CHEAPER].into_iter().map(per_shard).collect();
    if !known {
        let why = "no shard's machines are in the metrics".to_owned();
        unchecked.push(Unchecked { id: super::flag::PINNED_ON_SPOT, why });
    }
    let body = Snapshot {
        totals: Totals {
            machines: total,
            configured: in_state("configured"),
            idle,
            idle_share: idle.zip(hosts).map(|(idle, hosts)| idle / hosts),
            dollars_per_hour: sum(&cost.value),
            demand_rows: sum(&demand.value),
        },
        capacity_types: CAPACITY_TYPES,
        supply_by_bucket: configured_matrix.as_ref().map(columns),
        configured: configured_matrix,
        machines: matrix(&machines.value, &buckets),
        machines_by_type_and_state: by_two(&states.value),
        demand_by_bucket: by_bucket(&demand.value, &buckets),
        buckets: &buckets,
        dollars_per_hour: (!cost.value.is_empty()).then(|| by_two(&cost.value)),
        action_rates_per_sec: by(&actions.value),
        red_flags,
        unchecked,
        age,
    };
    Ok(asked.answer(body).into_response())
}

fn pinned_flag(samples: &[Sample]) -> Option<Flag> {
    let with = || samples.iter().filter(|sample| sample.value > 0.0);
    let machines: f64 = with().map(|sample| sample.value).sum();
    let pods = with().filter_map(|sample| sample.labels.first().cloned()).collect();
    (machines > 0.0).then(|| pinned_on_spot(machines, pods))
}

fn rising_flag(tracks: &[Track]) -> Option<Flag> {
    let mut kinds: BTreeMap<(&str, &str), [Option<f64>; 2]> = BTreeMap::new();
    for track in tracks {
        if let ([pod, kind], [before, now]) = (track.labels.as_slice(), track.values.as_slice()) {
            kinds.insert((pod, kind), [before.and_then(finite), now.and_then(finite)]);
        }
    }
    let of = |pod, kind| kinds.get(&(pod, kind)).copied().unwrap_or_default();
    let mut pods: Vec<&str> = kinds.keys().map(|(pod, _)| *pod).collect();
    pods.dedup();
    pods.retain(|pod| is_rising(of(pod, "Provision"), of(pod, "Delete")));
    let total = |kind| pods.iter().filter_map(|pod| of(pod, kind)[1]).sum();
    let (created, deleted) = (total("Provision"), total("Delete"));
    let names = pods.iter().map(|&pod| pod.to_owned()).collect();
    (!pods.is_empty()).then(|| rising(names, created, deleted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(labels: &[&str], value: f64) -> Sample {
        Sample { labels: labels.iter().map(|&label| label.to_owned()).collect(), value }
    }

    #[test]
    fn matrices_are_unknown_or_whole() {
        let buckets = buckets();
        assert_eq!(matrix(&[], &buckets), None);
        let known = matrix(&[sample(&["spot", "0.5"], 3.0)], &buckets).unwrap();
        assert_eq!((known.len(), known[3][2], known[0][2]), (5, Some(3.0), NONE));
        assert_eq!(columns(&known)[2], Some(3.0));
        assert_eq!(by_bucket(&[], &buckets), None);
        let partly = [sample(&["spot", "0.5"], 3.0), sample(&["reserved", "0.5"], f64::NAN)];
        let partly = matrix(&partly, &buckets).unwrap();
        assert_eq!((partly[3][2], partly[1][2], columns(&partly)[2]), (Some(3.0), None, None));
    }

    #[test]
    fn flags_name_their_shards() {
        let flag = pinned_flag(&[sample(&["a"], 0.0), sample(&["b"], 2.0)]).unwrap();
        assert_eq!((flag.value, flag.r#where), (2.0, vec!["b".to_owned()]));
        assert_eq!(pinned_flag(&[sample(&["a"], 0.0)]), None);
        let track = |pod: &str, kind: &str, now| Track {
            labels: vec![pod.to_owned(), kind.to_owned()],
            values: vec![Some(0.1), Some(now)],
        };
        let tracks = [
            track("a", "Delete", 1.0),
            track("a", "Provision", 1.0),
            track("b", "Delete", 0.1),
            track("b", "Provision", 1.0),
        ];
        assert_eq!(rising_flag(&tracks).unwrap().r#where, ["a"]);
        assert_eq!(rising_flag(&tracks[2..]), None);
    }
}
