//! Answers to the dashboard's questions from stored samples, as Prometheus would give them but for
//! its extrapolation to the edges of a window.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Range,
};

use super::{
    super::{How, Query, Sample, Span, Track},
    store::{Labels, Pages, Store},
};

/// A target that was not seen for this many intervals has no present.
const STALE: f64 = 3.0;

/// The answer at one instant, in unix seconds.
pub(super) fn at(store: &Store, query: &Query, now: f64) -> Vec<Sample> {
    let sample = |(labels, value)| Sample { labels, value };
    groups(store, query, now).into_iter().map(sample).collect()
}

/// The answer at each instant of a span.
pub(super) fn over(store: &Store, query: &Query, span: Span) -> Vec<Track> {
    let mut tracks: BTreeMap<Vec<String>, Vec<Option<f64>>> = BTreeMap::new();
    for (index, instant) in span.instants().enumerate() {
        for (labels, value) in groups(store, query, instant as f64) {
            let values = tracks.entry(labels).or_insert_with(|| vec![None; span.count]);
            values[index] = Some(value);
        }
    }
    tracks.into_iter().map(|(labels, values)| Track { labels, values }).collect()
}

/// Values by the labels of the breakdown.
fn groups(store: &Store, query: &Query, now: f64) -> BTreeMap<Vec<String>, f64> {
    if let How::Quantile(quantile, window) = query.how {
        return quantiles(store, query, quantile, window, now);
    }
    let mut groups = BTreeMap::new();
    each(store, query, query.metric, |pod, labels, pages, values| {
        let Some(value) = value(query.how, store, pages, values, now) else { return };
        let key = breakdown(query, pod, labels);
        let sum = matches!(query.how, How::Sum | How::Rate(_));
        groups
            .entry(key)
            .and_modify(|so_far: &mut f64| {
                *so_far = if sum { *so_far + value } else { so_far.max(value) };
            })
            .or_insert(value);
    });
    groups
}

/// Every series of a name that the query selects.
fn each(
    store: &Store,
    query: &Query,
    name: &str,
    mut then: impl FnMut(&str, &Labels, &Pages, &VecDeque<f64>),
) {
    for (pod, pages) in &store.targets {
        for (labels, values) in pages.series.get(name).into_iter().flatten() {
            let matches = |(label, wanted): &(&str, String)| label_of(pod, labels, label) == wanted;
            if query.matching.iter().all(matches) {
                then(pod, labels, pages, values);
            }
        }
    }
}

fn label_of<'a>(pod: &'a str, labels: &'a Labels, label: &str) -> &'a str {
    if label == "pod" {
        return pod;
    }
    labels.iter().find(|(name, _)| name == label).map_or("", |(_, value)| value)
}

fn breakdown(query: &Query, pod: &str, labels: &Labels) -> Vec<String> {
    query.by.iter().map(|label| label_of(pod, labels, label).to_owned()).collect()
}

fn value(how: How, store: &Store, pages: &Pages, values: &VecDeque<f64>, now: f64) -> Option<f64> {
    match how {
        How::Sum | How::Max => {
            let newest = newest(store, pages, now)?;
            values.get(newest).copied().filter(|value| !value.is_nan())
        }
        How::Sampled => {
            let newest = newest(store, pages, now)?;
            values.get(newest).filter(|value| !value.is_nan())?;
            pages.times.get(newest).copied()
        }
        How::Rate(window) => rate(pages, values, now, window),
        // Ours, from the first look on: a count would take the window to tell it.
        How::Interval(window) => {
            let seen = within(pages, now, window).any(|at| !values[at].is_nan());
            seen.then_some(store.interval)
        }
        How::Quantile(..) => None,
    }
}

/// The last look before an instant, unless the target has been silent since.
fn newest(store: &Store, pages: &Pages, now: f64) -> Option<usize> {
    let newest = pages.times.partition_point(|time| *time <= now).checked_sub(1)?;
    (now - pages.times[newest] <= STALE * store.interval).then_some(newest)
}

fn within(pages: &Pages, now: f64, window: u32) -> Range<usize> {
    let start = pages.times.partition_point(|time| *time <= now - f64::from(window));
    start..pages.times.partition_point(|time| *time <= now)
}

/// What a counter gained per second between the first and the last sample of the window; a fall is
/// a restart from 0.
fn rate(pages: &Pages, values: &VecDeque<f64>, now: f64, window: u32) -> Option<f64> {
    let mut seen = within(pages, now, window).filter(|at| !values[*at].is_nan());
    let first = seen.next()?;
    let (mut gained, mut last) = (0.0, first);
    for at in seen {
        let (before, after) = (values[last], values[at]);
        gained += if after >= before { after - before } else { after };
        last = at;
    }
    let seconds = pages.times[last] - pages.times[first];
    (seconds > 0.0).then(|| gained / seconds)
}

fn quantiles(
    store: &Store,
    query: &Query,
    quantile: f64,
    window: u32,
    now: f64,
) -> BTreeMap<Vec<String>, f64> {
    let name = format!("{}_bucket", query.metric);
    let mut buckets: BTreeMap<Vec<String>, Vec<(f64, f64)>> = BTreeMap::new();
    each(store, query, &name, |pod, labels, pages, values| {
        let Some(rate) = rate(pages, values, now, window) else { return };
        let Ok(bound) = label_of(pod, labels, "le").parse::<f64>() else { return };
        let of_key = buckets.entry(breakdown(query, pod, labels)).or_default();
        match of_key.iter_mut().find(|(other, _)| *other == bound) {
            Some((_, sum)) => *sum += rate,
            None => of_key.push((bound, rate)),
        }
    });
    let quantile_of = |(key, mut of_key): (Vec<String>, Vec<(f64, f64)>)| {
        of_key.sort_by(|a, b| a.0.total_cmp(&b.0));
        (key, interpolate(quantile, &of_key))
    };
    buckets.into_iter().map(quantile_of).collect()
}

/// As `histogram_quantile`: linear inside the bucket; past the last bound, that bound.
fn interpolate(quantile: f64, cumulative: &[(f64, f64)]) -> f64 {
    let Some((_, total)) = cumulative.last().filter(|(_, total)| *total > 0.0) else {
        return f64::NAN;
    };
    let rank = quantile * total;
    let at = cumulative.iter().position(|(_, count)| *count >= rank);
    let Some(at) = at else { return f64::NAN };
    let (upper, count) = cumulative[at];
    let (lower, before) = if at == 0 { (0.0, 0.0) } else { cumulative[at - 1] };
    if upper.is_infinite() {
        return lower;
    }
    if count <= before {
        upper
    } else {
        lower + (upper - lower) * (rank - before) / (count - before)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{super::exposition::parse, *};

    fn store(pages: &[(&str, f64, &str)]) -> Store {
        let mut store = Store::new(Duration::from_secs(5));
        for (target, time, page) in pages {
            store.add(target, *time, parse(page));
        }
        store
    }

    fn values(samples: &[Sample]) -> Vec<(Vec<&str>, f64)> {
        samples.iter().map(|s| (s.labels.iter().map(String::as_str).collect(), s.value)).collect()
    }

    #[test]
    fn sums_are_of_those_who_were_seen_lately() {
        let store = store(&[
            ("a", 100.0, "bigfleet_shard_shortfalls 1\n"),
            ("b", 80.0, "bigfleet_shard_shortfalls 5\n"),
        ]);
        let query = Query::new("bigfleet_shard_shortfalls", How::Sum, &["pod"]);
        assert_eq!(values(&at(&store, &query, 101.0)), [(vec!["a"], 1.0)]);
        assert_eq!(values(&at(&store, &query, 90.0)), [(vec!["b"], 5.0)]);
        assert!(at(&store, &query, 200.0).is_empty(), "silence is unknown, not the last value");
        let of_b = query.of_pod("b");
        assert!(at(&store, &of_b, 101.0).is_empty());
    }

    #[test]
    fn rates_survive_restarts() {
        let page = |n: u32| format!("bigfleet_shard_actions_total{{kind=\"Delete\"}} {n}\n");
        let pages: Vec<String> = [10, 20, 5].into_iter().map(page).collect();
        let store = store(&[("a", 0.0, &pages[0]), ("a", 5.0, &pages[1]), ("a", 10.0, &pages[2])]);
        let query = Query::new("bigfleet_shard_actions_total", How::Rate(60), &["kind"]);
        assert_eq!(values(&at(&store, &query, 10.0)), [(vec!["Delete"], 1.5)]);
        assert!(at(&store, &query, 0.0).is_empty(), "one sample has no rate");
    }

    #[test]
    fn quantiles_interpolate() {
        let page = |n: u32| {
            let name = "bigfleet_shard_cycle_duration_seconds_bucket";
            format!(
                "{name}{{le=\"1.0\"}} {n}\n{name}{{le=\"2.0\"}} {}\n{name}{{le=\"+Inf\"}} {}\n",
                2 * n,
                2 * n
            )
        };
        let (first, second) = (page(0), page(10));
        let store = store(&[("a", 0.0, &first), ("a", 10.0, &second)]);
        let query =
            |q| Query::new("bigfleet_shard_cycle_duration_seconds", How::Quantile(q, 60), &[]);
        assert_eq!(values(&at(&store, &query(0.75), 10.0)), [(vec![], 1.5)]);
        assert_eq!(values(&at(&store, &query(0.25), 10.0)), [(vec![], 0.5)]);
        assert_eq!(interpolate(0.99, &[(1.0, 1.0), (f64::INFINITY, 100.0)]), 1.0);
        assert!(interpolate(0.99, &[(1.0, 0.0)]).is_nan());
    }

    #[test]
    fn tracks_have_gaps_where_nobody_was_seen() {
        let store = store(&[
            ("a", 100.0, "bigfleet_shard_shortfalls 1\n"),
            ("a", 200.0, "bigfleet_shard_shortfalls 2\n"),
        ]);
        let query = Query::new("bigfleet_shard_shortfalls", How::Sum, &[]);
        let tracks = over(&store, &query, Span { start: 100, step: 50, count: 3 });
        assert_eq!(tracks[0].values, [Some(1.0), None, Some(2.0)]);
    }

    #[test]
    fn age_is_told() {
        let page = "bigfleet_shard_active_sessions 1\n";
        let store = store(&[("a", 100.0, page), ("a", 105.0, page)]);
        let query = |how| Query::new("bigfleet_shard_active_sessions", how, &[]);
        assert_eq!(values(&at(&store, &query(How::Sampled), 106.0)), [(vec![], 105.0)]);
        assert_eq!(values(&at(&store, &query(How::Interval(300)), 106.0)), [(vec![], 5.0)]);
    }
}
