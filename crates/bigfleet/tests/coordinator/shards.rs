//! Shards of a fleet: real ones, and those that share a provider, played by the test.

use std::{collections::BTreeSet, path::PathBuf};

use bigfleet_model::FleetId;
use bigfleet_scripted::{
    cluster::{Churn, Cluster, Shape},
    member::Member,
    operator::{Operator, OperatorOptions},
};
use bigfleet_testkit::pki::Material;
use bigfleet_wire::v1alpha1::{Assignment, DomainAssignment, ReportAck, ShardReport};
use tonic::{Status, transport::Channel};

use crate::{
    client::Client,
    fleet::{Fleet, security},
    rig::{
        audit,
        binaries::bigfleet,
        ports::port,
        process::{Process, flags, get, sum, until},
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
        let metrics = get(&self.http, "/metrics").await?.1;
        let lines: Vec<&str> = metrics.lines().filter(|line| line.contains(with)).collect();
        sum(&lines.join("\n"), name)
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

/// A shard that shares its provider: it keeps what it holds, its fleet and its mark,
/// and follows coordinator chapter §4 and §8 with them.
pub(crate) struct Holder {
    id: &'static str,
    client: Client,
    _material: Material,
    cycle: i64,
    pub(crate) fleet: String,
    mark: i64,
    digest: u64,
    version: i64,
    pub(crate) holds: BTreeSet<String>,
    asked: bool,
}

impl Holder {
    pub(crate) fn new(fleet: &Fleet, id: &'static str) -> Self {
        let material = fleet.pki.material(&[&format!("bigfleet://shard/{id}")]).unwrap();
        Self {
            id,
            client: fleet.client_as(&material),
            _material: material,
            cycle: 0,
            fleet: String::new(),
            mark: 0,
            digest: 1,
            version: 0,
            holds: BTreeSet::new(),
            asked: false,
        }
    }

    /// One report to whoever leads.
    pub(crate) async fn report(&mut self) -> Result<ReportAck, Status> {
        self.cycle += 1;
        let domain = |value: &String| DomainAssignment {
            topology_key: "zone".to_owned(),
            topology_value: value.clone(),
            shard_id: self.id.to_owned(),
        };
        let domains = self.holds.iter().map(domain).collect();
        let report = ShardReport {
            shard_id: self.id.to_owned(),
            shard_address: format!("{}:7780", self.id),
            shard_epoch: 1,
            instance: 1,
            cycle: self.cycle,
            fleet_id: self.fleet.clone(),
            observed_term: self.mark,
            assignment_digest: self.digest,
            assignment_version: self.version,
            holdings: self.asked.then(|| Assignment { domains, ..Assignment::default() }),
            ..ShardReport::default()
        };
        let call =
            |mut one: bigfleet_wire::v1alpha1::coordinator_client::CoordinatorClient<Channel>| {
                let report = report.clone();
                async move { one.report_shard(report).await.map(tonic::Response::into_inner) }
            };
        let ack = self.client.ask(call).await?;
        self.take(&ack);
        Ok(ack)
    }

    fn take(&mut self, ack: &ReportAck) {
        if ack.fleet_id != self.fleet {
            let theirs: FleetId = ack.fleet_id.parse().unwrap();
            if let Ok(mine) = self.fleet.parse::<FleetId>() {
                assert_eq!(mine.uuid(), theirs.uuid());
                assert!(theirs.generation() > mine.generation(), "{} back to {theirs}", self.id);
            }
            (self.fleet, self.version) = (ack.fleet_id.clone(), 0);
        }
        assert!(ack.coordinator_term >= self.mark, "I2: {} below its mark", self.id);
        self.mark = ack.coordinator_term;
        self.asked = ack.want_holdings;
        if let Some(assignment) = &ack.assignment {
            let domains = assignment.domains.iter();
            self.holds = domains.map(|one| one.topology_value.clone()).collect();
            (self.digest, self.version) = (assignment.digest, assignment.version);
        }
    }

    /// Reports until it has heard all that is new.
    pub(crate) async fn settle(&mut self) {
        for _ in 0..4 {
            until("an answer to a report", async || self.report().await.ok()).await;
        }
    }

    pub(crate) fn held(&self) -> Vec<&str> {
        self.holds.iter().map(String::as_str).collect()
    }
}
