//! Planted series.

use std::collections::BTreeMap;

use super::{Error, Expr, Selector, parse};

/// Labels, without the name.
pub type Labels = BTreeMap<String, String>;

/// A series with a sample at every step from 0 on.
#[derive(Clone, Debug)]
pub struct Series {
    /// Name of the metric.
    pub name: String,
    /// Its labels.
    pub labels: Labels,
    /// (seconds, value)
    pub samples: Vec<(i64, f64)>,
}

/// All series.
#[derive(Clone, Debug, Default)]
pub struct Store {
    /// They.
    pub series: Vec<Series>,
    /// Seconds between two samples.
    pub step: i64,
}

/// How long a sample is good for.
const LOOKBACK: i64 = 300;

impl Store {
    /// Plants a series in the notation of promtool: `name{label="x"}`, and values as `1 2 3`,
    /// `0+1x5` (six values, each one more), `4x3` (four times 4) and `_x3` (three gaps).
    pub fn plant(&mut self, series: &str, values: &str) -> Result<(), Error> {
        let Expr::Selector(selector) = parse(series)? else {
            return Err(Error::new("not a series", series));
        };
        let labels = selector.matchers.iter().map(|m| (m.label.clone(), m.value.clone()));
        let values =
            notation(values).ok_or_else(|| Error::new(format!("bad values {values:?}"), series))?;
        let samples = (0..).step_by(usize::try_from(self.step).unwrap_or(60)).zip(values);
        self.series.push(Series {
            name: selector.name.clone(),
            labels: labels.collect(),
            samples: samples.filter_map(|(at, value)| Some((at, value?))).collect(),
        });
        Ok(())
    }

    /// Time of the last sample.
    #[must_use]
    pub fn end(&self) -> i64 {
        let last = |series: &Series| series.samples.last().map_or(0, |sample| sample.0);
        self.series.iter().map(last).max().unwrap_or(0)
    }

    /// Values at one time.
    pub(super) fn instant(&self, selector: &Selector, at: i64) -> Vec<(Labels, f64)> {
        let at = at - selector.offset;
        let good = LOOKBACK.max(self.step);
        self.found(selector)
            .filter_map(|series| {
                let upto = series.samples.partition_point(|sample| sample.0 <= at);
                let (time, value) = *series.samples[..upto].last()?;
                (at - time < good).then(|| (series.labels.clone(), value))
            })
            .collect()
    }

    /// Samples of a window.
    pub(super) fn window(
        &self,
        selector: &Selector,
        range: i64,
        at: i64,
    ) -> Vec<(Labels, Vec<(i64, f64)>)> {
        let at = at - selector.offset;
        self.found(selector)
            .map(|series| {
                let inside = series.samples.iter().copied();
                let inside = inside.filter(|sample| sample.0 > at - range && sample.0 <= at);
                (series.labels.clone(), inside.collect::<Vec<_>>())
            })
            .filter(|(_, samples)| !samples.is_empty())
            .collect()
    }

    fn found<'a>(&'a self, selector: &'a Selector) -> impl Iterator<Item = &'a Series> {
        self.series.iter().filter(|series| {
            let label = |name: &str| series.labels.get(name).map_or("", String::as_str);
            series.name == selector.name
                && selector.matchers.iter().all(|one| one.matches(label(&one.label)))
        })
    }
}

fn notation(text: &str) -> Option<Vec<Option<f64>>> {
    let mut values = Vec::new();
    for word in text.split_whitespace() {
        let (value, times) = word.split_once('x').unwrap_or((word, ""));
        let times: usize = if times.is_empty() { 0 } else { times.parse().ok()? };
        if value == "_" {
            values.extend(std::iter::repeat_n(None, times.max(1)));
            continue;
        }
        let (start, rise): (f64, f64) = match value.split_once('+') {
            Some((start, rise)) => (start.parse().ok()?, rise.parse().ok()?),
            None => (value.parse().ok()?, 0.0),
        };
        values.extend((0..=times).map(|at| Some(rise * at as f64 + start)));
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_notation_of_promtool() {
        let numbers =
            |text| notation(text).map(|all| all.into_iter().flatten().collect::<Vec<_>>());
        assert_eq!(numbers("1 2"), Some(vec![1.0, 2.0]));
        assert_eq!(numbers("0+2x3"), Some(vec![0.0, 2.0, 4.0, 6.0]));
        assert_eq!(numbers("5x2"), Some(vec![5.0; 3]));
        assert_eq!(notation("_x2 1"), Some(vec![None, None, Some(1.0)]));
        assert_eq!(notation("a"), None);
    }
}
