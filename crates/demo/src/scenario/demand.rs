//! Scenarios of demand alone.

use super::{
    baseline::level,
    record::Phase::{Act, Check},
    stage::{Played, Stage},
    view::{View, is_decided, is_rented},
};
use crate::{
    cluster::workload::{Class, MOST, Workload},
    supply::SITES,
};

const A: usize = 0;
const B: usize = 1;
const C: usize = 2;
const BATCH: Workload = Workload::Plain(Class::Batch);
const PRODUCTION: Workload = Workload::Plain(Class::Production);

/// Drop demand in A, raise it in B.
pub(crate) mod moved {
    use super::*;

    const DRAINED: &str = "machines of A drain to Idle";
    const WENT: &str = "machines of A go to B";
    const FREE: &str = "$/h unchanged";
    pub(crate) const CLAIMS: &[&str] = &[DRAINED, WENT, FREE];

    const DROP: u32 = 8;
    const RAISE: u32 = 10;

    pub(crate) async fn play(stage: &Stage<'_>) -> Played {
        let view = stage.view();
        let (of_a, before) = (view.serving(A), view.dollars());
        stage.guard(FREE, move |view, _| {
            let now = view.dollars();
            (now != before).then(|| format!("${now:.2}/h, before ${before:.2}/h"))
        });
        stage.step(Act, "demand in A drops by 8");
        stage.demand(A, BATCH, level(A, BATCH) - DROP);
        stage.step(Check, "machines of A drain to Idle");
        let left = stage
            .until(|view| {
                let left: Vec<String> = of_a.difference(&view.serving(A)).cloned().collect();
                let idle = left.iter().filter(|id| is_idle(view, id)).count();
                let gone = left.len();
                // A pod that came while another was leaving may have brought a machine of
                // its own; then one more is free in the end.
                if gone >= DROP as usize && idle == gone {
                    return view.resting().map(|()| left);
                }
                Err(format!("{gone} of {DROP} have left, {idle} are idle"))
            })
            .await?;
        stage.claim(DRAINED, true, named(&left));
        stage.step(Act, "demand in B rises by 10");
        stage.demand(B, BATCH, level(B, BATCH) + RAISE);
        stage.step(Check, "pods of B run on them");
        let went = stage
            .until(|view| {
                view.all_run(B)?;
                let of_b = view.serving(B);
                Ok(left.iter().filter(|id| of_b.contains(*id)).cloned().collect::<Vec<_>>())
            })
            .await?;
        // Four others were idle; the rest must be of A.
        let least = (RAISE - 4) as usize;
        stage.claim(WENT, went.len() >= least, named(&went));
        stage.relieve(FREE, format!("${before:.2}/h all the time"));
        Ok(())
    }

    /// How many, and the first two of them: a claim is a line of a table.
    fn named(machines: &[String]) -> String {
        let more = if machines.len() > 2 { ", …" } else { "" };
        let first: Vec<&str> = machines.iter().take(2).map(String::as_str).collect();
        format!("{}: {}{more}", machines.len(), first.join(", "))
    }

    fn is_idle(view: &View, id: &str) -> bool {
        use bigfleet_wire::v1alpha1::MachineState::Idle;
        view.all().any(|machine| machine.id == id && machine.state() == Idle)
    }
}

/// +24 units in C, then drop.
pub(crate) mod burst {
    use std::collections::BTreeSet;

    use bigfleet_wire::v1alpha1::{DecisionRecord, MachineState::Idle};

    use super::*;

    const COMMITTED: &str = "committed machines first, then cloud";
    const SHED: &str = "cloud shed first";
    const FREE: &str = "$/h back to what it was";
    pub(crate) const CLAIMS: &[&str] = &[COMMITTED, SHED, FREE];

    const UNITS: u32 = 24;

    pub(crate) async fn play(stage: &Stage<'_>) -> Played {
        let shard = stage.fleet.clusters[C].shard;
        let site = &SITES[shard];
        let units = level(C, BATCH) + level(C, PRODUCTION) + UNITS;
        let over = units as usize - site.committed();
        let free: BTreeSet<String> = stage
            .view()
            .general(shard, Idle)
            .into_iter()
            .filter(|machine| !is_rented(machine))
            .map(|machine| machine.id.clone())
            .collect();
        stage.step(Act, "demand in C rises by 24");
        stage.mark();
        stage.demand(C, BATCH, level(C, BATCH) + UNITS);
        stage.step(Check, "all of it runs");
        stage.until(|view| view.all_run(C)).await?;
        let view = stage.view();
        let of_shard: Vec<DecisionRecord> = stage
            .decisions()
            .into_iter()
            .filter(|it| it.shard == shard)
            .map(|it| it.record)
            .collect();
        let early = early(&free, &of_shard);
        let unused = view.general(shard, Idle).into_iter().filter(|it| !is_rented(it)).count();
        let rented = view.rented(shard).len();
        let detail = format!(
            "{} of {} committed machines in use, {rented} rented for {over} units, ${:.2}/h",
            site.committed() - unused,
            site.committed(),
            view.dollars()
        );
        let holds = early.is_none() && !free.is_empty() && unused == 0 && rented == over;
        stage.claim(COMMITTED, holds, early.unwrap_or(detail));
        if stage.guided {
            stage.pass(std::time::Duration::from_secs(3)).await?;
        }
        stage.step(Act, "demand in C drops by 24");
        stage.mark();
        stage.demand(C, BATCH, level(C, BATCH));
        stage.step(Check, "what is dear leaves first");
        stage.until(|view| view.resting()).await?;
        let cloud = |id: &str| view.all().any(|machine| machine.id == id && is_rented(machine));
        let order: Vec<bool> = stage
            .decisions()
            .iter()
            .filter(|it| it.shard == shard && is_decided(it, "Reclaim"))
            .map(|it| cloud(&it.record.machine_id))
            .collect();
        let first = order.iter().take_while(|cloud| **cloud).count();
        let late = order.iter().skip(first).filter(|cloud| **cloud).count();
        let detail = format!("{first} rented machines, then {} committed", order.len() - first);
        stage.claim(SHED, first >= over && late == 0, detail);
        stage.step(Check, "rented machines are given back");
        stage
            .until(|view| match view.dollars() {
                0.0 => Ok(()),
                dollars => Err(format!("${dollars:.2}/h")),
            })
            .await?;
        stage.claim(FREE, true, "$0.00/h");
        Ok(())
    }

    /// A purchase in a cycle that left a machine idle that is paid for anyway. Decisions of one
    /// cycle are told by machine, so that only the cycle says what was decided before what.
    pub(super) fn early(
        committed: &BTreeSet<String>,
        decisions: &[DecisionRecord],
    ) -> Option<String> {
        let decided = |kind: &'static str| {
            decisions.iter().filter(move |it| it.kind == kind && it.of_sequence == 0)
        };
        let bought = decided("Provision").min_by_key(|it| it.cycle)?;
        let taken: BTreeSet<&str> = decided("Bootstrap")
            .filter(|it| it.cycle <= bought.cycle)
            .map(|it| it.machine_id.as_str())
            .collect();
        let idle = committed.iter().find(|id| !taken.contains(id.as_str()))?;
        Some(format!("{} was bought while {idle} was idle", bought.machine_id))
    }
}

/// Load all.
pub(crate) mod saturate {
    use bigfleet_wire::v1alpha1::{MachineState::Configured, UnmetReason};

    use super::*;

    const CEILING: &str = "ceiling reached: every machine works";
    const REASONS: &str = "shortfalls appear, each with a reason";
    const ONLY_BATCH: &str = "production is served in full";
    pub(crate) const CLAIMS: &[&str] = &[CEILING, REASONS, ONLY_BATCH];

    pub(crate) async fn play(stage: &Stage<'_>) -> Played {
        stage.step(Act, "batch demand rises to 40 in every cluster");
        for cluster in [A, B, C] {
            stage.demand(cluster, BATCH, MOST);
        }
        stage.step(Check, "every machine works");
        let total: usize = SITES.iter().map(|site| site.general()).sum();
        stage
            .until(|view| {
                let busy: usize = (0..2).map(|shard| view.general(shard, Configured).len()).sum();
                if busy == total { Ok(()) } else { Err(format!("{busy} of {total} work")) }
            })
            .await?;
        let dollars = stage.view().dollars();
        stage.claim(CEILING, true, format!("{total} of {total}, ${dollars:.2}/h"));
        stage.step(Check, "what is short says why");
        let told = stage
            .until(|view| {
                let unmet = view.unmet();
                let told: Vec<String> = unmet
                    .iter()
                    .filter(|need| need.unmet_reason() != UnmetReason::Unspecified)
                    .map(|need| format!("{}: {}", need.cluster_id, reason(need)))
                    .collect();
                if told.len() >= 2 && told.len() == unmet.len() {
                    return Ok(told);
                }
                Err(format!("{} of {} tell why", told.len(), unmet.len()))
            })
            .await?;
        stage.claim(REASONS, true, told.join("; "));
        stage
            .until(|view| {
                let lacking = [A, B, C].iter().find(|at| !view.pods(**at, PRODUCTION).settled());
                lacking.map_or(Ok(()), |at| Err(format!("cluster {at} lacks production")))
            })
            .await?;
        let view = stage.view();
        let higher = view.unmet().iter().any(|need| priority(need) > Class::Batch.priority());
        stage.claim(ONLY_BATCH, !higher, "only needs of priority 100 are short");
        Ok(())
    }
}

/// The priority of a need.
pub(super) fn priority(need: &bigfleet_wire::v1alpha1::NeedView) -> i32 {
    need.need.as_ref().map_or(0, |need| need.priority)
}

/// What the engine said of an unmet need.
pub(super) fn reason(need: &bigfleet_wire::v1alpha1::NeedView) -> String {
    let detail = need.unmet_detail().as_str_name().trim_start_matches("UNMET_DETAIL_");
    match detail {
        "UNSPECIFIED" => {
            need.unmet_reason().as_str_name().trim_start_matches("UNMET_REASON_").to_owned()
        }
        detail => detail.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use bigfleet_wire::v1alpha1::DecisionRecord;

    use super::*;

    #[test]
    fn nothing_is_bought_in_a_cycle_that_leaves_a_committed_machine_idle() {
        let decided = |cycle, kind: &str, machine: &str| DecisionRecord {
            cycle,
            kind: kind.to_owned(),
            machine_id: machine.to_owned(),
            ..DecisionRecord::default()
        };
        let free = ["own-1", "own-2"].map(str::to_owned).into();
        let first = decided(4, "Bootstrap", "own-1");
        let bought = decided(5, "Provision", "cloud-1");
        // In the same cycle, and told after it.
        let second = decided(5, "Bootstrap", "own-2");
        let good = [first.clone(), bought.clone(), second.clone()];
        assert_eq!(burst::early(&free, &good), None);
        assert_eq!(burst::early(&free, std::slice::from_ref(&first)), None, "nothing was bought");
        let early = Some("cloud-1 was bought while own-2 was idle".to_owned());
        let late = DecisionRecord { cycle: 6, ..second };
        assert_eq!(burst::early(&free, &[first.clone(), bought.clone(), late.clone()]), early);
        let outcome = DecisionRecord { cycle: 5, of_sequence: 1, ..late };
        assert_eq!(burst::early(&free, &[first, bought, outcome]), early, "that is no decision");
    }
}
