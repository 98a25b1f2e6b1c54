//! Scenario: 16 GPU machines in one rack.

use bigfleet_wire::v1alpha1::{ExplainNeedRequest, NeedView};

use super::{
    record::{
        Domain, Explain,
        Phase::{Act, Check},
    },
    stage::{Played, Stage},
};
use crate::{
    cluster::workload::Workload,
    supply::{RACK, RACKS},
};

const C: usize = 2;
const ALL_RUN: &str = "all 16 pods run";
const ONE_RACK: &str = "one rack holds them all";
const EXPLAINED: &str = "the engine explains which domain it chose";
pub(crate) const CLAIMS: &[&str] = &[ALL_RUN, ONE_RACK, EXPLAINED];

pub(crate) async fn play(stage: &Stage<'_>) -> Played {
    let cluster = &stage.fleet.clusters[C];
    stage.step(Act, "C asks for 16 GPU machines that share a rack");
    stage.demand(C, Workload::Gang, RACK as u32);
    stage.step(Check, "all of them run in one rack");
    stage
        .until(|view| match view.pods(C, Workload::Gang) {
            pods if pods.settled() => Ok(()),
            pods => Err(format!("{} of {} run", pods.running, pods.wanted)),
        })
        .await?;
    stage.claim(ALL_RUN, true, format!("{RACK} of {RACK}"));
    let places = cluster.places(Workload::Gang, bigfleet_provider_sim::topology::RACK_LABEL);
    let racks: std::collections::BTreeSet<&str> =
        places.values().map(|(_, rack)| rack.as_str()).collect();
    let text = racks.iter().copied().collect::<Vec<_>>().join(", ");
    stage.claim(ONE_RACK, racks.len() == 1 && places.len() == RACK, text);
    stage.step(Check, "the engine says which domains it looked at");
    let is_gang = |need: &&NeedView| {
        need.cluster_id == cluster.name && !need.same_domain.is_empty() && need.satisfied
    };
    let need = stage
        .until(|view| {
            let found = view.shards[cluster.shard].needs.iter().find(is_gang).cloned();
            found.ok_or_else(|| "no satisfied need with a domain yet".to_owned())
        })
        .await?;
    let request = ExplainNeedRequest {
        cluster_id: cluster.name.clone(),
        profile_fingerprint: need.profile_fingerprint.clone(),
        group: need.need.map(|need| need.group).unwrap_or_default(),
    };
    let group = request.group.clone();
    let answer = stage.fleet.eyes.explain(cluster.shard, request).await?;
    let domains: Vec<Domain> = answer
        .domains
        .into_iter()
        .map(|it| Domain {
            domain: it.domain,
            coverage_per_mille: it.coverage_per_mille,
            satisfiable: it.satisfiable,
        })
        .collect();
    let detail = format!("{} of {} domains", need.same_domain, domains.len());
    let runs_there = racks.contains(need.same_domain.as_str());
    stage.claim(EXPLAINED, runs_there && explains(&domains, &need.same_domain), detail);
    stage.explain(Explain {
        shard: stage.fleet.shards[cluster.shard].part.id.clone(),
        cluster: cluster.name.clone(),
        fingerprint: need.profile_fingerprint,
        group,
        same_domain: need.same_domain,
        domains,
    });
    Ok(())
}

/// Whether every rack was looked at, and the chosen one could hold the gang.
fn explains(domains: &[Domain], chosen: &str) -> bool {
    let could = |it: &Domain| it.domain == chosen && it.satisfiable;
    domains.len() == RACKS && domains.iter().any(could)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_explained_by_all_domains_and_the_chosen_among_them() {
        let domain = |name: &str, satisfiable| Domain {
            domain: name.to_owned(),
            coverage_per_mille: 1_000,
            satisfiable,
        };
        let both = [domain("r1", true), domain("r2", true)];
        assert!(explains(&both, "r1") && explains(&both, "r2"));
        assert!(!explains(&[], "r1"), "nothing was looked at");
        assert!(!explains(&both[..1], "r1"), "one was not looked at");
        assert!(!explains(&both, "r3"), "another one");
        assert!(!explains(&[domain("r1", false), domain("r2", true)], "r1"), "it could not");
    }
}
