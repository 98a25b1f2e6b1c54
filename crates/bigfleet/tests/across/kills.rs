//! Whoever takes part in a transfer dies, at each of its steps (coordinator chapter §16).

use bigfleet_wire::v1alpha1::TransferEntry;

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
    /// The coordinator knows that it did.
    Moved,
    /// The recipient has written down that it has them.
    Received,
    /// And that it is done with them.
    Settled,
}

const STEPS: [Step; 5] = [Step::Begun, Step::LetGo, Step::Moved, Step::Received, Step::Settled];

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
        let let_go = gave.out.keys().any(|transfer| transfer.as_str() == id);
        Some(if let_go { Step::LetGo } else { Step::Begun })
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
async fn dies_at_each_step(victim: Victim) {
    let mut provider = stock::zones(3);
    provider.push(stock::idle("own", 2, &["zone-a"]));
    provider.extend(TYPES.iter().map(|kind| stock::idle(kind, 4, &["zone-b", "zone-c"])));
    let mut all = Neighbourhood::open(&provider, QUICK, THREE).await;
    let witness = all.witness();
    let member = all.shard("one").member("c", &whole().instance_types(&["own"]), 1);
    member.wait_for("met demand", met, PATIENCE).await.unwrap();
    for (step, kind) in STEPS.into_iter().zip(TYPES) {
        member.cluster().deploy(&whole().instance_types(&[kind]), 1);
        let moving = all.begins_to_move(kind).await;
        all.reaches(&moving, step).await;
        println!("{victim:?} dies when {moving:?} is {step:?}");
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
    dies_at_each_step(Victim::Donor).await;
}

#[tokio::test]
async fn fault_recipient_dies_at_any_step_of_a_transfer() {
    dies_at_each_step(Victim::Recipient).await;
}

#[tokio::test]
async fn fault_leader_dies_at_any_step_of_a_transfer() {
    dies_at_each_step(Victim::Leader).await;
}
