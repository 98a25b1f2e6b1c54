//! Dashboards as Grafana reads them.

use serde_json::{Value, json};

use crate::source::{Dashboard, Item, Kind, Panel};

/// Grafana's grid.
const WIDTH: u32 = 24;

/// The file of a dashboard.
#[must_use]
pub fn json(dashboard: &Dashboard) -> String {
    let mut variables = vec![json!({
        "name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source",
    })];
    if let Some(pick) = &dashboard.pick {
        variables.push(json!({
            "name": pick.label,
            "type": "query",
            "datasource": datasource(),
            "query": format!("label_values({}, {})", pick.from, pick.label),
            "refresh": 2,
            "sort": 1,
            "multi": true,
            "includeAll": true,
            "allValue": ".*",
            "current": {"text": "All", "value": "$__all"},
        }));
    }
    let value = json!({
        "uid": format!("bigfleet-{}", dashboard.file),
        "title": dashboard.title,
        "description": dashboard.help,
        "tags": ["bigfleet"],
        "schemaVersion": 39,
        "version": 1,
        "editable": true,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "",
        "graphTooltip": 1,
        "templating": {"list": variables},
        "links": [{
            "title": "BigFleet", "type": "dashboards", "tags": ["bigfleet"], "asDropdown": true,
            "keepTime": true,
        }],
        "panels": panels(&dashboard.panels),
    });
    format!("{value:#}\n")
}

fn datasource() -> Value {
    json!({"type": "prometheus", "uid": "${datasource}"})
}

fn panels(items: &[Item]) -> Vec<Value> {
    let mut flow = Flow::default();
    items
        .iter()
        .enumerate()
        .map(|(at, item)| match item {
            Item::Row { row } => json!({
                "id": at + 1, "type": "row", "title": row, "collapsed": false, "panels": [],
                "gridPos": flow.row(),
            }),
            Item::Panel(panel) => drawn(at + 1, panel, &flow.place(panel)),
        })
        .collect()
}

fn drawn(id: usize, panel: &Panel, place: &Value) -> Value {
    let mut defaults = json!({"unit": panel.unit.as_deref().unwrap_or("short")});
    let mut options = json!({});
    let kind = match panel.kind {
        Kind::Timeseries => {
            defaults["min"] = json!(0);
            defaults["custom"] = json!({
                "fillOpacity": if panel.stack { 30 } else { 0 },
                "stacking": {"mode": if panel.stack { "normal" } else { "none" }},
                "thresholdsStyle": {"mode": if panel.bar.is_some() { "line" } else { "off" }},
            });
            options["tooltip"] = json!({"mode": "multi", "sort": "desc"});
            "timeseries"
        }
        Kind::Stat => {
            options["reduceOptions"] = json!({"calcs": ["lastNotNull"]});
            "stat"
        }
    };
    if let Some(bar) = panel.bar {
        defaults["thresholds"] = json!({
            "mode": "absolute",
            "steps": [{"color": "green", "value": null}, {"color": "red", "value": bar}],
        });
    }
    if !panel.states.is_empty() {
        options["colorMode"] = json!("background");
        let words: serde_json::Map<String, Value> = panel
            .states
            .iter()
            .map(|(value, state)| {
                (value.clone(), json!({"text": state.text, "color": state.color}))
            })
            .collect();
        defaults["mappings"] = json!([{"type": "value", "options": words}]);
    }
    let targets: Vec<Value> = panel
        .queries
        .iter()
        .zip('A'..='Z')
        .map(|(query, letter)| {
            json!({
                "refId": letter,
                "datasource": datasource(),
                "expr": query.expr,
                "legendFormat": query.legend.as_deref().unwrap_or("__auto"),
                "instant": panel.kind == Kind::Stat,
            })
        })
        .collect();
    json!({
        "id": id,
        "type": kind,
        "title": panel.title,
        "description": panel.help,
        "datasource": datasource(),
        "gridPos": place,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": options,
        "targets": targets,
    })
}

/// Where the next panel goes.
#[derive(Debug, Default)]
struct Flow {
    x: u32,
    y: u32,
    /// Of the line that is being filled.
    height: u32,
}

impl Flow {
    fn row(&mut self) -> Value {
        self.wrap();
        let place = json!({"x": 0, "y": self.y, "w": WIDTH, "h": 1});
        self.y += 1;
        place
    }

    fn place(&mut self, panel: &Panel) -> Value {
        let (width, height) = (panel.width.unwrap_or(8).min(WIDTH), panel.height.unwrap_or(8));
        if self.x + width > WIDTH {
            self.wrap();
        }
        let place = json!({"x": self.x, "y": self.y, "w": width, "h": height});
        self.x += width;
        self.height = self.height.max(height);
        place
    }

    fn wrap(&mut self) {
        self.x = 0;
        self.y += std::mem::take(&mut self.height);
    }
}
