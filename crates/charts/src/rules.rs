//! PrometheusRules, as templates of the charts.

use std::fmt::Write as _;

use crate::{
    Error, GENERATE,
    source::{Alert, Source},
    template::helm,
};

const HEAD: &str = r#"{{- if .Values.prometheusRule.enabled }}
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: {{ .Chart.Name }}
  namespace: {{ include "bigfleet.namespace" . }}
  labels:
    {{- include "bigfleet.labels" (list . .Chart.Name) | nindent 4 }}
    {{- with .Values.prometheusRule.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  groups:
"#;

/// The template of a chart's rules.
pub fn template(source: &Source, chart: &str) -> Result<String, Error> {
    let mut text = format!(
        "{{{{- /* Generated from api/metrics/observability.yaml; do not edit.\n{GENERATE} */ -}}}}\n{HEAD}"
    );
    let records = source.records.iter().filter(|record| record.chart == chart);
    for (at, record) in records.enumerate() {
        if at == 0 {
            let _ = writeln!(text, "    - name: {chart}.records\n      rules:");
        }
        let _ = writeln!(text, "        - record: {}", record.record);
        let _ = writeln!(text, "          expr: {}", quoted(source, &record.expr)?);
    }
    for group in source.alerts.iter().filter(|group| group.chart == chart) {
        let _ = writeln!(text, "    - name: {}\n      rules:", group.group);
        for alert in &group.rules {
            rule(&mut text, source, alert)?;
        }
    }
    text.push_str("{{- end }}\n");
    Ok(text)
}

fn rule(text: &mut String, source: &Source, alert: &Alert) -> Result<(), Error> {
    if let Some(when) = &alert.when {
        let _ = writeln!(text, "        {{{{- if {when} }}}}");
    }
    let _ = writeln!(text, "        - alert: {}", alert.alert);
    let _ = writeln!(text, "          expr: {}", quoted(source, &alert.expr)?);
    if let Some(time) = &alert.r#for {
        let _ = writeln!(text, "          for: {time}");
    }
    let _ = writeln!(text, "          labels:\n            severity: {}", alert.level.name());
    if let Some(category) = &alert.category {
        let _ = writeln!(text, "            category: {category}");
    }
    for (label, value) in &alert.labels {
        let _ = writeln!(text, "            {label}: {value}");
    }
    let _ = writeln!(text, "          annotations:");
    let _ = writeln!(text, "            summary: {}", quoted(source, &alert.summary)?);
    let _ = writeln!(
        text,
        "            runbook_url: {{{{ .Values.prometheusRule.runbookURL }}}}/{}",
        runbook(&alert.alert)
    );
    if alert.when.is_some() {
        let _ = writeln!(text, "        {{{{- end }}}}");
    }
    Ok(())
}

/// Single quotes: YAML reads nothing in them, and Helm still does.
fn quoted(source: &Source, text: &str) -> Result<String, Error> {
    Ok(format!("'{}'", helm(&source.parameters, &text.replace('\'', "''"))?))
}

/// The page of an alert, without its ending: `ShardDown` is `shard-down`.
#[must_use]
pub fn runbook(alert: &str) -> String {
    let mut name = String::with_capacity(alert.len() + 4);
    for letter in alert.chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_named_after_alerts() {
        assert_eq!(runbook("ShardDown"), "shard-down");
        assert_eq!(runbook("Plaintext"), "plaintext");
    }
}
