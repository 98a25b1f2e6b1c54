//! What comes to a shard that lacks machines, and in which order (coordinator chapter §9).

use bigfleet_model::PenaltyBucket;
use bigfleet_scripted::{cluster::Shape, member::Standing};
use bigfleet_wire::v1alpha1::{
    ListQuotasRequest, Machine, ProviderEntry, QuotaAllocation, SetQuotaRequest,
    UpsertProviderRequest,
};

use crate::{
    neighbourhood::{Neighbourhood, THREE, met, whole},
    rig::process::{PATIENCE, until},
    stock::four_and_four,
};

/// A share of the account for each shard: as many as its zone has slots.
const SLICE: i32 = 4;

fn shape(priority: i32, dollars: f64) -> Shape {
    let bucket = PenaltyBucket::from_dollars(dollars);
    whole().priority(priority).penalties(bucket, PenaltyBucket::ZERO)
}

/// Machines from other zones than the first, by type.
fn received(machines: &[Machine], instance_type: &str) -> usize {
    let from_elsewhere = |one: &&Machine| one.zone != "zone-a";
    machines.iter().filter(from_elsewhere).filter(|one| one.instance_type == instance_type).count()
}

impl Neighbourhood {
    /// Transfers of this tier that were begun so far.
    async fn begun(&self, tier: u8) -> f64 {
        let tier = format!("tier=\"{tier}\"");
        let name = "bigfleet_coordinator_rebalance_moves_total";
        self.metric(name, &[&tier, "outcome=\"begun\""]).await
    }

    pub(crate) async fn passes(&self) -> f64 {
        self.metric("bigfleet_coordinator_rebalance_duration_seconds_count", &[]).await
    }

    async fn quotas(&self) -> Vec<QuotaAllocation> {
        let request = ListQuotasRequest {};
        let listed = self.ask(|mut leader| async move { leader.list_quotas(request).await });
        listed.await.into_inner().allocations
    }

    async fn share_the_account(&self) {
        let provider = ProviderEntry {
            name: "sim".to_owned(),
            address: self.tap.address().to_owned(),
            region: "r".to_owned(),
        };
        let per_shard = THREE.iter().map(|(shard, _)| ((*shard).to_owned(), SLICE)).collect();
        let quota =
            QuotaAllocation { provider: "sim".to_owned(), region: "r".to_owned(), per_shard };
        self.ask(|mut leader| {
            let provider = UpsertProviderRequest { provider: Some(provider.clone()) };
            let quota = SetQuotaRequest { allocation: Some(quota.clone()) };
            async move {
                leader.upsert_provider(provider).await?;
                leader.set_quota(quota).await
            }
        })
        .await;
    }

    /// Waits until transfers of a tier are begun; passes that had looked at the shortage
    /// by then.
    async fn begins(&self, tier: u8) -> f64 {
        until("a shortage that is old enough", async || {
            let name = "bigfleet_coordinator_shortfalls_escalated";
            (self.metric(name, &[]).await > 0.0).then_some(())
        })
        .await;
        let before = self.passes().await;
        until("a transfer", async || (self.begun(tier).await > 0.0).then_some(())).await;
        self.passes().await - before
    }
}

/// Idle machines first, then slots, then, and only then, the work of others; critical
/// work never yields to cheap work, and the sums of quotas are what they were.
#[tokio::test]
async fn coordinator_inv_i5_a_shortage_is_served_by_idle_machines_then_slots_then_drains() {
    let flags = ["--rebalance-interval=3s", "--rebalance-cooldown=14s"];
    let all = Neighbourhood::open(&four_and_four(3), &flags, THREE).await;
    all.share_the_account().await;
    let quotas = all.quotas().await;
    let witness = all.witness();
    let critical = all.shard("three").member("critical", &shape(1_000, 100_000.0), 1);
    critical.wait_for("met demand", met, PATIENCE).await.unwrap();
    let kept = all.serving("critical").await;

    let needy = all.shard("one").member("needy", &shape(500, 100.0), 8);
    needy.wait_for("all of its own zone", met, PATIENCE).await.unwrap();
    // Donors keep one of each.
    needy.cluster().scale(0, 8 + 3 + 2);
    let passes = all.begins(1).await;
    assert!(passes <= 2.0, "{passes} passes");
    needy.wait_for("idle machines of others", met, PATIENCE).await.unwrap();
    let machines = all.serving("needy").await;
    assert_eq!((received(&machines, "epyc"), received(&machines, "m8")), (5, 0));
    assert_eq!(all.begun(2).await, 0.0, "slots cost more than idle machines");

    needy.cluster().scale(0, 13 + 3 + 3);
    let passes = all.begins(2).await;
    assert!(passes <= 2.0, "{passes} passes");
    needy.wait_for("slots of others", met, PATIENCE).await.unwrap();
    let machines = all.serving("needy").await;
    assert_eq!((received(&machines, "epyc"), received(&machines, "m8")), (5, 6));
    assert_eq!(all.begun(3).await, 0.0, "nobody's work ends while there is a slot");

    // Only dearer work is left to take machines from.
    let found_nobody = async || {
        let name = "bigfleet_coordinator_rebalance_skipped_total";
        all.metric(name, &["reason=\"no_donor\""]).await
    };
    let before = found_nobody().await;
    needy.cluster().scale(0, 20);
    until("passes that find nobody", async || (found_nobody().await >= before + 2.0).then_some(()))
        .await;
    assert_eq!(all.begun(3).await, 0.0, "critical work never yields to cheap work");

    let cheap = all.shard("two").member("cheap", &shape(0, 0.0), 2);
    cheap.wait_for("what its donor kept", met, PATIENCE).await.unwrap();
    let yields = |now: &Standing| now.evictions > 0;
    // The two may have to rest from what they lent each other before: 14 s, at 3 s a pass.
    let before = all.passes().await;
    until("a drain", async || (all.begun(3).await > 0.0).then_some(())).await;
    let passes = all.passes().await - before;
    assert!(passes <= 2.0 + 5.0, "{passes} passes");
    cheap.wait_for("a drain for dearer work", yields, PATIENCE).await.unwrap();
    needy.wait_for("a machine of cheap work", met, PATIENCE).await.unwrap();
    assert_eq!(critical.standing().evictions, 0);
    let ids = |machines: Vec<Machine>| machines.into_iter().map(|one| one.id).collect::<Vec<_>>();
    assert_eq!(ids(all.serving("critical").await), ids(kept));
    assert_eq!(all.quotas().await, quotas, "only people change quotas");

    all.until_settled().await;
    all.tap.nobody_meddles();
    witness.end().await;
}
