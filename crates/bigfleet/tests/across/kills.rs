//! Whoever takes part in a transfer dies, at each of its steps (coordinator chapter §16).

use bigfleet_model::PenaltyBucket;
use bigfleet_scripted::{cluster::Shape, member::Standing};
use bigfleet_wire::v1alpha1::{Machine, MachineState, TransferEntry};

use crate::{
    neighbourhood::{Neighbourhood, THREE, met, whole},
    rig::process::{PATIENCE, until},
    stock,
};

/// For each step a type that only others have: pairs of shards rest by type.
const TYPES: [&str; 5] = ["k0", "k1", "k2", "k3", "k4"];

/// Passes that follow each other at once.
pub(crate) const QUICK: &[&str] = &["--rebalance-interval=1s", "--rebalance-cooldown=12s"];

/// How far a transfer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// Committed; the donor may not have heard of it.
    Begun,
    /// The donor has written down what it lets go of.
    LetGo,
    /// What must be drained first is on its way out.
    Draining,
    /// And has come through.
    Drained,
    /// The coordinator knows that it did.
    Moved,
    /// The recipient has written down that it has them.
    Received,
    /// And that it is done with them.
    Settled,
}

const STEPS: [Step; 5] = [Step::Begun, Step::LetGo, Step::Moved, Step::Received, Step::Settled];
/// The first steps of a drain; what follows is as above.
const DRAINS: [Step; 4] = [Step::Begun, Step::LetGo, Step::Draining, Step::Drained];

/// What is lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lent {
    Idle,
    Slots,
    /// Machines at cheaper work.
    Drained,
}

impl Lent {
    fn steps(self) -> &'static [Step] {
        match self {
            Self::Idle | Self::Slots => &STEPS,
            Self::Drained => &DRAINS,
        }
    }

    /// Machines of this type.
    fn stock(self, kind: &str) -> String {
        match self {
            Self::Idle => stock::idle(kind, 4, &["zone-b", "zone-c"]),
            Self::Slots => stock::slots(kind, 4, &["zone-b", "zone-c"]),
            Self::Drained => stock::idle(kind, 2, &["zone-b"]),
        }
    }
}

/// Work of such a priority, and as dear to interrupt.
fn worth(priority: i32, dollars: f64, kind: &str) -> Shape {
    let bucket = PenaltyBucket::from_dollars(dollars);
    whole().priority(priority).penalties(bucket, PenaltyBucket::ZERO).instance_types(&[kind])
}

#[derive(Clone, Copy, Debug)]
enum Victim {
    Donor,
    Recipient,
    Leader,
}

/// A transfer, and who is in it.
#[derive(Clone, Debug)]
pub(crate) struct Moving {
    pub(crate) id: String,
    pub(crate) from: String,
    pub(crate) to: String,
}

impl Neighbourhood {
    /// How far it is, by what is replicated and by what is on the disks of the two.
    pub(crate) async fn step(&self, moving: &Moving) -> Option<Step> {
        let (donor, recipient) = (self.shard(&moving.from), self.shard(&moving.to));
        let (gave, has) = (donor.holdings(), recipient.holdings());
        let id = moving.id.as_str();
        if has.settled.iter().any(|one| one.transfer.as_str() == id) {
            return Some(Step::Settled);
        }
        let mut received = has.assignment.iter().flat_map(|one| &one.machines_in);
        if received.any(|one| one.transfer.as_str() == id) {
            return Some(Step::Received);
        }
        let transfers = self.transfers().await?;
        let Some(known) = transfers.iter().find(|one| one.transfer_id == id) else {
            // It was there when it began.
            return Some(Step::Settled);
        };
        if known.phase == "moved" {
            return Some(Step::Moved);
        }
        let Some((_, out)) = gave.out.iter().find(|(transfer, _)| transfer.as_str() == id) else {
            return Some(Step::Begun);
        };
        let Some(drain) = out.drain else { return Some(Step::LetGo) };
        if drain.over {
            return Some(Step::Drained);
        }
        let machines = self.machines().await;
        let moves = |machine: &Machine| {
            out.machines.iter().any(|id| *id.as_str() == *machine.id)
                && machine.state() != MachineState::Configured
        };
        Some(if machines.iter().any(moves) { Step::Draining } else { Step::LetGo })
    }

    /// Waits until it has come so far.
    pub(crate) async fn reaches(&self, moving: &Moving, step: Step) {
        until("a step of the transfer", async || {
            self.step(moving).await.filter(|reached| *reached >= step)
        })
        .await;
    }

    pub(crate) async fn begins_to_move(&self, instance_type: &str) -> Moving {
        let asks = |one: &TransferEntry| {
            one.selector.as_ref().is_some_and(|asked| asked.instance_type == instance_type)
        };
        let found = until("a transfer", async || self.transfers().await?.into_iter().find(&asks));
        let TransferEntry { transfer_id: id, from_shard_id: from, to_shard_id: to, .. } =
            found.await;
        Moving { id, from, to }
    }
}

/// Machines come all the same, and each has one owner.
async fn dies_at_each_step(lent: Lent, victim: Victim) {
    let mut provider = stock::zones(3);
    provider.push(stock::idle("own", 2, &["zone-a"]));
    provider.extend(TYPES.iter().map(|kind| lent.stock(kind)));
    let mut all = Neighbourhood::open(&provider, QUICK, THREE).await;
    let witness = all.witness();
    let member = all.shard("one").member("c", &whole().instance_types(&["own"]), 1);
    member.wait_for("met demand", met, PATIENCE).await.unwrap();
    let cheap = (lent == Lent::Drained).then(|| {
        let cheap = all.shard("two").member("cheap", &worth(0, 0.0, TYPES[0]), 2);
        for kind in &TYPES[1..] {
            cheap.cluster().deploy(&worth(0, 0.0, kind), 2);
        }
        cheap
    });
    if let Some(cheap) = &cheap {
        let all_in_use = |now: &Standing| met(now) && now.live == 2 * TYPES.len();
        cheap.wait_for("cheap work on all of them", all_in_use, PATIENCE).await.unwrap();
    }
    for (step, kind) in lent.steps().iter().copied().zip(TYPES) {
        member.cluster().deploy(&worth(500, 100.0, kind), 1);
        let moving = all.begins_to_move(kind).await;
        all.reaches(&moving, step).await;
        println!("{victim:?} dies when {moving:?} of {lent:?} is {step:?}");
        match victim {
            Victim::Donor => {
                all.kill(&moving.from).await;
                all.start(&moving.from);
            }
            Victim::Recipient => {
                all.kill(&moving.to).await;
                all.start(&moving.to);
            }
            Victim::Leader => {
                let leader = all.kill_leader().await;
                all.start_replica(leader);
            }
        }
        member.wait_for("a machine of another shard", met, PATIENCE).await.unwrap();
        all.until_settled().await;
        let machines = all.serving("c").await;
        assert_eq!(machines.iter().filter(|one| one.instance_type == kind).count(), 1);
    }
    all.tap.nobody_meddles();
    witness.end().await;
}

#[tokio::test]
async fn fault_donor_dies_at_any_step_of_a_transfer() {
    dies_at_each_step(Lent::Idle, Victim::Donor).await;
}

#[tokio::test]
async fn fault_recipient_dies_at_any_step_of_a_transfer() {
    dies_at_each_step(Lent::Idle, Victim::Recipient).await;
}

#[tokio::test]
async fn fault_leader_dies_at_any_step_of_a_transfer() {
    dies_at_each_step(Lent::Idle, Victim::Leader).await;
}

#[tokio::test]
async fn fault_donor_dies_at_any_step_of_a_transfer_of_slots() {
    dies_at_each_step(Lent::Slots, Victim::Donor).await;
}

#[tokio::test]
async fn fault_recipient_dies_at_any_step_of_a_transfer_of_slots() {
    dies_at_each_step(Lent::Slots, Victim::Recipient).await;
}

#[tokio::test]
async fn fault_donor_dies_at_any_step_of_a_drain() {
    dies_at_each_step(Lent::Drained, Victim::Donor).await;
}

#[tokio::test]
async fn fault_leader_dies_at_any_step_of_a_drain() {
    dies_at_each_step(Lent::Drained, Victim::Leader).await;
}
