//! Domains and clusters that change hands, from the command to the new owner's Assignment,
//! with a real coordinator.

use bigfleet_net::{grpc::connect, rule::Rule, tls::Security};
use bigfleet_wire::v1alpha1::{
    Assignment, ReportAck, ShardReport, coordinator_client::CoordinatorClient,
};
use tonic::transport::Channel;

use crate::{
    restore::{Served, replica, serve},
    rig::Ctl,
};

/// A shared-scope shard that stores what it is told and lets go at once.
struct Shard {
    id: &'static str,
    rpc: CoordinatorClient<Channel>,
    cycle: i64,
    fleet: String,
    stored: Assignment,
}

impl Shard {
    async fn start(id: &'static str, served: &Served) -> Self {
        let channel = connect(&served.addr, &Security::Plaintext, Rule::any_certificate()).await;
        let rpc = CoordinatorClient::new(channel.unwrap());
        let stored = Assignment { digest: 1, ..Assignment::default() };
        let mut shard = Self { id, rpc, cycle: 0, fleet: String::new(), stored };
        shard.report(&[]).await;
        shard
    }

    async fn report(&mut self, clusters: &[&str]) -> ReportAck {
        self.cycle += 1;
        let report = ShardReport {
            shard_id: self.id.to_owned(),
            shard_address: format!("{}:7780", self.id),
            shard_epoch: 1,
            instance: 1,
            cycle: self.cycle,
            fleet_id: self.fleet.clone(),
            assignment_version: self.stored.version,
            assignment_digest: self.stored.digest,
            cluster_ids: clusters.iter().map(|id| (*id).to_owned()).collect(),
            ..ShardReport::default()
        };
        let ack = self.rpc.report_shard(report).await.unwrap().into_inner();
        self.fleet.clone_from(&ack.fleet_id);
        if let Some(assignment) = &ack.assignment {
            self.stored.clone_from(assignment);
        }
        ack
    }

    fn domains(&self) -> Vec<&str> {
        self.stored.domains.iter().map(|domain| domain.topology_value.as_str()).collect()
    }
}

#[tokio::test]
async fn a_domain_and_a_cluster_go_from_shard_to_shard() {
    let ctl = Ctl::bare();
    let leader = replica(&ctl.path("data")).await;
    let served = serve(&leader).await;
    let run = async |args: &[&str]| {
        let args = [args, &["--coordinator", &*served.addr]].concat();
        ctl.run(&args).await.ok()
    };
    let mut a = Shard::start("a", &served).await;
    let mut b = Shard::start("b", &served).await;
    let rack = ["--key", "rack", "--value", "1"];
    run(&[&["assign-domain", "--shard", "a", "--yes"][..], &rack].concat()).await;
    a.report(&["c"]).await;
    a.report(&[]).await;
    assert_eq!((a.domains(), &a.stored.clusters[..]), (vec!["1"], &["c".to_owned()][..]));

    let way = ["--from", "a", "--to", "b", "--yes"];
    let moved = run(&[&["move-domain"][..], &rack, &way].concat()).await;
    assert_eq!(moved, "moved rack=1: a → b\n");
    let moved = run(&[&["move-cluster", "--cluster", "c"][..], &way].concat()).await;
    assert_eq!(moved, "moved cluster c: a → b\n");
    b.report(&[]).await;
    assert!(b.domains().is_empty() && b.stored.clusters.is_empty(), "a has not let go");
    assert_eq!(
        run(&["list-releasing"]).await,
        "KEY            HELD BY  GOES TO  AGE\n\
         cluster c      a        b        0s\n\
         domain rack=1  a        b        0s\n"
    );
    // It learns of it, and its next report lacks both.
    a.report(&[]).await;
    assert!(a.domains().is_empty());
    a.report(&[]).await;
    assert_eq!(run(&["list-releasing"]).await, "KEY  HELD BY  GOES TO  AGE\n");
    b.report(&[]).await;
    assert_eq!((b.domains(), &b.stored.clusters[..]), (vec!["1"], &["c".to_owned()][..]));
    let owners = run(&["list-domain-assignments"]).await;
    assert!(owners.ends_with("rack          1               b\n"), "{owners}");
    assert!(run(&["list-transfers"]).await.starts_with("TRANSFER  KIND"));
    served.stop().await;
}
