//! Every reachable state of a small world: one machine, one id that nobody
//! knows, two shards, a few tokens, two clusters. In each, every call and every
//! event, judged by the code and by a second reading of the chapter.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use bigfleet_model::MachineState::{self, *};
use bigfleet_provider::protocol::{
    Call, Event, FenceBook, FencePolicy, FenceRefusal, Kind, Known, Mark, Refused, Reject, Step,
    Token, admit, step,
};

const KNOWN: &str = "m";
const UNKNOWN: &str = "u";

/// The second reading: plain maps, plain rules.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Reference {
    marks: BTreeMap<(&'static str, &'static str), (i64, i64)>,
    state: u8,
    cluster: Option<&'static str>,
    recorded: BTreeSet<&'static str>,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Call {
        kind: Kind,
        machine: &'static str,
        cluster: &'static str,
        token: (&'static str, i64, i64),
    },
    Done(Kind),
    Failed(Kind),
    Repaired,
}

fn actions() -> Vec<Action> {
    let tokens = [("s", 1, 1), ("s", 1, 2), ("s", 2, 1), ("t", 1, 1), ("", 0, 0)];
    let mut actions = vec![Action::Repaired];
    for kind in Kind::ALL {
        actions.extend([Action::Done(kind), Action::Failed(kind)]);
        for machine in [KNOWN, UNKNOWN] {
            for token in tokens {
                for cluster in if kind == Kind::Configure { &["a", "b"][..] } else { &[""] } {
                    actions.push(Action::Call { kind, machine, cluster, token });
                }
            }
        }
    }
    actions
}

const TABLE: [(&str, MachineState, MachineState, MachineState); 4] = [
    ("create", Speculative, Creating, Idle),
    ("configure", Idle, Configuring, Configured),
    ("drain", Configured, Draining, Idle),
    ("delete", Idle, Deleting, Speculative),
];

impl Reference {
    fn state(&self) -> MachineState {
        MachineState::from_wire(self.state.into()).unwrap()
    }

    /// Does it, and tells what came of it.
    fn act(&mut self, action: Action) -> &'static str {
        let row = |kind: Kind| TABLE.iter().find(|row| row.0 == kind.name()).copied().unwrap();
        match action {
            Action::Call { kind, machine, cluster, token } => {
                let (shard, epoch, sequence) = token;
                if token != ("", 0, 0) {
                    let mark = self.marks.get(&(shard, machine)).copied();
                    let newer = match mark {
                        None => true,
                        Some((e, _)) if epoch > e => true,
                        Some((e, s)) => epoch == e && sequence > s,
                    };
                    if !newer {
                        return "fenced";
                    }
                    self.marks.insert((shard, machine), (epoch, sequence));
                }
                if machine == UNKNOWN {
                    return "not found";
                }
                let (name, source, via, target) = row(kind);
                let at = self.state();
                if self.recorded.contains(name) && (at == via || at == target) {
                    let other = kind == Kind::Configure && self.cluster != Some(cluster);
                    return if other { "already exists" } else { "replay" };
                }
                if at != source {
                    return "position";
                }
                self.state = via as u8;
                self.recorded.insert(name);
                if kind == Kind::Configure {
                    self.cluster = Some(cluster);
                }
                "started"
            }
            Action::Done(kind) => {
                let (_, _, via, target) = row(kind);
                if self.state() != via {
                    return "ignored";
                }
                self.state = target as u8;
                if kind == Kind::Drain {
                    self.cluster = None;
                }
                "moved"
            }
            Action::Failed(kind) if self.state() == row(kind).2 => {
                self.state = Failed as u8;
                "moved"
            }
            Action::Repaired if self.state() == Failed => {
                (self.state, self.cluster) = (Speculative as u8, None);
                self.recorded.clear();
                "moved"
            }
            _ => "ignored",
        }
    }

    /// The code's books in this state.
    fn book(&self) -> FenceBook {
        let mut book = FenceBook::new(FencePolicy::default());
        for ((shard, machine), (epoch, sequence)) in &self.marks {
            let token = Token::new(*shard, *epoch, *sequence);
            let advance = book.check(&token, machine, *machine == KNOWN).unwrap();
            book.advance(advance.unwrap());
        }
        book
    }
}

/// The same by the code: what came of it, and the world after it.
fn act(world: &Reference, action: Action) -> (&'static str, Reference) {
    let mut after = world.clone();
    let mut apply = |step: Step, kind: Option<Kind>, cluster| match step {
        Step::Start(effects) | Step::Move(effects) => {
            use bigfleet_provider::protocol::Field;
            after.state = effects.to as u8;
            match effects.binding {
                Field::Set => after.cluster = Some(cluster),
                Field::Clear => after.cluster = None,
                Field::Keep => {}
            }
            if effects.forget_operations {
                after.recorded.clear();
            }
            after.recorded.extend(kind.map(Kind::name));
            "moved"
        }
        Step::Replay => "replay",
        Step::Discard | Step::KeepHost | Step::Orphan => "ignored",
    };
    let said = match action {
        Action::Call { kind, machine, cluster, token: (shard, epoch, sequence) } => {
            let mut book = world.book();
            let token = Token::new(shard, epoch, sequence);
            let asked = (kind == Kind::Configure).then_some(cluster);
            let known = (machine == KNOWN).then(|| Known {
                state: world.state(),
                cluster: world.cluster,
                recorded: world.recorded.contains(kind.name()),
            });
            let admission =
                admit(&book, Call { kind, machine, cluster: asked, token: &token }, known);
            if let Some(advance) = admission.advance {
                book.advance(advance);
            }
            let said = match admission.outcome {
                Ok(step @ Step::Start(_)) => {
                    apply(step, Some(kind), cluster);
                    "started"
                }
                Ok(step) => apply(step, None, ""),
                Err(Refused::Fence(FenceRefusal::Stale(_))) => "fenced",
                Err(Refused::Fence(FenceRefusal::TokenRequired)) => "token required",
                Err(Refused::NotFound(_)) => "not found",
                Err(Refused::Lifecycle(Reject::OtherCluster)) => "already exists",
                Err(Refused::Lifecycle(Reject::Position { .. })) => "position",
            };
            for pair in [("s", KNOWN), ("s", UNKNOWN), ("t", KNOWN), ("t", UNKNOWN), ("", KNOWN)] {
                if let Some(Mark { epoch, sequence }) = book.mark(pair.0, pair.1) {
                    after.marks.insert(pair, (epoch, sequence));
                }
            }
            said
        }
        Action::Done(kind) => apply_event(world, Event::Done { kind, current: true }, apply),
        Action::Failed(kind) => apply_event(world, Event::Failed { kind, current: true }, apply),
        Action::Repaired => apply_event(world, Event::Repaired { elastic: true }, apply),
    };
    (said, after)
}

fn apply_event(
    world: &Reference,
    event: Event,
    mut apply: impl FnMut(Step, Option<Kind>, &'static str) -> &'static str,
) -> &'static str {
    apply(step(world.state(), event).unwrap(), None, "")
}

#[test]
fn provider_inv_01_fence_and_lifecycle_agree_with_a_second_reading_everywhere() {
    let start = Reference {
        marks: BTreeMap::new(),
        state: Speculative as u8,
        cluster: None,
        recorded: BTreeSet::new(),
    };
    let actions = actions();
    let mut seen = HashSet::from([start.clone()]);
    let mut queue = VecDeque::from([start]);
    let mut outcomes = BTreeMap::<&str, usize>::new();
    while let Some(world) = queue.pop_front() {
        for action in &actions {
            let mut expected = world.clone();
            let told = expected.act(*action);
            let (said, after) = act(&world, *action);
            assert_eq!((said, &after), (told, &expected), "{action:?} in {world:?}");
            *outcomes.entry(said).or_default() += 1;
            if seen.insert(after.clone()) {
                queue.push_back(after);
            }
        }
    }
    let kinds: Vec<&str> = outcomes.keys().copied().collect();
    let all = [
        "already exists",
        "fenced",
        "ignored",
        "moved",
        "not found",
        "position",
        "replay",
        "started",
    ];
    assert_eq!(kinds, all, "every outcome was reached");
    assert!(seen.len() > 1000, "{} states", seen.len());
}
