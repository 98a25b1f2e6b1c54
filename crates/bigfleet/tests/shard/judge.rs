//! What must never have happened, judged by the provider's records over time and
//! by the audit log.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::BufReader,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use bigfleet_scripted::{member::Member, operator::State};
use bigfleet_shard::audit::{
    Record,
    check::{Summary, check},
};
use bigfleet_wire::v1alpha1::{Machine, MachineState};
use jiff::Timestamp;
use tokio::{task::JoinHandle, time::sleep};

pub(crate) use crate::rig::audit::records;
use crate::site::Truth;

/// How often the provider is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// One machine at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sight {
    pub(crate) state: MachineState,
    pub(crate) cluster: String,
}

impl Sight {
    fn of(machine: &Machine) -> Self {
        Self { state: machine.state(), cluster: machine.cluster.clone() }
    }

    /// Nobody's node: what configured it is over.
    fn is_free(&self) -> bool {
        !matches!(self.state, MachineState::Configuring | MachineState::Configured)
    }
}

/// Changes of every machine, with the time before which each was seen.
pub(crate) type History = BTreeMap<String, Vec<(Timestamp, Sight)>>;

/// Looks at the provider all the time; a provider that is down is not seen.
#[derive(Debug)]
pub(crate) struct Witness {
    history: Arc<Mutex<History>>,
    looking: JoinHandle<()>,
}

impl Witness {
    pub(crate) fn start(mut truth: Truth) -> Self {
        let history = Arc::new(Mutex::new(History::new()));
        let seen = history.clone();
        let looking = tokio::spawn(async move {
            loop {
                if let Some(machines) = truth.list().await {
                    let now = Timestamp::now();
                    let mut seen = seen.lock().unwrap();
                    machines.iter().for_each(|machine| note(&mut seen, now, machine));
                }
                sleep(LOOK).await;
            }
        });
        Self { history, looking }
    }

    /// What became of every machine until now.
    pub(crate) async fn history(&self) -> History {
        sleep(LOOK * 4).await;
        assert!(!self.looking.is_finished(), "it saw an odd record; see above");
        self.history.lock().unwrap().clone()
    }

    /// No Configure over a binding, by the log of all processes of this shard: who
    /// was bound was drained, or seen free by us, before it is bound again.
    pub(crate) fn no_double_bind(&self, audit: &Path) {
        assert!(!self.looking.is_finished(), "it saw an odd record; see above");
        no_double_bind(&self.history.lock().unwrap(), records(audit));
    }
}

fn no_double_bind(history: &History, records: Vec<Record>) {
    let mut decisions: BTreeMap<i64, Record> = BTreeMap::new();
    let mut bound: BTreeMap<String, Record> = BTreeMap::new();
    for record in records {
        let machine = record.machine.to_string();
        let Some(of) = record.of else {
            if record.kind == "Bootstrap"
                && let Some(before) = bound.remove(&machine)
            {
                let sights = history.get(&machine).map(Vec::as_slice).unwrap_or_default();
                let between = |at: &Timestamp| *at >= before.time && *at <= record.time;
                let freed = sights.iter().any(|(at, sight)| between(at) && sight.is_free());
                assert!(freed, "bound over a binding:\n{before:?}\n{record:?}\n{sights:?}");
            }
            if matches!(&*record.kind, "Reclaim" | "Preempt") {
                bound.remove(&machine);
            }
            decisions.insert(record.seq, record);
            continue;
        };
        let decision = &decisions[&of];
        if decision.kind == "Bootstrap" && record.outcome == "success" {
            bound.insert(machine, record);
        }
    }
}

/// Watches what clusters believe: a machine that two of them would put pods on, for
/// longer than a frame is on its way, serves both.
pub(crate) fn watch_pictures(members: Arc<Vec<Member>>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut suspects: BTreeMap<String, usize> = BTreeMap::new();
        loop {
            let mut seen: BTreeSet<String> = BTreeSet::new();
            let mut twice: BTreeMap<String, usize> = BTreeMap::new();
            for member in members.iter() {
                let own = member.operator().await.read(schedulable);
                for machine in own.into_iter().filter(|machine| !seen.insert(machine.clone())) {
                    let looks = suspects.get(&machine).copied().unwrap_or_default() + 1;
                    assert!(looks < 50, "{machine} is in two clusters");
                    twice.insert(machine, looks);
                }
            }
            suspects = twice;
            sleep(LOOK * 2).await;
        }
    })
}

fn schedulable(state: &State) -> Vec<String> {
    if state.ended.is_some() || !state.picture.resynced {
        return Vec::new();
    }
    let machines = state.picture.machines.keys();
    machines.filter(|machine| state.picture.schedulable(machine)).cloned().collect()
}

fn note(history: &mut History, now: Timestamp, machine: &Machine) {
    let sight = Sight::of(machine);
    let bound = matches!(
        sight.state,
        MachineState::Configuring | MachineState::Configured | MachineState::Draining
    );
    let free = matches!(sight.state, MachineState::Idle | MachineState::Speculative);
    assert!(!bound || !sight.cluster.is_empty(), "bound to nobody: {machine:?}");
    assert!(!free || sight.cluster.is_empty(), "free and bound: {machine:?}");
    let sights = history.entry(machine.id.clone()).or_default();
    if sights.last().is_none_or(|(_, last)| *last != sight) {
        sights.push((now, sight));
    }
}

/// Every decision has one outcome, or its process ended (invariant 22).
pub(crate) fn inv_22(audit: &Path) -> Summary {
    check(BufReader::new(File::open(audit).unwrap())).unwrap_or_else(|broken| panic!("{broken}"))
}

/// How often each outcome came.
pub(crate) fn outcomes(audit: &Path) -> BTreeMap<(String, String), usize> {
    let mut outcomes = BTreeMap::new();
    for record in records(audit) {
        *outcomes.entry((record.kind.to_string(), record.outcome.to_string())).or_default() += 1;
    }
    outcomes
}

/// Nothing was refused: calls failed for want of an answer or not at all.
pub(crate) fn nothing_refused(audit: &Path) {
    let odd = ["fenced", "ack_rejected", "transition_error", "other"];
    for record in records(audit) {
        assert!(!odd.contains(&&*record.outcome), "{record:?}");
        let unanswered = record.error.starts_with("unavailable: ");
        assert!(record.outcome != "provider_error" || unanswered, "{record:?}");
    }
}

/// Machines by the cluster they serve.
pub(crate) fn by_cluster(machines: &[Machine]) -> BTreeMap<String, BTreeSet<String>> {
    let mut clusters: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for machine in machines.iter().filter(|machine| !machine.cluster.is_empty()) {
        clusters.entry(machine.cluster.clone()).or_default().insert(machine.id.clone());
    }
    clusters
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(seq: i64, kind: &str, of: Option<i64>, second: i64) -> Record {
        let outcome = if of.is_some() { "success" } else { "decided" };
        let time = Timestamp::from_second(second).unwrap();
        let mut record = serde_json::json!({
            "time": time.to_string(), "cycle": 1, "kind": kind, "machine": "m", "cluster": "c",
            "reason": "", "grace_seconds": 0, "outcome": outcome, "seq": seq, "need": "",
            "group": "", "priority": 0, "preemptor_priority": 0, "cost": null,
            "runner_up_cost": null,
        });
        if let Some(of) = of {
            record["of"] = of.into();
        }
        serde_json::from_value(record).unwrap()
    }

    fn bind(seq: i64, second: i64) -> [Record; 2] {
        [record(seq, "Bootstrap", None, second), record(seq + 1, "Bootstrap", Some(seq), second)]
    }

    #[test]
    fn a_drain_or_a_free_machine_in_between_is_no_double_bind() {
        let drain = record(3, "Reclaim", None, 2);
        let drained = [&bind(1, 1)[..], &[drain], &bind(4, 3)].concat();
        no_double_bind(&History::new(), drained);
        let free = Sight { state: MachineState::Failed, cluster: "c".to_owned() };
        let seen = vec![(Timestamp::from_second(2).unwrap(), free)];
        let history = History::from([("m".to_owned(), seen)]);
        no_double_bind(&history, [bind(1, 1), bind(3, 3)].concat());
    }

    #[test]
    #[should_panic(expected = "bound over a binding")]
    fn a_second_configure_is_a_double_bind() {
        no_double_bind(&History::new(), [bind(1, 1), bind(3, 3)].concat());
    }

    #[test]
    #[should_panic(expected = "free and bound")]
    fn a_free_machine_has_no_cluster() {
        let machine = Machine {
            state: MachineState::Idle.into(),
            cluster: "c".to_owned(),
            ..Machine::default()
        };
        note(&mut History::new(), Timestamp::now(), &machine);
    }
}
