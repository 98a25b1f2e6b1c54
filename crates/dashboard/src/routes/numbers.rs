//! Numbers from metrics, as answers have them.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Shared;
use crate::{
    api::{Asked, Refusal},
    source::{
        coalesce::Outcome,
        metrics::{How, Query, Sample, Track, names},
    },
    view::finite,
};

/// Values by one label, and by two.
pub(super) type By<'a> = BTreeMap<&'a str, Option<f64>>;
pub(super) type ByTwo<'a> = BTreeMap<&'a str, By<'a>>;

/// The only value, if there is one.
pub(super) fn only(samples: &[Sample]) -> Option<f64> {
    samples.first().and_then(|sample| finite(sample.value))
}

/// The greatest, if there is one.
pub(super) fn greatest(samples: &[Sample]) -> Option<f64> {
    samples.iter().filter_map(|sample| finite(sample.value)).reduce(f64::max)
}

/// The sum; unknown where a part of it is, and of nothing, which is not 0.
pub(super) fn sum(samples: &[Sample]) -> Option<f64> {
    total(samples.iter().map(|sample| finite(sample.value)))
}

/// The same of parts that are known or not.
pub(super) fn total(parts: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    parts.into_iter().reduce(|a, b| Some(a? + b?)).flatten()
}

/// The first label of a breakdown.
pub(super) fn label(labels: &[String]) -> &str {
    labels.first().map_or("", String::as_str)
}

/// Values by the first label.
pub(super) fn by(samples: &[Sample]) -> By<'_> {
    samples.iter().map(|sample| (label(&sample.labels), finite(sample.value))).collect()
}

/// Values by two labels.
pub(super) fn by_two(samples: &[Sample]) -> ByTwo<'_> {
    let mut all = ByTwo::new();
    for sample in samples {
        if let [first, second] = sample.labels.as_slice() {
            all.entry(first).or_default().insert(second, finite(sample.value));
        }
    }
    all
}

/// A track's values.
pub(super) fn values(track: &Track) -> Vec<Option<f64>> {
    track.values.iter().map(|value| value.and_then(finite)).collect()
}

/// Tracks by the first label.
pub(super) fn tracks_by(tracks: &[Track]) -> BTreeMap<&str, Vec<Option<f64>>> {
    tracks.iter().map(|track| (label(&track.labels), values(track))).collect()
}

/// Values of tracks that are parts of one whole. A process shows only those parts that it has had
/// since its start: where any part is known, one without a sample is 0.
pub(super) fn levels(tracks: &[Track]) -> impl Iterator<Item = (&Track, Vec<Option<f64>>)> {
    let count = tracks.iter().map(|track| track.values.len()).max().unwrap_or(0);
    let known = |at| tracks.iter().any(|track| track.values.get(at).copied().flatten().is_some());
    let known: Vec<bool> = (0..count).map(known).collect();
    tracks.iter().map(move |track| {
        let level = |(value, known): (&Option<f64>, &bool)| match value {
            Some(value) => finite(*value),
            None => known.then_some(0.0),
        };
        (track, track.values.iter().zip(&known).map(level).collect())
    })
}

/// The same by the first label.
pub(super) fn levels_by(tracks: &[Track]) -> BTreeMap<&str, Vec<Option<f64>>> {
    levels(tracks).map(|(track, values)| (label(&track.labels), values)).collect()
}

/// The only track; all gaps where there is none.
pub(super) fn only_track(tracks: &[Track], count: usize) -> Vec<Option<f64>> {
    tracks.first().map_or_else(|| vec![None; count], values)
}

/// How old metrics are: for screens to turn amber.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Age {
    sampled_at_unix_nanos: Option<i64>,
    scrape_interval_seconds: Option<f64>,
}

/// Seconds over which the time between samples is looked for.
const COUNTED: u32 = 300;

/// The newest sample, and the time between two.
type Samples = (Outcome<Vec<Sample>>, Outcome<Vec<Sample>>);

/// Of the fleet: that of the process which was sampled last.
pub(super) async fn age(app: &Shared) -> Samples {
    age_where(app, |query| query).await
}

/// Of one process: others that are younger say nothing about it.
pub(super) async fn age_of(app: &Shared, pod: &str) -> Samples {
    age_where(app, |query| query.of_pod(pod)).await
}

async fn age_where(app: &Shared, narrow: impl Fn(Query) -> Query) -> Samples {
    let ask = |how| app.sources.metrics.instant(narrow(Query::new(names::SESSIONS, how, &[])));
    tokio::join!(ask(How::Sampled), ask(How::Interval(COUNTED)))
}

impl Age {
    pub(super) fn new(asked: &mut Asked, (sampled, interval): Samples) -> Result<Self, Refusal> {
        let sampled = only(&asked.take(sampled)?.value);
        Ok(Self {
            sampled_at_unix_nanos: sampled.map(|seconds| (seconds * 1e9) as i64),
            scrape_interval_seconds: only(&asked.take(interval)?.value),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_of_which_a_part_is_unknown_is_unknown() {
        let sum_of = |values: &[f64]| {
            let sample = |value: &f64| Sample { labels: Vec::new(), value: *value };
            sum(&values.iter().map(sample).collect::<Vec<_>>())
        };
        assert_eq!((sum_of(&[1.0, 2.0]), sum_of(&[0.0])), (Some(3.0), Some(0.0)));
        assert_eq!((sum_of(&[]), sum_of(&[1.0, f64::NAN])), (None, None));
        assert_eq!(sum_of(&[f64::INFINITY, 1.0]), None);
    }

    #[test]
    fn a_part_is_nothing_where_another_is_known() {
        let track = |name: &str, values: &[Option<f64>]| Track {
            labels: vec![name.to_owned()],
            values: values.to_vec(),
        };
        let tracks = [
            track("idle", &[None, Some(4.0), Some(5.0), None, None]),
            track("draining", &[None, None, Some(1.0), None, Some(f64::NAN)]),
        ];
        let levels = levels_by(&tracks);
        assert_eq!(levels["idle"], [None, Some(4.0), Some(5.0), None, Some(0.0)]);
        assert_eq!(levels["draining"], [None, Some(0.0), Some(1.0), None, None]);
        assert!(levels_by(&[]).is_empty());
    }
}
