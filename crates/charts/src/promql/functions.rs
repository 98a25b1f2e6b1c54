//! Functions over windows and vectors.

use std::collections::BTreeMap;

use super::{Labels, Vector};

/// How many arguments a function takes; none is an unknown function.
#[must_use]
pub fn known_function(name: &str) -> Option<usize> {
    match name {
        "time" => Some(0),
        "histogram_quantile" | "quantile_over_time" => Some(2),
        "vector" | "abs" | "absent" => Some(1),
        name => over_window(name).map(|_| 1),
    }
}

type Window = [(i64, f64)];

/// A function of one window.
pub(super) fn over_window(name: &str) -> Option<fn(&Window) -> Option<f64>> {
    Some(match name {
        "rate" => rate,
        "increase" => increase,
        "deriv" => slope,
        "changes" => {
            |window| Some(window.windows(2).filter(|pair| pair[0].1 != pair[1].1).count() as f64)
        }
        "min_over_time" => |window| window.iter().map(|sample| sample.1).reduce(f64::min),
        "max_over_time" => |window| window.iter().map(|sample| sample.1).reduce(f64::max),
        "count_over_time" => |window| Some(window.len() as f64),
        _ => return None,
    })
}

/// What a counter rose by; a fall is a restart.
fn rise(window: &Window) -> Option<(f64, f64)> {
    let [first, .., last] = window else { return None };
    let rise = window
        .windows(2)
        .map(|pair| if pair[1].1 < pair[0].1 { pair[1].1 } else { pair[1].1 - pair[0].1 })
        .sum();
    Some((rise, (last.0 - first.0) as f64))
}

fn rate(window: &Window) -> Option<f64> {
    rise(window).map(|(rise, seconds)| rise / seconds)
}

fn increase(window: &Window) -> Option<f64> {
    rise(window).map(|(rise, _)| rise)
}

/// From the first to the last; Prometheus fits a line.
fn slope(window: &Window) -> Option<f64> {
    let [first, .., last] = window else { return None };
    Some((last.1 - first.1) / (last.0 - first.0) as f64)
}

/// The quantile of a window's values.
pub(super) fn quantile(q: f64, window: &Window) -> Option<f64> {
    let mut values: Vec<f64> = window.iter().map(|sample| sample.1).collect();
    values.sort_by(f64::total_cmp);
    let rank = q * values.len().checked_sub(1)? as f64;
    let (low, high) = (values.get(rank.floor() as usize)?, values.get(rank.ceil() as usize)?);
    Some((high - low) * rank.fract() + low)
}

/// The quantile of classic histograms: linear inside a bucket, as Prometheus does it.
pub(super) fn histogram_quantile(q: f64, buckets: Vector) -> Vector {
    let mut histograms: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
    for (mut labels, count) in buckets {
        let bound = match labels.remove("le").as_deref() {
            Some("+Inf") => f64::INFINITY,
            Some(bound) => bound.parse().unwrap_or(f64::NAN),
            None => continue,
        };
        histograms.entry(labels).or_default().push((bound, count));
    }
    histograms
        .into_iter()
        .filter_map(|(labels, mut buckets)| {
            buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
            let total = buckets.last().filter(|last| last.0.is_infinite())?.1;
            if total <= 0.0 {
                return None;
            }
            let rank = q * total;
            let at = buckets.iter().position(|bucket| bucket.1 >= rank)?;
            let (below, lower) = at
                .checked_sub(1)
                .map_or((0.0, 0.0), |before| (buckets[before].1, buckets[before].0));
            let (upper, count) = buckets[at];
            let value = if upper.is_infinite() {
                lower
            } else {
                (upper - lower) * (rank - below) / (count - below) + lower
            };
            Some((labels, value))
        })
        .collect()
}
