//! What `explain` prints: a pure function of the shard's answer.

use std::{cmp::Reverse, fmt::Write as _};

use bigfleet_model::Quantity;
use bigfleet_wire::v1alpha1::{
    CapacityNeed, ExplainNeedResponse, NeedView, Resources, SupplyFunnel,
};

use crate::{
    command::{decisions::DecisionRow, reports::ESCALATED},
    output::{Format, rendered, table},
    reason, text, when,
};

/// Rows of the longer lists that fit a screen.
const MOST: usize = 10;

/// The whole screen.
#[must_use]
pub fn screen(shard: &str, explained: &ExplainNeedResponse, computed_at: i64, now: i64) -> String {
    let view = explained.need.clone().unwrap_or_default();
    let need = view.need.clone().unwrap_or_default();
    let mut out = String::new();
    verdict(&mut out, &view);
    let _ = writeln!(
        out,
        "\nshard {shard}, cycle {}, computed {} ago",
        explained.cycle,
        when::age(now, computed_at)
    );
    let _ =
        writeln!(out, "rank {} of {} in the engine's order\n", explained.rank, explained.rank_of);
    out += &profile(&view, &need, now);
    out.push('\n');
    out += &held(&view);
    out += &funnel(&explained.funnel.unwrap_or_default());
    out += &ahead(explained);
    out += &domains(explained, &view);
    out += &decisions(explained);
    out
}

fn verdict(out: &mut String, view: &NeedView) {
    if view.satisfied {
        let _ = writeln!(out, "SATISFIED  need of cluster {}", view.cluster_id);
        return;
    }
    let shown = reason::of(view.unmet_reason, view.unmet_detail);
    let _ = writeln!(out, "UNMET: {}  need of cluster {}", shown.name, view.cluster_id);
    let _ = writeln!(out, "  {}", shown.action);
    let base = reason::base(view.unmet_reason);
    if base.name != shown.name {
        let _ = writeln!(out, "  base reason: {}", base.name);
    }
    if !view.detail_text.is_empty() {
        let _ = writeln!(out, "  it says: {}", view.detail_text);
    }
    let _ = writeln!(out, "  short of: {}", text::resources(view.residual_deficit.as_ref()));
}

fn profile(view: &NeedView, need: &CapacityNeed, now: i64) -> String {
    let vector = |resources: &std::collections::BTreeMap<String, String>| {
        text::resources(Some(&Resources { resources: resources.clone() }))
    };
    let spread: Vec<String> = need
        .spread
        .iter()
        .map(|term| format!("{} skew {}", term.topology_key, term.max_skew.max(1)))
        .collect();
    let escalated = if view.age_cycles_unmet > ESCALATED { ", escalated" } else { "" };
    let mut rows = vec![
        ("requirements", text::requirements(&need.requirements)),
        ("spread", text::or_dash(&spread.join(", "))),
        ("priority", need.priority.to_string()),
        ("interruption penalty", text::penalty(need.interruption_penalty_bucket)),
        ("reclamation penalty", text::penalty(need.reclamation_penalty_bucket)),
        ("group", text::or_dash(&text::group(&need.group))),
        ("fingerprint", view.profile_fingerprint.clone()),
        ("demand", vector(&need.aggregate_resources)),
        ("smallest unit", vector(&need.min_unit)),
        ("pieces", pieces(need)),
        (
            "in demand since",
            format!(
                "{} ({})",
                when::instant(view.arrival_unix_nanos),
                when::age(now, view.arrival_unix_nanos)
            ),
        ),
    ];
    if !view.satisfied {
        rows.push(("unmet for", format!("{} cycles{escalated}", view.age_cycles_unmet)));
    }
    if view.acquisition_parked {
        rows.push((
            "parked",
            format!("for {} cycles; probed again now and then", view.parked_age_cycles),
        ));
    }
    table(rows.into_iter().map(|(name, value)| vec![format!("  {name}"), value]))
}

/// How many smallest units the demand is at least, and of which resource.
fn pieces(need: &CapacityNeed) -> String {
    let nanos = |text: &String| text.parse::<Quantity>().ok().map(Quantity::nanos);
    let each = need.min_unit.iter().filter_map(|(name, unit)| {
        let unit = nanos(unit).filter(|unit| *unit > 0)?;
        let all = nanos(need.aggregate_resources.get(name)?)?;
        Some((all.div_euclid(unit) + i128::from(all.rem_euclid(unit) > 0), name))
    });
    // Of equals the first by name, as the dashboard has it.
    each.max_by_key(|(count, name)| (*count, Reverse(*name))).map_or_else(
        || "—".to_owned(),
        |(count, name)| format!("{count} by {name} (estimate; machines, not pods)"),
    )
}

fn held(view: &NeedView) -> String {
    let mut out = format!(
        "machines: {} held, of which {} idle ones were taken and {} bought this cycle\n",
        view.claimed_machine_count, view.bootstrap_count, view.provision_count
    );
    if let Some(preemption) = &view.preemption {
        let _ = writeln!(
            out,
            "preemption: {} victims found, they would free {}",
            preemption.victims_found,
            text::resources(preemption.capacity_freed.as_ref())
        );
    }
    out
}

fn funnel(funnel: &SupplyFunnel) -> String {
    let rows = [
        ("match the requirements", funnel.matching),
        ("hold the smallest unit", funnel.usable),
        ("bound here", funnel.bound_here),
        ("in use by others", funnel.bound_elsewhere),
        ("idle and free", funnel.idle_free),
        ("speculative and free", funnel.speculative_free),
        ("in transition", funnel.in_transition),
        ("failed", funnel.failed),
        ("held back (backoff, quota)", funnel.held_back),
        ("taken this cycle", funnel.taken_this_cycle),
        ("claimed by this need", funnel.claimed),
    ];
    let rows = rows.iter().map(|(name, count)| vec![format!("  {name}"), count.to_string()]);
    format!("\nsupply funnel, machines of this shard\n{}", table(rows))
}

fn ahead(explained: &ExplainNeedResponse) -> String {
    if explained.ahead.is_empty() {
        return "\nnobody ahead took a matching machine this cycle\n".to_owned();
    }
    let head = ["  CLUSTER", "PRIORITY", "MACHINES", "FINGERPRINT"].map(str::to_owned).to_vec();
    let rows = explained.ahead.iter().take(MOST).map(|ahead| {
        vec![
            format!("  {}", ahead.cluster_id),
            ahead.priority.to_string(),
            ahead.machines_taken.to_string(),
            ahead.profile_fingerprint.clone(),
        ]
    });
    let list = table(std::iter::once(head).chain(rows));
    format!("\nwho is ahead: {} needs took matching machines\n{list}", explained.ahead.len())
}

fn domains(explained: &ExplainNeedResponse, view: &NeedView) -> String {
    if explained.domains.is_empty() && view.same_domain.is_empty() {
        return String::new();
    }
    let chosen = text::or_dash(&view.same_domain);
    let head = ["  DOMAIN", "COVERAGE", "SUFFICES"].map(str::to_owned).to_vec();
    let rows = explained.domains.iter().take(MOST).map(|domain| {
        let coverage = domain.coverage_per_mille;
        let suffices = if domain.satisfiable { "yes" } else { "no" };
        vec![
            format!("  {}", domain.domain),
            format!("{}.{}%", coverage / 10, coverage % 10),
            suffices.to_owned(),
        ]
    });
    let list = table(std::iter::once(head).chain(rows));
    let count = explained.domains.len();
    format!("\nco-location: domain {chosen} of {count} candidates, best first\n{list}")
}

fn decisions(explained: &ExplainNeedResponse) -> String {
    if explained.decisions.is_empty() {
        return String::new();
    }
    let rows: Vec<DecisionRow> =
        explained.decisions.iter().take(MOST).cloned().map(Into::into).collect();
    // A table cannot fail to be written.
    let list = rendered(Format::Table, &rows).unwrap_or_default();
    format!("\ndecisions that touched it, newest first\n{list}")
}
