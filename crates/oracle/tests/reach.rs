//! Random worlds are worth comparing only if every rule meets some of them.

use std::collections::BTreeMap;

use bigfleet_engine::ActionKind;
use bigfleet_oracle::{decide, worlds::world};

#[test]
fn random_worlds_reach_every_kind_of_outcome() {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let mut see = |what: String| *seen.entry(what).or_default() += 1;
    for seed in 0..6000 {
        let input = world(seed);
        let output = decide(&input);
        for action in &output.actions {
            see(action.kind.name().to_owned());
            if action.runner_up_cost.is_some() {
                see("runner-up".to_owned());
            }
            if action.cost == 0.0 && action.kind.name() == "Bootstrap" {
                see("free bootstrap".to_owned());
            }
            if action.domain_rule > 0 {
                see(format!("domain rule {}", action.domain_rule));
            }
            if let ActionKind::Preempt { grace, .. } = &action.kind {
                see(format!("grace {}", grace.as_secs()));
            }
        }
        for need in output.outgrown.values() {
            let verdict = &output.verdicts[need.0 as usize];
            see(format!("outgrown {:?}", verdict.outcome));
            see(format!("outgrown for {:?}", verdict.reason));
            if verdict.domain.is_some() {
                see("outgrown by a gang".to_owned());
            }
        }
        for verdict in &output.verdicts {
            see(format!("{:?}", verdict.outcome));
            see(format!("reason {:?}", verdict.reason));
            see(format!("detail {:?}", verdict.detail));
            for (what, is) in [
                ("fold", verdict.folded > 0),
                ("fold of several", verdict.folded > 1),
                ("satisfied fold of several", verdict.folded > 1 && verdict.satisfied),
                ("short fold", verdict.folded > 0 && !verdict.satisfied),
                ("parked", verdict.parked),
                ("domain", verdict.domain.is_some()),
                ("two keys", verdict.domain.as_ref().is_some_and(|domain| domain.len() > 1)),
                ("satisfiable", verdict.satisfiable),
                ("aged", verdict.gang_age > 0),
                ("zero aggregate", verdict.aggregate.is_zero()),
                ("several machines", verdict.claimed > 2),
                ("satisfied gang of several", {
                    verdict.domain.is_some() && verdict.satisfied && verdict.claimed > 1
                }),
            ] {
                if is {
                    see(what.to_owned());
                }
            }
        }
        for entry in &output.unresolved {
            see(format!("preempted {}", entry.preempted));
        }
    }
    let expected = [
        "AbsorbedBySupply",
        "EmittedIdle",
        "EmittedSpec",
        "Unsatisfied",
        "Bootstrap",
        "Provision",
        "Preempt",
        "Reclaim",
        "Delete",
        "aged",
        "detail None",
        "detail Some(BootstrapRefused)",
        "detail Some(NoSession)",
        "detail Some(PreemptionUnderWay)",
        "detail Some(ProviderFailing)",
        "detail Some(QuotaExhausted)",
        "detail Some(SpreadUnsatisfiable)",
        "domain",
        "domain rule 1",
        "domain rule 2",
        "domain rule 3",
        "domain rule 4",
        "domain rule 5",
        "domain rule 6",
        "domain rule 7",
        "fold",
        "fold of several",
        "free bootstrap",
        "grace 10",
        "grace 120",
        "grace 30",
        "grace 600",
        "outgrown AbsorbedBySupply",
        "outgrown EmittedIdle",
        "outgrown EmittedSpec",
        "outgrown Unsatisfied",
        "outgrown by a gang",
        "outgrown for Some(NoMatchingSupply)",
        "outgrown for Some(PriorityStarved)",
        "parked",
        "preempted false",
        "preempted true",
        "reason None",
        "reason Some(NoMatchingSupply)",
        "reason Some(PreemptionExhausted)",
        "reason Some(PriorityStarved)",
        "reason Some(TopologyUnsatisfiable)",
        "runner-up",
        "satisfiable",
        "satisfied fold of several",
        "satisfied gang of several",
        "several machines",
        "short fold",
        "two keys",
        "zero aggregate",
    ];
    println!("{seen:#?}");
    let missing: Vec<&str> =
        expected.into_iter().filter(|what| !seen.contains_key(*what)).collect();
    assert!(missing.is_empty(), "never seen: {missing:?}");
}
