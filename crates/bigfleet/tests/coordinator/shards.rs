//! Shards of a fleet: real ones, and those that share a provider, played by the test.

use std::path::PathBuf;

use bigfleet_scripted::{
    cluster::{Churn, Cluster, Shape},
    holder,
    member::Member,
    operator::{Operator, OperatorOptions},
};
use bigfleet_testkit::pki::Material;
use bigfleet_wire::v1alpha1::{ReportAck, coordinator_client::CoordinatorClient};
use tonic::{Status, transport::Channel};

use crate::{
    client::Client,
    fleet::{Fleet, security},
    rig::{
        audit,
        binaries::bigfleet,
        ports::port,
        process::{Process, flags, get, sum, sum_of, until},
    },
};

/// `bigfleet shard`, with machines of its own.
pub(crate) struct Shard {
    pub(crate) id: String,
    pub(crate) grpc: String,
    pub(crate) http: String,
    pub(crate) material: Material,
    dir: PathBuf,
    pub(crate) process: Process,
}

impl Shard {
    /// Starts one that reports to all replicas, with these flags besides or instead.
    pub(crate) fn start(fleet: &Fleet, id: &str, more: &[&str]) -> Self {
        Self::start_in(fleet, id, id, more)
    }

    /// The same, with its files elsewhere.
    pub(crate) fn start_in(fleet: &Fleet, id: &str, dir: &str, more: &[&str]) -> Self {
        let (grpc, http, dir) = (port(), port(), fleet.path(dir));
        let material = fleet.pki.material(&[&format!("bigfleet://shard/{id}")]).unwrap();
        std::fs::create_dir_all(&dir).unwrap();
        let usual = [
            ("--id", id.to_owned()),
            ("--listen", grpc.clone()),
            ("--metrics-addr", http.clone()),
            ("--coordinator-addr", fleet.addresses()),
            ("--coordinator-heartbeat-interval", "500ms".to_owned()),
            ("--cycle-interval", "200ms".to_owned()),
            ("--seed-machines", "5".to_owned()),
            ("--data-dir", dir.join("data").display().to_string()),
            ("--audit-log", dir.join("audit.jsonl").display().to_string()),
        ];
        let args: Vec<String> = std::iter::once("shard".to_owned())
            .chain(flags(usual, more))
            .chain(material.args())
            .collect();
        let process = Process::spawn(&bigfleet(), &args, &dir.join("log"));
        Self { id: id.to_owned(), grpc, http, material, dir, process }
    }

    /// A metric, of those labels that hold all of `with`.
    pub(crate) async fn metric(&self, name: &str, with: &str) -> Option<f64> {
        sum_of(&get(&self.http, "/metrics").await?.1, name, &[with])
    }

    /// Reports so far that went so.
    pub(crate) async fn reports(&self, outcome: &str) -> Option<f64> {
        let label = format!("outcome=\"{outcome}\"");
        self.metric("bigfleet_shard_coordinator_reports_total", &label).await
    }

    /// It decides on, ready and alive.
    pub(crate) async fn cycles(&mut self) {
        let cycles = "bigfleet_shard_cycle_duration_seconds_count";
        let before = until("cycles", async || self.metric(cycles, "").await).await;
        until("ten more cycles", async || {
            assert!(self.process.is_running(), "{}", self.process.tail());
            let now = get(&self.http, "/metrics").await?.1;
            sum(&now, cycles).filter(|now| *now >= before + 10.0)
        })
        .await;
        assert_eq!(get(&self.http, "/readyz").await.unwrap().0, 200);
        assert_eq!(get(&self.http, "/healthz").await.unwrap().0, 200);
    }

    /// Waits for a report that went so, after now.
    pub(crate) async fn until_reported(&self, outcome: &str) {
        let before = self.reports(outcome).await.unwrap_or_default();
        until(&format!("a report that is {outcome}"), async || {
            self.reports(outcome).await.filter(|now| *now > before)
        })
        .await;
    }

    /// What it wrote down.
    pub(crate) fn audit(&self) -> Vec<bigfleet_shard::audit::Record> {
        audit::records(&self.dir.join("audit.jsonl"))
    }

    /// A cluster of it whose demand never rests.
    pub(crate) fn restless(&self, fleet: &Fleet, cluster: &str) -> (Member, Material) {
        let material = fleet.pki.material(&[&format!("bigfleet://cluster/{cluster}")]).unwrap();
        let mut demand = Cluster::new(cluster, 1);
        demand.deploy(&Shape::new(1_000, 1 << 30), 4);
        demand.set_churn(Churn { replaced: 200, scaled: 500 });
        let options = OperatorOptions::new(cluster).without_record();
        let operator = Operator::new(&self.grpc, &security(&material), options);
        (Member::start(operator, demand, std::time::Duration::from_millis(100)), material)
    }
}

/// A shard that shares its provider, and a way to whoever leads.
pub(crate) struct Holder {
    client: Client,
    _material: Material,
    shard: holder::Holder,
}

impl Holder {
    pub(crate) fn new(fleet: &Fleet, id: &str) -> Self {
        let material = fleet.pki.material(&[&format!("bigfleet://shard/{id}")]).unwrap();
        let client = fleet.client_as(&material);
        Self { client, _material: material, shard: holder::Holder::new(id) }
    }

    /// One report to whoever leads.
    pub(crate) async fn report(&mut self) -> Result<ReportAck, Status> {
        let report = self.shard.report();
        let call = |mut leader: CoordinatorClient<Channel>| {
            let report = report.clone();
            async move { leader.report_shard(report).await.map(tonic::Response::into_inner) }
        };
        let ack = self.client.ask(call).await?;
        self.shard.take(&ack);
        Ok(ack)
    }

    /// Reports until it has heard all that is new.
    pub(crate) async fn settle(&mut self) {
        for _ in 0..4 {
            until("an answer to a report", async || self.report().await.ok()).await;
        }
    }

    pub(crate) fn held(&self) -> Vec<&str> {
        self.shard.domains()
    }

    pub(crate) fn fleet(&self) -> &str {
        &self.shard.fleet
    }
}
