//! Machines, demand and money by penalty, as metrics have them.

use std::{collections::BTreeMap, time::Duration};

use axum::{extract::State, response::IntoResponse};
use jiff::Timestamp;
use serde::Serialize;

use super::{
    super::{
        Shared,
        numbers::{Age, By, ByTwo, age, by, by_two, sum, total},
    },
    flag::{
        BESIDE_RESERVED, CHEAPER, Flag, PAST_HOLD, PINNED_ON_SPOT, RISING, Unchecked, is_rising,
        pinned_on_spot, rising,
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
    (0..width).map(|at| total(matrix.iter().map(|row| row.get(at).copied().flatten()))).collect()
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
    let windows = windows(Timestamp::now());
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
            states.value.iter().filter(|one| one.labels.get(1).is_some_and(|state| wanted(state)));
        // None in this state, where states are known.
        known.then(|| total(of_state.map(|one| finite(one.value)).chain([NONE]))).flatten()
    };
    let in_state = |state: &str| number_of(&|other| other == state);
    // What is only on offer has no host, and is not idle either.
    let hosts = number_of(&|state| state != "speculative").filter(|hosts| *hosts > 0.0);
    let idle = in_state("idle");
    let mut red_flags = Vec::new();
    let (pinned, pinned_unknown) = pinned_flag(&pinned.value, known);
    let (rising, rising_unknown) = rising_flag(&rates.value);
    red_flags.extend(pinned.into_iter().chain(rising));
    let per_shard = |id| Unchecked { id, why: "looked for one shard at a time".to_owned() };
    let mut unchecked: Vec<Unchecked> =
        [PAST_HOLD, BESIDE_RESERVED, CHEAPER].into_iter().map(per_shard).collect();
    unchecked.extend(rising_unknown.into_iter().chain(pinned_unknown));
    let body = Snapshot {
        totals: Totals {
            machines: sum(&states.value),
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

/// Pinned work on Spot, of the shards where its number is known; and where it is not.
fn pinned_flag(samples: &[Sample], known: bool) -> (Option<Flag>, Option<Unchecked>) {
    let with = || samples.iter().filter(|sample| finite(sample.value).is_some_and(|all| all > 0.0));
    let machines: f64 = with().map(|sample| sample.value).sum();
    let pods = with().filter_map(|sample| sample.labels.first().cloned()).collect();
    let flag = (machines > 0.0).then(|| pinned_on_spot(machines, pods));
    let unknown = samples.iter().filter(|sample| finite(sample.value).is_none()).count();
    let why = match (known, unknown) {
        (false, _) => Some("no shard's machines are in the metrics".to_owned()),
        (true, 0) => None,
        _ => Some(format!("the metrics of {unknown} shards have no number for it")),
    };
    (flag, why.map(|why| Unchecked { id: PINNED_ON_SPOT, why }))
}

/// Instants of which the first and the last are compared: minutes, so that the last is now.
fn windows(now: Timestamp) -> Span {
    Span::until(now, Duration::from_secs(COMPARED.into()), Duration::from_secs(60))
}

/// Whether it rises in any shard; and what is not known, for a shard of which there was no sample
/// then has not risen since.
fn rising_flag(tracks: &[Track]) -> (Option<Flag>, Option<Unchecked>) {
    let mut pods: BTreeMap<&str, BTreeMap<&str, [Option<f64>; 2]>> = BTreeMap::new();
    for track in tracks {
        if let ([pod, kind], [before, .., now]) = (track.labels.as_slice(), track.values.as_slice())
        {
            pods.entry(pod).or_default().insert(kind, [*before, *now]);
        }
    }
    let all = pods.len();
    let number = |value: &Option<f64>| value.is_none_or(f64::is_finite);
    pods.retain(|_, kinds| {
        kinds.values().any(|[before, _]| before.is_some()) && kinds.values().flatten().all(number)
    });
    let unknown = all - pods.len();
    let why = match (all, unknown) {
        (0, _) => Some("no samples of half an hour".to_owned()),
        (_, 0) => None,
        _ => Some(format!("no samples of half an hour from {unknown} of {all} shards")),
    };
    // A kind that is not there, beside others that are, was never counted.
    let of = |kinds: &BTreeMap<&str, [Option<f64>; 2]>, kind| {
        let [before, now] = kinds.get(kind).copied().unwrap_or_default();
        [before.map_or(NONE, finite), now.and_then(finite)]
    };
    pods.retain(|_, kinds| is_rising(of(kinds, "Provision"), of(kinds, "Delete")));
    let now = |kind| pods.values().filter_map(|kinds| of(kinds, kind)[1]).sum();
    let (created, deleted) = (now("Provision"), now("Delete"));
    let names = pods.keys().map(|&pod| pod.to_owned()).collect();
    let flag = (!pods.is_empty()).then(|| rising(names, created, deleted));
    (flag, why.map(|why| Unchecked { id: RISING, why }))
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
        let (flag, unchecked) = pinned_flag(&[sample(&["a"], 0.0), sample(&["b"], 2.0)], true);
        let flag = flag.unwrap();
        assert_eq!((flag.value, flag.r#where), (2.0, vec!["b".to_owned()]));
        assert!(unchecked.is_none());
        assert_eq!(pinned_flag(&[sample(&["a"], 0.0)], true).0, None);
        // Where nobody knows, it is not fine.
        let (flag, unchecked) = pinned_flag(&[sample(&["a"], f64::NAN)], true);
        assert_eq!((flag, unchecked.unwrap().id), (None, PINNED_ON_SPOT));
        let partly = [sample(&["a"], f64::NAN), sample(&["b"], 2.0)];
        let (flag, unchecked) = pinned_flag(&partly, true);
        assert_eq!((flag.unwrap().value, unchecked.is_some()), (2.0, true));
        assert!(pinned_flag(&[], false).1.is_some());
        let track = |pod: &str, kind: &str, before, now| Track {
            labels: vec![pod.to_owned(), kind.to_owned()],
            values: vec![before, None, now],
        };
        let tracks = [
            track("a", "Delete", Some(0.1), Some(1.0)),
            track("a", "Provision", Some(0.1), Some(1.0)),
            track("b", "Delete", Some(0.1), Some(0.1)),
            track("b", "Provision", Some(0.1), Some(1.0)),
        ];
        assert_eq!(rising_flag(&tracks).0.unwrap().r#where, ["a"]);
        assert_eq!(rising_flag(&tracks[2..]).0, None);
        assert!(rising_flag(&tracks).1.is_none());
        // A kind that began beside another that was there already.
        let began = [track("a", "Delete", None, Some(1.0)), tracks[1].clone()];
        assert_eq!(rising_flag(&began).0.unwrap().r#where, ["a"]);
    }

    #[test]
    fn what_was_before_is_known_or_not_compared() {
        let began = |pod: &str, kind: &str, before| Track {
            labels: vec![pod.to_owned(), kind.to_owned()],
            values: vec![before, Some(1.0)],
        };
        let new = [began("a", "Delete", None), began("a", "Provision", None)];
        let (flag, unchecked) = rising_flag(&new);
        assert_eq!(flag, None);
        assert_eq!(unchecked.unwrap().why, "no samples of half an hour from 1 of 1 shards");
        let beside = [new.to_vec(), vec![began("b", "Delete", Some(1.0))]].concat();
        let (flag, unchecked) = rising_flag(&beside);
        assert_eq!(flag, None);
        assert_eq!(unchecked.unwrap().why, "no samples of half an hour from 1 of 2 shards");
        let (flag, unchecked) = rising_flag(&[]);
        assert_eq!((flag, unchecked.unwrap().id), (None, RISING));
        let none = [began("a", "Delete", Some(f64::NAN)), began("a", "Provision", Some(0.5))];
        let (flag, unchecked) = rising_flag(&none);
        assert_eq!((flag, unchecked.unwrap().id), (None, RISING));
    }

    #[test]
    fn the_last_minutes_are_those_before_now() {
        let now: Timestamp = "2026-01-01T12:14:30Z".parse().unwrap();
        let windows = windows(now);
        assert_eq!(windows.end(), now.as_second() - 30);
        assert_eq!(windows.end() - windows.start, i64::from(COMPARED));
    }
}
