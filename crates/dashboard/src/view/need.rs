//! A need with its verdict.

use std::{borrow::Cow, collections::BTreeMap};

use bigfleet_wire::v1alpha1::{
    CapacityNeed, DomainCoverage, InspectNeedsHeader, NeedView, NodeSelectorRequirement,
    TopologySpread, node_selector_requirement::Operator,
};
use bytes::Bytes;
use serde::{Serialize, Serializer};

use super::{bucket, instant, requirements, spread, unmet_detail, unmet_reason, vector};

/// A need with the verdict of the last cycle.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Need<'a> {
    cluster_id: &'a str,
    profile_fingerprint: &'a str,
    arrival_unix_nanos: Option<i64>,
    satisfied: bool,
    need: Asked<'a>,
    residual_deficit: Option<&'a BTreeMap<String, String>>,
    claimed_machine_count: i32,
    bootstrap_count: i32,
    provision_count: i32,
    same_domain: &'a str,
    same_satisfiable: Option<bool>,
    acquisition_parked: bool,
    parked_age_cycles: i32,
    age_cycles_unmet: i32,
    reason: Option<&'static str>,
    unmet_reason: Option<&'static str>,
    unmet_detail: Option<&'static str>,
    detail_text: &'a str,
    matching_supply: Option<Supply>,
    preemption: Option<Preemption<'a>>,
    #[serde(serialize_with = "domains")]
    same_candidates: &'a [DomainCoverage],
}

/// What a cluster asked for.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Asked<'a> {
    #[serde(serialize_with = "requirements")]
    requirements: &'a [NodeSelectorRequirement],
    aggregate_resources: &'a BTreeMap<String, String>,
    min_unit: &'a BTreeMap<String, String>,
    priority: i32,
    #[serde(serialize_with = "spread")]
    spread: &'a [TopologySpread],
    #[serde(serialize_with = "bucket")]
    interruption_penalty_bucket: i32,
    #[serde(serialize_with = "bucket")]
    reclamation_penalty_bucket: i32,
    group: &'a str,
}

#[derive(Serialize)]
struct Supply {
    idle: i32,
    configured: i32,
    speculative: i32,
    capped: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Preemption<'a> {
    victims_found: i32,
    capacity_freed: Option<&'a BTreeMap<String, String>>,
}

impl<'a> Need<'a> {
    /// As the shard says; `asked` stands in for a need that is missing from it.
    #[must_use]
    pub(crate) fn new(view: &'a NeedView, asked: &'a CapacityNeed) -> Self {
        let need = view.need.as_ref().unwrap_or(asked);
        let same = need.requirements.iter().any(|one| one.operator() == Operator::Same);
        let detail = unmet_detail(view.unmet_detail);
        let reason = unmet_reason(view.unmet_reason);
        Self {
            cluster_id: &view.cluster_id,
            profile_fingerprint: &view.profile_fingerprint,
            arrival_unix_nanos: instant(view.arrival_unix_nanos),
            satisfied: view.satisfied,
            need: Asked {
                requirements: &need.requirements,
                aggregate_resources: &need.aggregate_resources,
                min_unit: &need.min_unit,
                priority: need.priority,
                spread: &need.spread,
                interruption_penalty_bucket: need.interruption_penalty_bucket,
                reclamation_penalty_bucket: need.reclamation_penalty_bucket,
                group: &need.group,
            },
            residual_deficit: vector(view.residual_deficit.as_ref()),
            claimed_machine_count: view.claimed_machine_count,
            bootstrap_count: view.bootstrap_count,
            provision_count: view.provision_count,
            same_domain: &view.same_domain,
            same_satisfiable: same.then_some(view.same_satisfiable),
            acquisition_parked: view.acquisition_parked,
            parked_age_cycles: view.parked_age_cycles,
            age_cycles_unmet: view.age_cycles_unmet,
            reason: if view.satisfied { None } else { detail.or(reason) },
            unmet_reason: reason,
            unmet_detail: detail,
            detail_text: &view.detail_text,
            matching_supply: view.matching_supply.as_ref().map(|supply| Supply {
                idle: supply.idle,
                configured: supply.configured,
                speculative: supply.speculative,
                capped: supply.capped,
            }),
            preemption: view.preemption.as_ref().map(|preemption| Preemption {
                victims_found: preemption.victims_found,
                capacity_freed: vector(preemption.capacity_freed.as_ref()),
            }),
            same_candidates: &view.same_candidates,
        }
    }
}

/// How well one domain would do.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Domain<'a> {
    domain: &'a str,
    coverage_per_mille: i32,
    satisfiable: bool,
}

/// Domains, written without a copy.
pub(crate) fn domains<S: Serializer>(
    all: &&[DomainCoverage],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(all.iter().map(|wire| Domain {
        domain: &wire.domain,
        coverage_per_mille: wire.coverage_per_mille,
        satisfiable: wire.satisfiable,
    }))
}

/// All needs of an answer as JSON, made while they arrive: what is left to do when the last one is
/// here is to send it. Rows can still be told apart, for a viewer may not see every cluster.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// What the shard said of the whole.
    pub(crate) header: InspectNeedsHeader,
    /// The rows, with a comma after each.
    pub(crate) json: Bytes,
    /// Where each ends, and whose it is.
    pub(crate) ends: Vec<(usize, u32)>,
    /// Clusters by the number in `ends`.
    pub(crate) clusters: Vec<String>,
}

/// [`Rows`] in the making.
#[derive(Debug, Default)]
pub(crate) struct RowsWriter {
    rows: Rows,
    json: Vec<u8>,
    numbers: BTreeMap<String, u32>,
    asked: CapacityNeed,
}

impl RowsWriter {
    /// Nothing so far.
    #[must_use]
    pub(crate) fn new(header: InspectNeedsHeader) -> Self {
        Self { rows: Rows { header, ..Rows::default() }, ..Self::default() }
    }

    /// One more.
    pub(crate) fn push(&mut self, view: &NeedView) -> Result<(), serde_json::Error> {
        serde_json::to_writer(&mut self.json, &Need::new(view, &self.asked))?;
        self.json.push(b',');
        let number = match self.numbers.get(&view.cluster_id) {
            Some(number) => *number,
            None => {
                let number = u32::try_from(self.rows.clusters.len()).unwrap_or(u32::MAX);
                self.rows.clusters.push(view.cluster_id.clone());
                self.numbers.insert(view.cluster_id.clone(), number);
                number
            }
        };
        self.rows.ends.push((self.json.len(), number));
        Ok(())
    }

    /// All of them.
    #[must_use]
    pub(crate) fn finish(mut self) -> Rows {
        self.rows.json = self.json.into();
        self.rows
    }
}

impl Rows {
    /// The rows of clusters that may be seen, at most so many, without the last comma; and how
    /// many there are besides the limit.
    #[must_use]
    pub(crate) fn visible(
        &self,
        sees: impl Fn(&str) -> bool,
        limit: usize,
    ) -> (Cow<'_, [u8]>, usize) {
        let seen: Vec<bool> = self.clusters.iter().map(|cluster| sees(cluster)).collect();
        if seen.iter().all(|seen| *seen) {
            let shown = self.ends.len().min(limit);
            let end = shown.checked_sub(1).map_or(0, |last| self.ends[last].0 - 1);
            return (Cow::Borrowed(&self.json[..end]), self.ends.len());
        }
        let (mut json, mut total, mut start) = (Vec::new(), 0, 0);
        for (end, cluster) in &self.ends {
            if seen[*cluster as usize] {
                total += 1;
                if total <= limit {
                    json.extend_from_slice(&self.json[start..*end]);
                }
            }
            start = *end;
        }
        json.pop();
        (Cow::Owned(json), total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(clusters: &[&str]) -> Rows {
        let mut writer = RowsWriter::new(InspectNeedsHeader::default());
        for cluster in clusters {
            let view = NeedView { cluster_id: (*cluster).to_owned(), ..NeedView::default() };
            writer.push(&view).unwrap();
        }
        writer.finish()
    }

    fn clusters(json: &[u8]) -> Vec<String> {
        let text = format!("[{}]", std::str::from_utf8(json).unwrap());
        let rows: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
        rows.iter().map(|row| row["clusterId"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn only_visible_rows_are_shown_and_counted() {
        let rows = rows(&["a", "b", "a", "c"]);
        let all = rows.visible(|_| true, 10);
        assert_eq!((clusters(&all.0).len(), all.1), (4, 4));
        let some = rows.visible(|cluster| cluster != "a", 10);
        assert_eq!((clusters(&some.0), some.1), (vec!["b".to_owned(), "c".to_owned()], 2));
        let first = rows.visible(|cluster| cluster == "a", 1);
        assert_eq!((clusters(&first.0), first.1), (vec!["a".to_owned()], 2));
        assert_eq!(clusters(&rows.visible(|_| true, 3).0), ["a", "b", "a"]);
        assert_eq!(rows.visible(|_| false, 3), (Cow::Borrowed(&[][..]), 0));
        assert!(super::Rows::default().visible(|_| true, 3).0.is_empty());
    }

    #[test]
    fn verdicts_that_do_not_apply_are_null() {
        let rows = rows(&["a"]);
        let row: serde_json::Value = serde_json::from_slice(&rows.visible(|_| true, 1).0).unwrap();
        for field in [
            "reason",
            "unmetReason",
            "residualDeficit",
            "sameSatisfiable",
            "arrivalUnixNanos",
            "matchingSupply",
        ] {
            assert!(row[field].is_null(), "{field}");
        }
    }
}
