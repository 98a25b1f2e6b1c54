//! What a hundred viewers cost a shard (experience chapter §2: at most 2 % of its cycle), measured
//! on processes: 20,000 needs of 20 clusters, of which some change every second, and 50,000
//! machines. Prints; run it alone on a quiet machine, with optimised binaries:
//!
//! `cargo build --release -p bigfleet -p bigfleet-dashboard`
//!
//! `BIGFLEET_BINARIES=target/release cargo test --release -p bigfleet-dashboard --test it -- \
//! --ignored --nocapture cost`

use std::time::Duration;

use bigfleet_net::tls::Security;
use bigfleet_scripted::{
    coordinator::Coordinator,
    operator::{Operator, OperatorOptions},
};
use bigfleet_testkit::{
    binaries::binary,
    ports::port,
    process::{Process, get, sum, until},
};
use bigfleet_wire::v1alpha1::CapacityNeed;
use futures_util::future::join_all;
use tempfile::TempDir;
use tokio::time::{interval, sleep};

use crate::{
    laptop::{Dashboard, Viewer},
    real::need,
    rig::lead,
};

const CLUSTERS: usize = 20;
const NEEDS: i32 = 1_000;
const WINDOW: Duration = Duration::from_secs(15);
const ROUNDS: usize = 5;

/// Needs that differ by priority, of which one in fifty asks for more, every second another.
fn demand(second: i32) -> Vec<CapacityNeed> {
    let cpu = |number: i32| if number % 50 == second % 50 { 3 } else { 2 };
    (0..NEEDS).map(|number| need(100 + number, &cpu(number).to_string())).collect()
}

/// Seconds of all cycles so far, how many there were, and the process's own seconds.
async fn cycles(http: &str, process: &Process) -> [f64; 3] {
    let metrics = until("metrics", async || get(http, "/metrics").await).await.1;
    let of = |name: &str| sum(&metrics, &format!("bigfleet_shard_cycle_duration_seconds_{name}"));
    let cpu = process.cpu_seconds().unwrap_or_default();
    [of("sum").unwrap(), of("count").unwrap(), cpu]
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn cost_of_a_hundred_viewers() {
    let dir = TempDir::new().unwrap();
    let [grpc, http] = std::array::from_fn(|_| port());
    let args = [
        "shard".to_owned(),
        "--id=shard-0".to_owned(),
        format!("--listen={grpc}"),
        format!("--metrics-addr={http}"),
        "--cycle-interval=500ms".to_owned(),
        "--seed-machines=50000".to_owned(),
        format!("--data-dir={}", dir.path().join("data").display()),
    ];
    let shard = Process::spawn(&binary("bigfleet"), &args, &dir.path().join("shard.log"));
    until("a shard", async || get(&http, "/readyz").await.filter(|(status, _)| *status == 200))
        .await;
    let coordinator = Coordinator::start(&Security::Plaintext).await.unwrap();
    lead(&coordinator, &[("shard-0", &grpc)]);
    let operators = join_all((0..CLUSTERS).map(|number| {
        let options = OperatorOptions::new(format!("cluster-{number}")).without_record();
        Operator::connect(&grpc, &Security::Plaintext, options)
    }))
    .await;
    let operators: Vec<Operator> = operators.into_iter().map(Result::unwrap).collect();
    let demanding = tokio::spawn(async move {
        let mut seconds = interval(Duration::from_secs(1));
        for second in 0.. {
            seconds.tick().await;
            for operator in &operators {
                operator.roll_up(demand(second)).await.unwrap();
            }
        }
    });
    let flags = [format!("--coordinator-addr={}", coordinator.addr())];
    sleep(WINDOW).await;
    let (mut alone, mut watched) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        for viewers in [0, 100] {
            // A new one each time: the last would watch on for a while without viewers.
            let dashboard = Dashboard::start(&dir, &flags).await;
            let addr = &dashboard.addr;
            let opened = join_all((0..viewers).map(|_| Viewer::open(addr))).await;
            let looking: Vec<_> = opened
                .into_iter()
                .map(|mut viewer| {
                    tokio::spawn(async move {
                        loop {
                            viewer.summary().await;
                        }
                    })
                })
                .collect();
            let before = cycles(&http, &shard).await;
            sleep(WINDOW).await;
            let after = cycles(&http, &shard).await;
            let [time, count, cpu] = std::array::from_fn(|at| after[at] - before[at]);
            let of = if viewers == 0 { &mut alone } else { &mut watched };
            of.push((1e3 * time / count, 1e3 * cpu / count));
            looking.iter().for_each(tokio::task::JoinHandle::abort);
        }
    }
    demanding.abort();
    for (name, all) in [("nobody", alone), ("a hundred viewers", watched)] {
        let (time, cpu): (Vec<f64>, Vec<f64>) = all.into_iter().unzip();
        println!("{name}: a cycle {time:.3?} ms, median {:.3} ms", median(time.clone()));
        println!(
            "{name}: the process, a cycle {cpu:.3?} ms of CPU, median {:.3} ms",
            median(cpu.clone())
        );
    }
}
