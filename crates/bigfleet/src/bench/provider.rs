//! What a shard and its provider do between two cycles, at once.

use bigfleet_engine::{ActionKind, Time, Tracked};
use bigfleet_model::{HostRef, MachineState};

/// The machine once the action is done.
pub(super) fn completed(mut tracked: Tracked, kind: &ActionKind, now: Time) -> Tracked {
    let machine = &mut tracked.machine;
    match kind {
        ActionKind::Bootstrap(acquisition) | ActionKind::Provision(acquisition) => {
            machine.state = MachineState::Configured;
            machine.cluster = Some(acquisition.cluster.clone());
            machine.stamp = Some(acquisition.stamp.clone());
            tracked.idle_since = None;
        }
        ActionKind::Preempt { .. } | ActionKind::Reclaim { .. } => {
            machine.state = MachineState::Idle;
            machine.cluster = None;
            machine.stamp = None;
            tracked.idle_since = Some(now);
        }
        ActionKind::Delete => {
            machine.state = MachineState::Speculative;
            machine.host = None;
            tracked.idle_since = None;
        }
    }
    if machine.state != MachineState::Speculative && machine.host.is_none() {
        machine.host =
            Some(HostRef { provider: "bench".to_owned(), reference: machine.id.to_string() });
    }
    tracked
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bigfleet_engine::ActionCounts as Counts;
    use bigfleet_model::Stamp;

    use super::*;
    use crate::bench::{
        driver::{Driver, Pass},
        make::{MachineSpec, Maker, NeedSpec, cluster, need},
    };

    #[test]
    fn what_is_bought_is_stamped_as_its_need_and_goes_when_nobody_wants_it() {
        let (mut driver, id) = (Driver::new(1), cluster(0));
        let spec = |i: usize, state| MachineSpec {
            id: format!("m-{i}"),
            state,
            instance_type: "kind",
            size: &[("cpu", "1")],
            ..MachineSpec::default()
        };
        let mut maker = Maker::default();
        driver.upsert(&maker.make(spec(0, MachineState::Idle)));
        driver.upsert(&maker.make(spec(1, MachineState::Speculative)));
        let wanted = need(NeedSpec {
            cluster: &id,
            types: &["kind"],
            priority: 1000,
            penalties: (8192.0, f64::INFINITY),
            unit: &[("cpu", "1")],
            units: 2,
            same_rack: false,
            group: String::new(),
            arrival: 1,
        });
        driver.replace(&id, std::slice::from_ref(&wanted));
        driver.cycle(Pass::Full);
        assert_eq!(driver.counts(), Counts { bootstrap: 1, provision: 1, ..Counts::default() });
        let done = driver.completions();
        for tracked in &done {
            let machine = &tracked.machine;
            assert_eq!(machine.state, MachineState::Configured);
            assert!(machine.host.is_some());
            assert_eq!(machine.stamp, Some(Arc::new(Stamp::of(&wanted))));
        }
        for tracked in done {
            driver.upsert(&tracked);
        }
        driver.cycle(Pass::Full);
        assert_eq!(driver.counts(), Counts::default());

        driver.replace(&id, &[]);
        driver.cycle(Pass::Full);
        assert_eq!(driver.counts(), Counts { reclaim: 2, ..Counts::default() });
        for tracked in driver.completions() {
            let machine = &tracked.machine;
            assert_eq!((machine.state, &machine.cluster), (MachineState::Idle, &None));
            assert!(tracked.idle_since.is_some() && machine.stamp.is_none());
        }
    }
}
