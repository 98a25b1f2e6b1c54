//! Everything that can go wrong does, at random, while pods come and go.
//!
//! `BIGFLEET_CHAOS_MINUTES=30 cargo test -p bigfleet-e2e --test whole -- --nocapture chaos`
//!
//! `BIGFLEET_CHAOS_SEED` draws the same faults and the same pods again. Throughout: no roll-up on
//! its way to the shard is below the demand of the pods that live (see [`ledger`]), no pod has two
//! requests, no process ends by itself. Between faults the pods that are wanted run. In the end no
//! process of ours has deleted a pod, and nothing is left of anything.

mod churn;
mod faults;
mod ledger;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use bigfleet_e2e::{
    measure::{number, seed},
    wait::within,
};
use bigfleet_scripted::random::Random;
use bigfleet_testkit::pki::Pki;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::ResourceExt;

use self::{churn::Churn, faults::Fault, ledger::Ledger};
use crate::site::{Flags, Site};

/// Enough for all pods, and for some machines that are held back after a failure.
const CLOUD: &[&str] = &[
    "--tier={name: vm, type: m4, capacity: ON_DEMAND, count: 20, price: 0.2, \
     resources: {cpu: 4, memory: 16Gi}}",
    "--latency={create: {uniform: [200ms, 2s]}, configure: {uniform: [200ms, 2s]}, \
     drain: 200ms, delete: 200ms}",
    "--interruption-factor=0",
];

/// Lives for twice as long in a Secret.
const TOKENS: &[&str] = &[
    "--bootstrap-tokens=16",
    "--bootstrap-ttl=20s",
    "--bootstrap-api-server=https://cluster.example:6443",
];

/// All is well again within this time: the longest pauses of all who try again, one after another.
const RECOVERY: Duration = Duration::from_secs(240);

/// What happened before this time, in nanoseconds, is known while nothing is wrong.
const KNOWN: ledger::Time = 10_000_000_000;

/// Rounds between two looks at pods that run.
const ROUNDS: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chaos_loses_no_demand_and_leaves_nothing_behind() {
    let minutes = number("BIGFLEET_CHAOS_MINUTES", 1);
    println!("BIGFLEET_CHAOS_MINUTES={minutes}");
    let seed = seed("BIGFLEET_CHAOS_SEED");
    let folder = tempfile::tempdir().unwrap();
    let (template, authority) = (folder.path().join("bootstrap.tmpl"), folder.path().join("ca"));
    std::fs::write(&template, "join {{ .APIServer }} {{ .BootstrapToken }}\n").unwrap();
    std::fs::write(&authority, Pki::new().unwrap().ca_pem()).unwrap();
    let files = [
        format!("--bootstrap-template-file={}", template.display()),
        format!("--bootstrap-ca-file={}", authority.display()),
    ];
    let flags = Flags {
        provider: CLOUD.iter().map(|&flag| flag.to_owned()).collect(),
        operator: TOKENS.iter().map(|&flag| flag.to_owned()).chain(files).collect(),
        pod_controller: Vec::new(),
    };
    let Some(site) = Site::start_or_skip(flags).await else { return };
    let ledger = Ledger::start(&site.cluster.client());
    let churn = Churn::start(&site.cluster).await;
    let (draw, tally) = (Random::new(seed), Tally::default());
    let mut run = Run { site, ledger, churn, draw, last: ledger::now(), tally };
    let long = minutes > 5;
    let end = Instant::now() + Duration::from_secs(60 * minutes);
    while Instant::now() < end {
        for _ in 0..ROUNDS {
            run.round(long).await;
        }
        run.settle().await;
    }
    run.end().await;
}

/// What a run came to.
#[derive(Debug, Default)]
struct Tally {
    faults: BTreeMap<String, usize>,
    /// Roll-ups that were judged, and those of them that had to hold something.
    roll_ups: (usize, usize),
    /// How long it took each time until all was well again.
    recoveries: Vec<Duration>,
}

struct Run {
    site: Site,
    ledger: Ledger,
    churn: Churn,
    draw: Random,
    /// When the last round began.
    last: ledger::Time,
    tally: Tally,
}

impl Run {
    /// One fault or two at once, and pods that come and go meanwhile.
    async fn round(&mut self, long: bool) {
        let before = std::mem::replace(&mut self.last, ledger::now());
        let mut wrong: Vec<(Fault, Instant)> = Vec::new();
        for _ in 0..1 + self.draw.below(2) {
            let others: Vec<Fault> = wrong.iter().map(|(fault, _)| *fault).collect();
            let fault = Fault::draw(&mut self.draw, &others);
            // Now and then longer than a Lease of the demand's source is believed in.
            let seconds = match self.draw.below(8) {
                0 if long => 65 + self.draw.below(20),
                _ => 1 + self.draw.below(10),
            };
            println!("{fault:?} for {seconds} s");
            *self.tally.faults.entry(fault.name()).or_default() += 1;
            fault.begin(&mut self.site).await;
            wrong.push((fault, Instant::now() + Duration::from_secs(seconds)));
        }
        while !wrong.is_empty() {
            self.churn.step(&mut self.draw).await;
            tokio::time::sleep(Duration::from_millis(500 + self.draw.below(1000))).await;
            let due: Vec<Fault> = wrong
                .iter()
                .filter(|(_, until)| *until <= Instant::now())
                .map(|one| one.0)
                .collect();
            wrong.retain(|(fault, _)| !due.contains(fault));
            for fault in due {
                fault.end(&mut self.site).await;
            }
        }
        self.inspect(before);
    }

    /// Looks at what holds at any time; roll-ups up to this time are judged, of whose pods all is
    /// known by now.
    fn inspect(&mut self, until: ledger::Time) {
        let parts = [
            ("operator", &mut self.site.operator),
            ("pod controller", &mut self.site.pod_controller),
            ("shard", &mut self.site.shard),
            ("provider", &mut self.site.provider),
        ];
        for (name, part) in parts {
            assert!(part.process().is_running(), "{name} ended: {}", part.process().tail());
        }
        for roll_up in self.site.tap.roll_ups_after(self.tally.roll_ups.0) {
            if roll_up.needs.timestamp_unix_nanos >= until {
                break;
            }
            let (short, least) = self.ledger.judge(&roll_up.needs);
            assert!(short.is_empty(), "a roll-up is below the demand of pods that live: {short:?}");
            self.tally.roll_ups.0 += 1;
            self.tally.roll_ups.1 += usize::from(least > 0);
        }
        assert_eq!(self.site.tap.refusals(), Vec::<String>::new());
        assert_eq!(self.ledger.twins(), Vec::<String>::new(), "one request for each pod");
    }

    /// Nothing is wrong any more: the pods that are wanted come to run, and are what is asked for.
    async fn settle(&mut self) {
        let began = Instant::now();
        let deadline = began + RECOVERY;
        loop {
            self.inspect(ledger::now() - KNOWN);
            let said = self.site.tap.newest();
            let is_demand = said.as_ref().is_some_and(|said| self.churn.is_demand(&said.needs));
            if self.churn.runs(&self.site.cluster).await && is_demand {
                break;
            }
            if Instant::now() > deadline {
                self.tell_pods().await;
                panic!("not well again within {RECOVERY:?}; the last roll-up: {said:?}");
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        println!("well again after {:?}", began.elapsed());
        self.tally.recoveries.push(began.elapsed());
    }

    async fn tell_pods(&self) {
        for pod in self.site.cluster.all::<Pod>().await {
            let status = pod.status.clone().unwrap_or_default();
            let on = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
            println!("{} {:?} on {on:?}", pod.name_any(), status.phase);
        }
    }

    async fn end(mut self) {
        self.churn.end().await;
        self.site.until_empty(RECOVERY).await;
        let site = &self.site;
        within(RECOVERY, "all machines are back", || async { site.machines_away().await < 0.5 })
            .await;
        self.inspect(ledger::now());

        // Tokens that a killed operator had made expire.
        self.site.operator.process().signal("TERM").await;
        assert!(self.site.operator.process().ended().await.success(), "an orderly end");
        let cluster = &self.site.cluster;
        within(RECOVERY, "no Secret is left", || async {
            cluster.all::<Secret>().await.is_empty()
        })
        .await;

        let removals = self.site.cluster.plane().pod_removals().unwrap();
        let ours = |user: &str| user.starts_with("system:serviceaccount:bigfleet-system:");
        let deleted: Vec<_> =
            removals.iter().filter(|one| ours(&one.user) && one.verb != "evict").collect();
        assert!(deleted.is_empty(), "pods were deleted, not evicted: {deleted:?}");
        let evicted = removals.iter().filter(|one| ours(&one.user) && one.code == 201).count();
        let (pods, counted) = self.ledger.pods();
        println!("{:#?}", self.tally);
        println!("{pods} pods, {counted} of them counted; {evicted} evicted by us");
        assert!(!removals.is_empty(), "the server wrote down who removes pods");
        assert!(self.tally.roll_ups.1 > 0, "roll-ups had something to hold");
    }
}
