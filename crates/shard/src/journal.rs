//! What is written down of decisions and moves: the audit log and the latency
//! metrics.

use bigfleet_engine::{Action, NeedKey};
use bigfleet_model::{Machine, MachineState};

use crate::{
    live::{Desk, Live},
    outcome::{Disposition, Outcome},
    shard::Shard,
};

impl Desk<'_> {
    /// Writes down what was decided for a machine, and whether it is done; the
    /// number of the record.
    pub(crate) fn record(&self, action: &Action, cycle: u64, how: Disposition) -> i64 {
        let stamp = self.stamp(&action.machine);
        self.shard.audit.decided(cycle as i64, action, stamp.as_deref(), how)
    }
}

impl Shard {
    /// Writes down what became of an action.
    pub(crate) fn record_outcome(
        &self,
        decision: i64,
        outcome: Outcome,
        error: &str,
        operation_id: &str,
    ) {
        self.audit.outcome(decision, outcome, operation_id, error);
    }

    /// Measures what a move ends. Terminal effects count when the terminal state is
    /// seen, by whichever path.
    pub(crate) fn observe_move(&self, live: &mut Live, before: &Machine, after: &Machine) {
        use MachineState::{Configured, Configuring, Deleting, Draining, Idle, Speculative};
        let since = live.passing.get(&after.id).map(|(_, since)| since.elapsed().as_secs_f64());
        match (before.state, after.state) {
            (Configuring, Configured) => {
                since.into_iter().for_each(|since| self.metrics.configure_phase.observe(since));
            }
            (Draining, Idle) => {
                since.into_iter().for_each(|since| self.metrics.drain_phase.observe(since));
            }
            (Deleting, Speculative) => drop(self.metrics.idle_releases.inc()),
            _ => {}
        }
        if after.state == Configured
            && let (Some(stamp), Some(cluster)) = (&after.stamp, &after.cluster)
        {
            let need = NeedKey {
                cluster: cluster.clone(),
                fingerprint: stamp.fingerprint.clone(),
                group: stamp.group.clone(),
            };
            self.observe_first_machine(live, &need);
        }
    }

    /// A machine is Configured for a need. Only the first is news.
    pub(crate) fn observe_first_machine(&self, live: &mut Live, need: &NeedKey) {
        if let Some(rolled_up) = live.awaiting.remove(need) {
            self.metrics.provisioning_latency.observe(rolled_up.elapsed().as_secs_f64());
        }
    }
}
