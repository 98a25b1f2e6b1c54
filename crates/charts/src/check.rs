//! Whether queries name what there is.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    promql::{Expr, parse},
    source::{Source, Type},
};

/// Labels that scraping adds to every series.
const OF_TARGETS: [&str; 3] = ["job", "namespace", "pod"];

/// Series that a query may name, with their labels.
#[derive(Clone, Debug)]
pub struct Known {
    series: BTreeMap<String, BTreeSet<String>>,
}

impl Known {
    /// Those of the source: metrics as they are scraped, recorded ones and those of others.
    #[must_use]
    pub fn of(source: &Source) -> Self {
        let mut series = BTreeMap::new();
        let mut add = |name: String, labels: &[String], more: &[&str]| {
            let labels = labels.iter().map(String::as_str).chain(more.iter().copied());
            series.insert(name, labels.map(str::to_owned).collect());
        };
        let with_le: Vec<&str> = OF_TARGETS.into_iter().chain(["le"]).collect();
        for component in &source.components {
            for metric in &component.metrics {
                let name = format!("{}{}", component.prefix, metric.name);
                if metric.r#type == Type::Histogram {
                    add(format!("{name}_bucket"), &metric.labels, &with_le);
                    add(format!("{name}_sum"), &metric.labels, &OF_TARGETS);
                    add(format!("{name}_count"), &metric.labels, &OF_TARGETS);
                } else {
                    add(name, &metric.labels, &OF_TARGETS);
                }
            }
        }
        for record in &source.records {
            add(record.record.clone(), &record.labels, &[]);
        }
        for external in &source.external {
            add(external.name.clone(), &external.labels, &[]);
        }
        Self { series }
    }

    /// What is wrong with a query; nothing if it is well.
    #[must_use]
    pub fn faults(&self, query: &str) -> Vec<String> {
        let expr = match parse(query) {
            Ok(expr) => expr,
            Err(error) => return vec![error.to_string()],
        };
        let mut faults = Vec::new();
        expr.selectors(&mut |selector| match self.series.get(&selector.name) {
            None => faults.push(format!("no process exports {}", selector.name)),
            Some(labels) => {
                for matcher in &selector.matchers {
                    if !labels.contains(&matcher.label) {
                        faults.push(format!("{} has no label {}", selector.name, matcher.label));
                    }
                }
            }
        });
        expr.aggregates(&mut |aggregate| {
            let labels = self.labels(&aggregate.expr);
            for label in aggregate.by.iter().filter(|label| !labels.contains(label.as_str())) {
                faults.push(format!("no series below `by` has the label {label}"));
            }
        });
        faults
    }

    /// Labels of all series that an expression names.
    fn labels(&self, expr: &Expr) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        expr.selectors(&mut |selector| {
            found.extend(self.series.get(&selector.name).into_iter().flatten().map(String::as_str));
        });
        found
    }
}
