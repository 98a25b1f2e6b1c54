//! The page for readers.

use std::fmt::Write as _;

use crate::{
    GENERATE,
    rules::runbook,
    source::{Metric, Source, Type},
};

/// `docs/reference/metrics.md`.
#[must_use]
pub fn page(source: &Source) -> String {
    let mut page = format!(
        "# Metrics, alerts and dashboards\n\n\
         Every process serves `/metrics` in OpenMetrics text on its HTTP port. Generated from \
         `api/metrics/observability.yaml`; write it anew with `{GENERATE}`.\n\n\
         Labels of targets (`job`, `namespace`, `pod`) come from who scrapes. The rules and \
         dashboards tell processes apart by `pod` and count on `job` being the name of the \
         workload, as the charts' PodMonitors set them.\n"
    );
    for component in &source.components {
        let _ = write!(
            page,
            "\n## {}{}\n\nAt {}. Names begin with `{}`.\n\n| Name | Type | Labels | Meaning |\n|---|---|---|---|\n",
            component.name[..1].to_uppercase(),
            &component.name[1..],
            component.r#where,
            component.prefix,
        );
        for metric in &component.metrics {
            let labels: Vec<String> =
                metric.labels.iter().map(|label| format!("`{label}`")).collect();
            let _ = writeln!(
                page,
                "| `{}` | {} | {} | {} |",
                metric.name,
                metric.r#type.name(),
                labels.join(", "),
                meaning(metric),
            );
        }
    }
    alerts(&mut page, source);
    dashboards(&mut page, source);
    page
}

fn meaning(metric: &Metric) -> String {
    let seconds: Vec<String> =
        metric.objectives.iter().map(|objective| format!("{objective} s")).collect();
    match (metric.r#type, seconds.as_slice()) {
        (Type::Histogram, [_, ..]) => {
            format!("{}; objectives at {}", metric.help, seconds.join(", "))
        }
        _ => metric.help.clone(),
    }
}

fn alerts(page: &mut String, source: &Source) {
    page.push_str(
        "\n## Alerts\n\nShipped by the charts with `prometheusRule.enabled`; the label `severity` is the level.\n\n\
         | Alert | Chart | For | Level | Meaning |\n|---|---|---|---|---|\n",
    );
    let mut seen = Vec::new();
    for group in &source.alerts {
        for alert in &group.rules {
            // Repetitions for each class are one line.
            let key = (&alert.alert, &group.chart, alert.level.name());
            if seen.contains(&key) {
                continue;
            }
            let _ = writeln!(
                page,
                "| [{}](../runbooks/{}.md) | `{}` | {} | {} | {} |",
                alert.alert,
                runbook(&alert.alert),
                group.chart,
                alert.r#for.as_deref().unwrap_or("0"),
                alert.level.name(),
                plain(&alert.summary, alert.labels.values()),
            );
            seen.push(key);
        }
    }
}

/// A summary without the templates of Prometheus.
fn plain<'a>(summary: &str, columns: impl Iterator<Item = &'a String>) -> String {
    let mut plain = summary.to_owned();
    while let (Some(open), Some(close)) = (plain.find("{{"), plain.find("}}")) {
        let inner = plain[open + 2..close].trim();
        let word = inner.split([' ', '|']).next().unwrap_or_default();
        let word = word.trim_start_matches("$labels.").trim_start_matches('$');
        plain.replace_range(open..close + 2, &format!("<{word}>"));
    }
    for column in columns {
        plain = plain.replace(column.as_str(), "<class>");
    }
    let open = plain.replace("%{", "<").replace('}', ">");
    format!("`{open}`")
}

fn dashboards(page: &mut String, source: &Source) {
    page.push_str(
        "\n## Dashboards\n\nShipped by the charts with `dashboards.enabled`, as ConfigMaps that Grafana's sidecar \
         finds; the JSON files can be imported as they are.\n\n| Dashboard | File |\n|---|---|\n",
    );
    for dashboard in &source.dashboards {
        let path = format!("charts/{}/dashboards/{}.json", dashboard.chart, dashboard.file);
        let _ = writeln!(page, "| {} | [`{path}`](../../{path}) |", dashboard.title);
    }
    page.push_str("\n## Series of others that are used\n\n| Name | Exported by |\n|---|---|\n");
    for external in &source.external {
        let _ = writeln!(page, "| `{}` | {} |", external.name, external.by);
    }
}
