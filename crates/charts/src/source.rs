//! The one source file, as types.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::{
    Error, read,
    template::{each, samples},
};

/// Everything in it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// What a chart's values decide.
    pub parameters: BTreeMap<String, Parameter>,
    /// Series that are not ours.
    pub external: Vec<External>,
    /// Processes and their metrics.
    pub components: Vec<Component>,
    /// Recording rules.
    pub records: Vec<Record>,
    /// Alerts.
    pub alerts: Vec<Group>,
    /// Dashboards.
    pub dashboards: Vec<Dashboard>,
}

/// `%{name}` of an expression.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Helm's pipeline that prints it.
    pub helm: String,
    /// What tests put in its place.
    pub sample: serde_json::Value,
}

/// A series that another program exports.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct External {
    /// Its name.
    pub name: String,
    /// Who exports it.
    pub by: String,
    /// Labels that we use.
    pub labels: Vec<String>,
}

/// A process.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Component {
    /// What it is called in the reference.
    pub name: String,
    /// What all its names begin with.
    pub prefix: String,
    /// Where they are read.
    pub r#where: String,
    /// Its metrics.
    pub metrics: Vec<Metric>,
}

/// One metric.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// Its name, without the prefix.
    pub name: String,
    /// counter, gauge, histogram or info.
    pub r#type: Type,
    /// Names of its labels.
    #[serde(default)]
    pub labels: Vec<String>,
    /// Bars that somebody holds it to: no bucket beside one is wider than a fifth of it.
    #[serde(default)]
    pub objectives: Vec<f64>,
    /// As the process says it.
    pub help: String,
}

/// Kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Type {
    /// Only rises.
    Counter,
    /// Rises and falls.
    Gauge,
    /// Counts by size.
    Histogram,
    /// Is 1, for its labels.
    Info,
}

impl Type {
    /// As Prometheus writes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Info => "info",
        }
    }
}

/// A recording rule.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Name of the series.
    pub record: String,
    /// The chart that ships it.
    pub chart: String,
    /// Labels that it has.
    pub labels: Vec<String>,
    /// What it records.
    pub expr: String,
}

/// Alerts that are evaluated together.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Its name.
    pub group: String,
    /// The chart that ships it.
    pub chart: String,
    /// Columns of values for `@{name}`: the rules are repeated for each row.
    #[serde(default)]
    pub each: BTreeMap<String, Vec<String>>,
    /// The alerts.
    pub rules: Vec<Alert>,
}

/// An alert.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alert {
    /// Its name, and that of its runbook.
    pub alert: String,
    /// Helm's condition; none is always.
    #[serde(default)]
    pub when: Option<String>,
    /// What must not be.
    pub expr: String,
    /// How long it must be so; none is at once.
    #[serde(default)]
    pub r#for: Option<String>,
    /// Who is told.
    pub level: Level,
    /// For routing, besides the level.
    #[serde(default)]
    pub category: Option<String>,
    /// More labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// One line for whoever is told.
    pub summary: String,
}

/// How loud an alert is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Now.
    Page,
    /// In working hours.
    Ticket,
}

impl Level {
    /// The value of the label `severity`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Ticket => "ticket",
        }
    }
}

/// A Grafana dashboard.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dashboard {
    /// Name of its file, and its uid.
    pub file: String,
    /// The chart that ships it.
    pub chart: String,
    /// Its title.
    pub title: String,
    /// What to know before reading it.
    #[serde(default)]
    pub help: String,
    /// A label to choose values of, as `$label` in queries.
    #[serde(default)]
    pub pick: Option<Pick>,
    /// Rows and panels, in reading order.
    pub panels: Vec<Item>,
}

/// A variable of a dashboard.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pick {
    /// The label.
    pub label: String,
    /// A metric that has it.
    pub from: String,
}

/// What stands on a dashboard.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Item {
    /// A heading.
    Row {
        /// Its text.
        row: String,
    },
    /// A panel.
    Panel(Panel),
}

/// A panel.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Panel {
    /// Its title.
    pub title: String,
    /// How it is drawn.
    #[serde(default)]
    pub kind: Kind,
    /// Grafana's unit.
    #[serde(default)]
    pub unit: Option<String>,
    /// Of 24.
    #[serde(default)]
    pub width: Option<u32>,
    /// In Grafana's lines.
    #[serde(default)]
    pub height: Option<u32>,
    /// Whether series add up.
    #[serde(default)]
    pub stack: bool,
    /// What to know about it.
    #[serde(default)]
    pub help: String,
    /// A line that is not to be crossed.
    #[serde(default)]
    pub bar: Option<f64>,
    /// Words for values.
    #[serde(default)]
    pub states: BTreeMap<String, State>,
    /// What is drawn.
    pub queries: Vec<Query>,
}

/// Form of a panel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Lines over time.
    #[default]
    Timeseries,
    /// One number.
    Stat,
}

/// A word for a value.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The word.
    pub text: String,
    /// Its colour.
    pub color: String,
}

/// A line of a panel.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Query {
    /// PromQL.
    pub expr: String,
    /// Name of each series.
    #[serde(default)]
    pub legend: Option<String>,
}

impl Source {
    /// Reads it.
    pub fn load() -> Result<Self, Error> {
        let text = read("api/metrics/observability.yaml")?;
        let mut source: Self =
            serde_saphyr::from_str(&text).map_err(|error| Error::Source(error.to_string()))?;
        for group in &mut source.alerts {
            group.rules = each(&group.each, &group.rules)?;
        }
        Ok(source)
    }

    /// The expression with every parameter's sample in its place.
    pub fn sampled(&self, expr: &str) -> Result<String, Error> {
        samples(&self.parameters, expr)
    }

    /// Names of the charts, each once.
    #[must_use]
    pub fn charts(&self) -> Vec<&str> {
        let mut charts: Vec<&str> = self.alerts.iter().map(|group| group.chart.as_str()).collect();
        charts.sort_unstable();
        charts.dedup();
        charts
    }
}
