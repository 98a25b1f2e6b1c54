//! An hour of samples.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    time::Duration,
};

use super::exposition::Line;

/// How long samples are kept.
const KEPT: Duration = Duration::from_secs(3600);

/// Series of one process beyond this are left out.
const MOST_SERIES: usize = 5_000;

/// Labels of a series, by name.
pub(super) type Labels = Vec<(String, String)>;

/// Samples of every target.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) interval: f64,
    samples: usize,
    pub(super) targets: BTreeMap<String, Pages>,
}

/// What one target showed: a value per series and look, NaN where there was none.
#[derive(Debug, Default)]
pub(super) struct Pages {
    /// Unix seconds, ascending.
    pub(super) times: VecDeque<f64>,
    pub(super) series: HashMap<String, HashMap<Labels, VecDeque<f64>>>,
    count: usize,
}

impl Store {
    pub(super) fn new(interval: Duration) -> Self {
        let samples = (KEPT.as_secs() / interval.as_secs().max(1)) as usize;
        Self { interval: interval.as_secs_f64(), samples, targets: BTreeMap::new() }
    }

    /// One look at a target.
    pub(super) fn add<'a>(&mut self, target: &str, at: f64, lines: impl Iterator<Item = Line<'a>>) {
        let pages = self.targets.entry(target.to_owned()).or_default();
        pages.forget_after(at);
        if pages.times.back().is_some_and(|last| *last >= at) {
            return;
        }
        pages.times.push_back(at);
        let length = pages.times.len();
        for line in lines {
            let mut labels: Labels =
                line.labels.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
            labels.sort();
            let of_name = pages.series.entry(line.name.to_owned()).or_default();
            if !of_name.contains_key(&labels) {
                if pages.count == MOST_SERIES {
                    continue;
                }
                pages.count += 1;
            }
            let values = of_name.entry(labels).or_default();
            values.resize(length - 1, f64::NAN);
            values.push_back(line.value);
        }
        pages.even_out(length);
        if length > self.samples {
            pages.drop_oldest();
        }
    }
}

impl Pages {
    /// Series that the page did not show have no value now.
    fn even_out(&mut self, length: usize) {
        for values in self.series.values_mut().flat_map(HashMap::values_mut) {
            values.resize(length, f64::NAN);
        }
    }

    fn drop_oldest(&mut self) {
        self.times.pop_front();
        self.drop_of_each(VecDeque::pop_front);
    }

    /// Forgets what was seen at times that are still to come: the clock was set back, and whoever
    /// waits for it to catch up is blind until then. A clock that only counts on would not do, for
    /// it stands still while a laptop sleeps.
    fn forget_after(&mut self, now: f64) {
        while self.times.pop_back_if(|time| *time > now).is_some() {
            self.drop_of_each(VecDeque::pop_back);
        }
    }

    fn drop_of_each(&mut self, drop: impl Fn(&mut VecDeque<f64>) -> Option<f64>) {
        let mut left = 0;
        for of_name in self.series.values_mut() {
            of_name.retain(|_, values| {
                drop(values);
                values.iter().any(|value| !value.is_nan())
            });
            left += of_name.len();
        }
        self.count = left;
    }
}

#[cfg(test)]
mod tests {
    use super::{super::exposition::parse, *};

    #[test]
    fn an_hour_is_kept_and_vanished_series_go() {
        let mut store = Store::new(Duration::from_secs(1800));
        for (at, page) in [
            (1.0, "bigfleet_shard_shortfalls 1\nbigfleet_shard_needs_unmet{reason=\"a\"} 1\n"),
            (2.0, "bigfleet_shard_shortfalls 2\n"),
            (3.0, "bigfleet_shard_shortfalls 3\n"),
            (3.0, "bigfleet_shard_shortfalls 9\n"),
        ] {
            store.add("a", at, parse(page));
        }
        let pages = &store.targets["a"];
        assert_eq!(pages.times, [2.0, 3.0]);
        assert_eq!(pages.series["bigfleet_shard_shortfalls"][&Vec::new()], [2.0, 3.0]);
        assert!(pages.series["bigfleet_shard_needs_unmet"].is_empty());
        assert_eq!(pages.count, 1);
    }

    #[test]
    fn a_clock_that_is_set_back_keeps_no_sample_out() {
        let mut store = Store::new(Duration::from_secs(5));
        for (at, page) in [
            (100.0, "bigfleet_shard_shortfalls 1\n"),
            (105.0, "bigfleet_shard_shortfalls 2\n"),
            (110.0, "bigfleet_shard_needs_unmet{reason=\"a\"} 1\n"),
            (102.0, "bigfleet_shard_shortfalls 4\n"),
        ] {
            store.add("a", at, parse(page));
        }
        let pages = &store.targets["a"];
        assert_eq!(pages.times, [100.0, 102.0]);
        assert_eq!(pages.series["bigfleet_shard_shortfalls"][&Vec::new()], [1.0, 4.0]);
        assert_eq!(pages.count, 1, "what was seen only then is gone");
        store.add("a", 50.0, parse("bigfleet_shard_shortfalls 5\n"));
        assert_eq!(store.targets["a"].times, [50.0]);
    }
}
