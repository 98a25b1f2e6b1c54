//! Every generated file, in one list.

use crate::{Error, charts, grafana, reference, rules, source::Source};

/// A file of the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Where, from the root.
    pub path: String,
    /// All of it.
    pub text: String,
}

/// All of them; equal sources give equal bytes.
pub fn files() -> Result<Vec<File>, Error> {
    let source = Source::load()?;
    let mut files =
        vec![File { path: "docs/reference/metrics.md".to_owned(), text: reference::page(&source) }];
    for chart in source.charts() {
        files.push(File {
            path: format!("charts/{chart}/templates/prometheusrule.yaml"),
            text: rules::template(&source, chart)?,
        });
    }
    for dashboard in &source.dashboards {
        files.push(File {
            path: format!("charts/{}/dashboards/{}.json", dashboard.chart, dashboard.file),
            text: grafana::json(dashboard),
        });
    }
    files.extend(charts::files()?);
    Ok(files)
}
