//! Everything at once: frames, instructions, restarts, outages, conflicts, stale caches, humans.
//!
//! `BIGFLEET_SEED` replays one seed; `BIGFLEET_SEEDS` says how many are tried.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bigfleet_crds::{UpcomingNode, UpcomingNodePhase as Phase, keys, upcoming_node_name};
use bigfleet_in_cluster::memory::{Eviction, Fault, Verb};
use bigfleet_operator::dispatch::Moment;
use bigfleet_wire::v1alpha1::{MachineState as S, NodeStateUpdate};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};

use crate::rig::{Rig, frame, pod, put_node};

const MACHINES: usize = 6;
const STEPS: usize = 120;

/// A small generator; the same everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % sides
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.roll(all.len() as u64) as usize]
    }
}

/// What the world outside the operator did.
#[derive(Default)]
struct Outside {
    /// When each node may be drained: from receipt to deadline, by node name.
    windows: BTreeMap<String, Vec<(Moment, Moment)>>,
    /// Whether the budget refuses everything at the moment.
    blocked: bool,
    /// What should never have happened.
    wrongs: Vec<String>,
}

struct Chaos {
    rig: Rig,
    dice: Dice,
    outside: Arc<Mutex<Outside>>,
    connected: bool,
    away: bool,
    instructions: usize,
    pods: usize,
    /// Nodes that a human has cordoned and not uncordoned, with their uid.
    human: BTreeMap<String, String>,
    /// Since when a node is not ready; none while it is.
    unready: BTreeMap<String, Option<Timestamp>>,
    /// First acks.
    started: BTreeMap<String, i32>,
    /// Those of them that came from the present process.
    of_process: BTreeSet<String>,
}

fn machine(n: usize) -> String {
    format!("m{n}")
}

/// Half of the nodes are named after their machine.
fn node(n: usize) -> String {
    if n % 2 == 0 { machine(n) } else { format!("worker-{n}") }
}

impl Chaos {
    async fn new(seed: u64) -> Self {
        let rig = Rig::new().await;
        let outside = Arc::new(Mutex::new(Outside::default()));
        let (watcher, clock) = (outside.clone(), rig.clock);
        rig.server.on_eviction(move |pod| watch_eviction(&watcher, clock.now(), pod));
        let mut chaos = Self {
            rig,
            dice: Dice(seed),
            outside,
            connected: true,
            away: false,
            instructions: 0,
            pods: 0,
            human: BTreeMap::new(),
            unready: BTreeMap::new(),
            started: BTreeMap::new(),
            of_process: BTreeSet::new(),
        };
        for n in 0..MACHINES {
            chaos.join(n);
        }
        chaos
    }

    fn join(&mut self, n: usize) {
        let (name, since) = (node(n), self.rig.clock.wall());
        put_node(&self.rig.server, &name, &machine(n), true, since);
        self.unready.insert(name.clone(), None);
        let owner = json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d",
                            "controller": true}]);
        let daemon = pod(&format!("daemon-{n}"), &name, json!({"ownerReferences": owner}));
        self.rig.server.put(&daemon);
        let mirror = json!({"annotations": {"kubernetes.io/config.mirror": "x"}});
        self.rig.server.put(&pod(&format!("static-{n}"), &name, mirror));
    }

    async fn step(&mut self) {
        let n = self.dice.roll(MACHINES as u64) as usize;
        match self.dice.roll(20) {
            0..=5 => self.frame(n),
            6 | 7 => self.reclaim(),
            8 => self.session(),
            9 => self.replace_process().await,
            10 | 11 => self.trouble(),
            12 => self.outage(),
            13 => self.human(n),
            14 => self.kubelet(n),
            15 => self.rejoin(n),
            16 => self.outside.lock().unwrap().blocked ^= true,
            _ => self.schedule(n),
        }
        let pause = self.dice.one_of(&[0, 5, 200, 1_000, 5_000, 20_000]);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        self.check();
    }

    fn frame(&mut self, n: usize) {
        if !self.connected {
            return;
        }
        let states = [
            S::Unspecified,
            S::Speculative,
            S::Creating,
            S::Idle,
            S::Configuring,
            S::Configured,
            S::Configured,
            S::Configured,
            S::Draining,
            S::Deleting,
            S::Failed,
        ];
        let state = self.dice.one_of(&states);
        let ended = self.dice.roll(self.instructions as u64 + 1);
        let frame = NodeStateUpdate {
            gone: self.dice.roll(8) == 0,
            last_error: if state == S::Failed { "broken".into() } else { String::new() },
            ended_instruction_id: format!("i{ended}"),
            provider_id: format!("p{n}"),
            ..frame(&machine(n), state)
        };
        self.rig.send(&frame);
    }

    fn reclaim(&mut self) {
        if !self.connected {
            return;
        }
        self.instructions += 1;
        let id = format!("i{}", self.instructions);
        let grace = self.dice.one_of(&[0, 5, 10, 30, 120]);
        let mut names = Vec::new();
        for n in 0..MACHINES {
            if self.dice.roll(3) == 0 {
                names.push(if self.dice.roll(2) == 0 { machine(n) } else { node(n) });
            }
        }
        if self.dice.roll(4) == 0 {
            names.push("unknown".into());
        }
        let now = self.rig.now();
        let length = Duration::from_secs(if grace == 0 { 30 } else { grace });
        let mut outside = self.outside.lock().unwrap();
        for n in 0..MACHINES {
            if names.contains(&machine(n)) || names.contains(&node(n)) {
                outside.windows.entry(node(n)).or_default().push((now, now + length));
            }
        }
        drop(outside);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        self.rig.reclaim(&id, &names, grace as i64);
    }

    fn session(&mut self) {
        self.connected ^= true;
        if self.connected {
            self.rig.connect();
            if self.dice.roll(2) == 0 {
                self.rig.nodes.resync();
            }
        } else {
            self.rig.disconnect();
        }
    }

    async fn replace_process(&mut self) {
        if self.away {
            return;
        }
        self.rig.server.heal();
        self.take_acks();
        self.of_process.clear();
        self.rig.stop().await;
        self.rig = Rig::start(self.rig.server.clone(), self.rig.clock).await;
        self.connected = false;
        if self.dice.roll(2) == 0 {
            self.connected = true;
            self.rig.connect();
        }
    }

    fn trouble(&mut self) {
        let plural = self.dice.one_of(&["nodes", "upcomingnodes", "pods"]);
        let verbs = [Verb::Get, Verb::Create, Verb::Patch, Verb::Delete, Verb::Watch, Verb::List];
        let fault = match self.dice.roll(6) {
            0 => Fault::answer(409),
            1 => Fault::answer(500),
            2 => Fault::answer(429).retry_after(1),
            3 => Fault::unreachable(),
            4 => Fault::latency(Duration::from_millis(700)),
            _ => return self.rig.server.gap(),
        };
        let times = self.dice.one_of(&[1, 3, 8]);
        self.rig.server.inject(fault.on(self.dice.one_of(&verbs), plural).times(times));
        if self.dice.roll(2) == 0 {
            self.rig.server.cut_watches();
        }
    }

    fn outage(&mut self) {
        self.away ^= true;
        self.rig.server.away(self.away);
    }

    fn human(&mut self, n: usize) {
        let name = node(n);
        let Some(node) = self.rig.server.get::<Node>(None, &name) else { return };
        let unschedulable = node.spec.and_then(|spec| spec.unschedulable).unwrap_or_default();
        if self.human.remove(&name).is_some() {
            self.rig.human(&name, false);
        } else if !unschedulable {
            self.rig.human(&name, true);
            self.human.insert(name, node.metadata.uid.unwrap());
        }
    }

    fn kubelet(&mut self, n: usize) {
        let name = node(n);
        if self.rig.server.get::<Node>(None, &name).is_none() {
            return;
        }
        let wall = self.rig.clock.wall();
        let was_ready = self.unready[&name].is_none();
        put_node(&self.rig.server, &name, &machine(n), !was_ready, wall);
        self.unready.insert(name, was_ready.then_some(wall));
    }

    /// The node's object is replaced by another of its name.
    fn rejoin(&mut self, n: usize) {
        if self.dice.roll(2) == 0 {
            return;
        }
        self.rig.server.remove::<Node>(None, &node(n));
        self.human.remove(&node(n));
        self.join(n);
    }

    fn schedule(&mut self, n: usize) {
        let cordoned = self.rig.server.get::<Node>(None, &node(n));
        let cordoned = cordoned.and_then(|node| node.spec).and_then(|spec| spec.unschedulable);
        if cordoned != Some(true) {
            self.pods += 1;
            self.rig.put_pod(&format!("web-{}", self.pods), &node(n));
        }
    }

    fn take_acks(&mut self) {
        for ack in self.rig.acks.lock().unwrap().drain(..) {
            let id = ack.instruction_id;
            if !ack.finished {
                self.of_process.insert(id.clone());
                self.started.insert(id, ack.nodes_started);
            } else if self.of_process.contains(&id) {
                assert_eq!(ack.nodes_started, self.started[&id], "as before: {id}");
                assert!(ack.nodes_drained <= ack.nodes_started);
            }
        }
    }

    /// What holds at every moment.
    fn check(&mut self) {
        let server = &self.rig.server;
        assert_eq!(self.outside.lock().unwrap().wrongs, Vec::<String>::new(), "inv 10");
        assert_eq!(server.count(Verb::Delete, "pods"), 0, "inv 10: only evictions");
        assert_eq!(server.count(Verb::DeleteCollection, "pods"), 0, "inv 10: only evictions");
        for (name, uid) in &self.human {
            let Some(node) = server.get::<Node>(None, name) else { continue };
            let unschedulable = node.spec.and_then(|spec| spec.unschedulable);
            if node.metadata.uid.as_ref() == Some(uid) {
                assert_eq!(unschedulable, Some(true), "inv 11: a human cordoned {name}");
            }
        }
        let now = self.rig.clock.wall();
        for (name, unready) in &self.unready {
            if server.get::<Node>(None, name).is_none() {
                let since = unready.unwrap_or_else(|| panic!("inv 11: {name} was ready"));
                assert!(now.duration_since(since).as_secs() >= 59, "inv 11: {name} was alive");
            }
        }
        let gone: Vec<_> = self
            .unready
            .keys()
            .filter(|name| server.get::<Node>(None, name).is_none())
            .cloned()
            .collect();
        for name in gone {
            self.human.remove(&name);
            self.unready.remove(&name);
            let n = (0..MACHINES).find(|n| node(*n) == name).unwrap();
            self.join(n);
        }
    }

    /// All troubles end, and a shard says how things stand.
    async fn settle(&mut self) {
        self.rig.server.heal();
        self.rig.server.away(false);
        self.away = false;
        self.outside.lock().unwrap().blocked = false;
        if self.connected {
            self.rig.disconnect();
        }
        self.rig.connect();
        self.connected = true;
        let mut last = BTreeMap::new();
        let states = [S::Creating, S::Configuring, S::Configured, S::Draining, S::Failed];
        for n in 0..MACHINES {
            if self.dice.roll(4) == 0 {
                continue;
            }
            for _ in 0..=self.dice.roll(3) {
                let state = self.dice.one_of(&states);
                self.rig.frame(&machine(n), state);
                last.insert(machine(n), state);
            }
        }
        self.rig.nodes.resync();
        // Past the longest grace, and for what is tried again every 5 s and every minute.
        self.rig.pass(200).await;
        self.rig.idle().await;
        self.check();
        self.check_objects(&last);
        self.check_cordons(&last);
        self.check_acks();
    }

    fn check_objects(&self, last: &BTreeMap<String, S>) {
        for n in 0..MACHINES {
            let phase = self.rig.phase(&machine(n));
            let expected: &[Option<Phase>] = match last.get(&machine(n)) {
                None => &[None],
                Some(S::Creating) => &[Some(Phase::Provisioning)],
                Some(S::Configuring) => &[Some(Phase::Registered)],
                Some(S::Configured) => &[Some(Phase::Ready)],
                Some(S::Failed) => &[Some(Phase::Failed)],
                Some(_) => &[Some(Phase::Draining), Some(Phase::Drained), Some(Phase::Failed)],
            };
            assert!(expected.contains(&phase), "inv 8: {} is {phase:?}, {last:?}", machine(n));
        }
        let known: BTreeSet<_> = last.keys().map(|id| upcoming_node_name(id)).collect();
        let there = self.rig.server.all::<UpcomingNode>();
        let there: BTreeSet<_> = there.into_iter().filter_map(|one| one.metadata.name).collect();
        assert_eq!(there, known, "inv 8: no others");
    }

    /// Every cordon of ours was lifted where the shard has its machine back.
    fn check_cordons(&self, last: &BTreeMap<String, S>) {
        for n in (0..MACHINES).filter(|n| last.get(&machine(*n)) == Some(&S::Configured)) {
            let Some(view) = self.rig.server.get::<Node>(None, &node(n)) else { continue };
            let annotation = |key: &str| {
                view.metadata.annotations.as_ref().and_then(|all| all.get(key)).is_some()
            };
            let human = annotation(keys::CORDONED_BY_HUMAN);
            assert!(!annotation(keys::RECLAIM_INSTRUCTION) || human, "{} stays cordoned", node(n));
        }
    }

    /// The first ack of an instruction counts the nodes that were cordoned for it.
    fn check_acks(&mut self) {
        self.take_acks();
        let mut cordoned: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for call in self.rig.server.calls() {
            let id = call.body["metadata"]["annotations"][keys::RECLAIM_INSTRUCTION].as_str();
            if let (Verb::Patch, "nodes", 200, Some(id)) =
                (call.verb, call.plural.as_str(), call.code, id)
            {
                cordoned.entry(id.into()).or_default().insert(call.name.unwrap());
            }
        }
        for (id, started) in &self.started {
            let nodes = cordoned.get(id).map_or(0, BTreeSet::len);
            assert_eq!(*started as usize, nodes, "inv 11: {id} started");
        }
    }
}

fn watch_eviction(outside: &Mutex<Outside>, now: Moment, pod: &Value) -> Eviction {
    let mut outside = outside.lock().unwrap();
    let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
    let node = pod["spec"]["nodeName"].as_str().unwrap();
    if !name.starts_with("web") {
        outside.wrongs.push(format!("{name} was evicted"));
    }
    let windows = outside.windows.get(node).cloned().unwrap_or_default();
    if !windows.iter().any(|(from, to)| *from <= now && now < *to) {
        outside.wrongs.push(format!("{name} was evicted from {node} at {now:?}: {windows:?}"));
    }
    if outside.blocked { Eviction::Budget } else { Eviction::Allow }
}

async fn run(seed: u64) {
    let mut chaos = Chaos::new(seed).await;
    for _ in 0..STEPS {
        chaos.step().await;
    }
    chaos.settle().await;
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Invariants 8, 10 and 11 of the kubernetes chapter, whatever happens.
#[test]
fn operator_inv_08_10_11_hold_whatever_happens() {
    let seeds = match number("BIGFLEET_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("BIGFLEET_SEEDS").unwrap_or(40),
    };
    for seed in seeds {
        println!("BIGFLEET_SEED={seed}");
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(run(seed));
    }
}
