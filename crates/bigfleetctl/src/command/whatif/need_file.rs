//! A need in a file.

use bigfleet_plain::need::NeedText;
use bigfleet_wire::v1alpha1::CapacityNeed;

use crate::yaml;

/// The need in a file.
pub(super) fn parse(text: &str) -> Result<CapacityNeed, String> {
    yaml::read::<NeedText>(text)?.into_wire()
}

#[cfg(test)]
mod tests {
    use bigfleet_wire::v1alpha1::{
        node_selector_requirement::Operator, topology_spread::WhenUnsatisfiable,
    };

    use super::*;

    #[test]
    fn a_need_is_read_with_and_without_prefixes() {
        let need = parse(
            "requirements:\n- {key: zone, operator: In, values: [a]}\n- {key: rack, operator: OPERATOR_SAME}\n\
             aggregateResources: {cpu: 64, memory: 256Gi, share: 0.5}\nminUnit: {cpu: 8}\npriority: 1000\n\
             spread: [{topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]\n\
             interruptionPenaltyBucket: 1024\nreclamationPenaltyBucket: pinned\ngroup: 'rack\\0a=b,;\\0ns'\n",
        )
        .unwrap();
        assert_eq!(need.requirements[0].operator(), Operator::In);
        assert_eq!(need.requirements[1].operator(), Operator::Same);
        assert_eq!(need.aggregate_resources["cpu"], "64");
        assert_eq!(need.aggregate_resources["share"], "0.5");
        assert_eq!(need.aggregate_resources["memory"], "256Gi");
        assert_eq!(need.spread[0].when_unsatisfiable(), WhenUnsatisfiable::ScheduleAnyway);
        assert_eq!((need.interruption_penalty_bucket, need.reclamation_penalty_bucket), (13, 27));
        assert_eq!(need.group, "rack\0a=b,;\0ns");
        let plain = parse("{\"aggregateResources\": {\"cpu\": \"1\"}}").unwrap();
        assert_eq!(plain.interruption_penalty_bucket, 1);
    }

    #[test]
    fn refusals_name_the_field() {
        for (text, named) in [
            ("aggregateResources: {cpu: 1}\ncount: 3\n", "line 2"),
            ("priority: 1\n", "aggregateResources"),
            (
                "aggregateResources: {cpu: 1}\ninterruptionPenaltyBucket: 3\n",
                "interruptionPenaltyBucket",
            ),
            ("aggregateResources: {cpu: 1}\nrequirements: [{key: a, operator: Gt}]\n", "Gt"),
        ] {
            let problem = parse(text).unwrap_err();
            assert!(problem.contains(named), "{problem}");
        }
    }
}
