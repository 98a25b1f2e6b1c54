//! When the Node of a departed machine is deleted.

use std::time::Duration;

use jiff::Timestamp;

use super::view::NodeView;

/// How long a kubelet must have been silent.
pub const DEAD_FOR: Duration = Duration::from_secs(60);

/// Whether nobody is behind this Node any more, so that it only holds Pods, hence demand.
#[must_use]
pub fn is_dead(node: &NodeView, now: Timestamp) -> bool {
    let Some(ready) = node.ready.filter(|ready| !ready.is_true) else { return false };
    let Some(since) = ready.since else { return false };
    Duration::try_from(now.duration_since(since)).is_ok_and(|silent| silent >= DEAD_FOR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::mirror::Version;
    use crate::nodes::view::ReadyCondition;

    #[test]
    fn only_a_node_that_has_been_unready_for_a_minute_is_dead() {
        let now = Timestamp::from_second(1_000).unwrap();
        let ago = |seconds: i64| Timestamp::from_second(1_000 - seconds).ok();
        let condition = |is_true, since| Some(ReadyCondition { is_true, since });
        for (ready, dead) in [
            (None, false),
            (condition(true, ago(600)), false),
            (condition(false, None), false),
            (condition(false, ago(59)), false),
            (condition(false, ago(60)), true),
            (condition(false, ago(-5)), false),
        ] {
            let node = NodeView {
                name: "n".into(),
                uid: "u".into(),
                version: Version::default(),
                machine: None,
                provider_id: None,
                unschedulable: false,
                instruction: None,
                deadline: None,
                cordoned_by_human: false,
                ready,
            };
            assert_eq!(is_dead(&node, now), dead, "{ready:?}");
        }
    }
}
