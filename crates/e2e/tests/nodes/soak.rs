//! Row 38: pods come and go for as long as one likes, and nothing grows.
//!
//! `BIGFLEET_SOAK_MINUTES=30 cargo test -p bigfleet-e2e --test nodes -- --ignored --nocapture soak`
//!
//! Between two quiet points workloads are scaled at random and their pods awaited. At a quiet
//! point nothing runs: no request, machine or node may be left, and the memory of the processes
//! is taken. In the end the later half is compared with the earlier one.

use std::time::{Duration, Instant};

use bigfleet_crds::{AvailableCapacity, CapacityRequest, UpcomingNode};
use bigfleet_e2e::{
    fleet::Part,
    measure::{number, quantile, seed},
    wait::eventually,
    workload::Workload,
};
use bigfleet_scripted::random::Random;
use k8s_openapi::api::coordination::v1::Lease;

use crate::scene::Scene;

const WORKLOADS: [&str; 4] = ["a", "b", "c", "d"];
/// All of them together fit on the machines that there are.
const PODS: u64 = 7;
/// Changes between two quiet points.
const CHANGES: usize = 8;

/// What was seen at a quiet point, and since the one before.
#[derive(Debug, Clone)]
struct Sample {
    /// How long each change took until its pods ran.
    changes: Vec<Duration>,
    /// Memory of each process.
    resident: Vec<(&'static str, u64)>,
    /// Objects that are there while nothing runs.
    objects: usize,
}

/// What the later half of the samples has more of than the earlier one; the first is left out,
/// for caches fill then.
fn growth(samples: &[Sample]) -> Vec<String> {
    let (early, late) = samples[1..].split_at((samples.len() - 1) / 2);
    let mut problems = Vec::new();
    for (index, (name, _)) in early[0].resident.iter().enumerate() {
        let most = |part: &[Sample]| part.iter().map(|sample| sample.resident[index].1).max();
        let (before, after) = (most(early).unwrap_or(0), most(late).unwrap_or(0));
        if after > before + before / 10 + (8 << 20) {
            problems.push(format!("{name} grew from {before} to {after} bytes"));
        }
    }
    let p99 = |part: &[Sample]| {
        let mut all: Vec<_> = part.iter().flat_map(|sample| &sample.changes).copied().collect();
        all.sort_unstable();
        quantile(&all, 99)
    };
    let (before, after) = (p99(early), p99(late));
    if after > before * 3 / 2 + Duration::from_secs(5) {
        problems.push(format!("the p99 of a change went from {before:?} to {after:?}"));
    }
    let most = |part: &[Sample]| part.iter().map(|sample| sample.objects).max();
    // A hint that nobody needs any more may still be there at one of two quiet points.
    if most(late) > most(early).map(|count| count + 1) {
        problems.push(format!("objects: {:?} became {:?}", most(early), most(late)));
    }
    problems
}

#[ignore = "takes BIGFLEET_SOAK_MINUTES, 30 unless given"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_38_nothing_grows_in_a_soak() {
    let minutes = number("BIGFLEET_SOAK_MINUTES", 30);
    println!("BIGFLEET_SOAK_MINUTES={minutes}");
    let seed = seed("BIGFLEET_SOAK_SEED");
    let Some(mut scene) = Scene::start_or_skip().await else { return };
    for name in WORKLOADS {
        scene.cluster.create(&Workload::new("default", name).replicas(0).deployment()).await;
    }
    let (mut draw, mut samples) = (Random::new(seed), Vec::new());
    let end = Instant::now() + Duration::from_secs(60 * minutes);
    // Fewer do not make two halves.
    while Instant::now() < end || samples.len() < 5 {
        let mut changes = Vec::new();
        for _ in 0..CHANGES {
            let name = WORKLOADS[draw.below(WORKLOADS.len() as u64) as usize];
            let pods = draw.below(PODS);
            let began = Instant::now();
            scene.cluster.scale("default", name, pods as u32).await;
            scene.cluster.until_running("default", name, pods as usize).await;
            changes.push(began.elapsed());
        }
        let sample = quiet(&mut scene, changes).await;
        println!("{sample:?}");
        samples.push(sample);
    }
    let problems = growth(&samples);
    assert!(problems.is_empty(), "{problems:#?}");
}

/// Lets everything go, and looks at what is left.
async fn quiet(scene: &mut Scene, changes: Vec<Duration>) -> Sample {
    let cluster = &scene.cluster;
    for name in WORKLOADS {
        cluster.scale("default", name, 0).await;
    }
    eventually("nothing is left", || async {
        cluster.all::<CapacityRequest>().await.is_empty()
            && cluster.all::<UpcomingNode>().await.is_empty()
            && cluster.nodes().await.is_empty()
    })
    .await;
    let objects =
        cluster.all::<AvailableCapacity>().await.len() + cluster.all::<Lease>().await.len();
    let parts: [(&'static str, &mut Part); 4] = [
        ("operator", &mut scene.operator),
        ("pod-controller", &mut scene.pod_controller),
        ("shard", &mut scene.shard),
        ("provider", &mut scene.provider),
    ];
    let resident = parts.map(|(name, part)| {
        assert!(part.process().is_running(), "{name} ended");
        (name, part.process().resident_bytes().unwrap_or(0))
    });
    Sample { changes, resident: resident.to_vec(), objects }
}

#[test]
fn growth_is_seen_and_noise_is_not() {
    let sample = |seconds, mib: u64, objects| Sample {
        changes: vec![Duration::from_secs(seconds)],
        resident: vec![("operator", mib << 20)],
        objects,
    };
    let start = sample(60, 10, 9);
    let flat = [start.clone(), sample(5, 40, 3), sample(9, 44, 3), sample(6, 45, 4)];
    assert_eq!(growth(&flat), Vec::<String>::new());
    for (last, word) in
        [(sample(20, 40, 3), "p99"), (sample(5, 90, 3), "grew"), (sample(5, 40, 5), "objects")]
    {
        let problems = growth(&[start.clone(), sample(5, 40, 3), last]);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains(word), "{problems:?}");
    }
}
