//! Domains and clusters that change hands, from the command to the new owner's Assignment,
//! with a real coordinator.

use bigfleet_net::{grpc::connect, rule::Rule, tls::Security};
use bigfleet_scripted::holder::Holder;
use bigfleet_wire::v1alpha1::{ShardReport, coordinator_client::CoordinatorClient};
use tonic::transport::Channel;

use crate::{
    restore::{Served, replica, serve},
    rig::Ctl,
};

/// A shared-scope shard that stores what it is told and lets go at once.
struct Shard {
    rpc: CoordinatorClient<Channel>,
    holder: Holder,
}

impl Shard {
    async fn start(id: &str, served: &Served) -> Self {
        let channel = connect(&served.addr, &Security::Plaintext, Rule::any_certificate()).await;
        let rpc = CoordinatorClient::new(channel.unwrap());
        let mut shard = Self { rpc, holder: Holder::new(id) };
        shard.report(&[]).await;
        shard
    }

    async fn report(&mut self, clusters: &[&str]) {
        let cluster_ids = clusters.iter().map(|id| (*id).to_owned()).collect();
        let report = ShardReport { cluster_ids, ..self.holder.report() };
        self.holder.take(&self.rpc.report_shard(report).await.unwrap().into_inner());
    }

    fn holds(&self) -> (Vec<&str>, &[String]) {
        (self.holder.domains(), &self.holder.stored.clusters)
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
    assert_eq!(a.holds(), (vec!["1"], &["c".to_owned()][..]));

    let way = ["--from", "a", "--to", "b", "--yes"];
    let moved = run(&[&["move-domain"][..], &rack, &way].concat()).await;
    assert_eq!(moved, "moved rack=1: a → b\n");
    let moved = run(&[&["move-cluster", "--cluster", "c"][..], &way].concat()).await;
    assert_eq!(moved, "moved cluster c: a → b\n");
    b.report(&[]).await;
    assert_eq!(b.holds(), (vec![], &[][..]), "a has not let go");
    assert_eq!(
        run(&["list-releasing"]).await,
        "KEY            HELD BY  GOES TO  AGE\n\
         cluster c      a        b        0s\n\
         domain rack=1  a        b        0s\n"
    );
    // It learns of it, and its next report lacks both.
    a.report(&[]).await;
    assert_eq!(a.holds(), (vec![], &[][..]));
    a.report(&[]).await;
    assert_eq!(run(&["list-releasing"]).await, "KEY  HELD BY  GOES TO  AGE\n");
    b.report(&[]).await;
    assert_eq!(b.holds(), (vec!["1"], &["c".to_owned()][..]));
    let owners = run(&["list-domain-assignments"]).await;
    assert!(owners.ends_with("rack          1               b\n"), "{owners}");
    assert!(run(&["list-transfers"]).await.starts_with("TRANSFER  KIND"));
    served.stop().await;
}
