//! `rollup`: what an operator pays for its roll-ups.

use std::{collections::HashMap, hint::black_box, sync::Arc, time::Duration};

use bigfleet_in_cluster::{Change, ObjectKey};
use bigfleet_operator::rollup::{Fold, Ledger, Projector, Request};

use super::{CLUSTER, requests, timed, workload};
use crate::{
    bench::{
        Args,
        grade::{at_most, told},
        measure::{Run, quantile_ms},
        memory,
        quality::Grade,
    },
    error::Error,
};

/// Milliseconds at 25,000 requests.
const FULL: f64 = 15.0;
const INCREMENTAL: f64 = 1.0;

/// Megabytes at 250,000 requests, a relist included, during which there are two caches.
const RESIDENT: f64 = 250.0;

/// Requests of the largest cluster.
const MANY: usize = 250_000;

/// A full build, and one after a single request changed.
pub(in crate::bench) fn rollup(run: &Run, args: &Args) -> Result<Vec<Grade>, Error> {
    let resident = kept_in_memory();
    let count = args.pods.requests;
    let projector = Projector::default();
    let objects = requests(workload::pods(count));
    let kept: Vec<Request> = objects.map(|object| projector.project(&object)).collect();
    run.progress.expect("measuring", u64::from(run.cycles));
    let (mut full, mut incremental, mut bytes) = (Vec::new(), Vec::new(), 0);
    let mut fold = Fold::new(CLUSTER);
    for turn in 0..=run.cycles {
        let ((made, length), took) = timed(|| {
            let mut fold = Fold::new(CLUSTER);
            kept.iter().for_each(|request| fold.add(request));
            let length = encoded(&mut fold, i64::from(turn));
            (fold, length)
        });
        (fold, bytes) = (made, length);
        full.push(took);
        run.progress.step();
    }
    for turn in 0..run.cycles.max(1_000) {
        let [one, other] = [0, 1].map(|more| &kept[(turn as usize * 7 + more) % kept.len()]);
        // Like a pod that was resized; the next turn begins from a fold as good as new.
        let (_, took) = timed(|| {
            fold.replace(one, other);
            encoded(&mut fold, i64::from(turn))
        });
        fold.replace(other, one);
        encoded(&mut fold, i64::from(turn));
        incremental.push(took);
    }
    full.remove(0);
    full.sort_unstable();
    incremental.sort_unstable();
    let p99 = |samples: &[Duration]| format!("{:.3}", quantile_ms(samples, 99));
    Ok(vec![
        told("requests, bytes of the roll-up", format!("{count} {bytes}")),
        at_most("p50 of a full build, ms", quantile_ms(&full, 50), FULL * scale(count)),
        told("p99 of a full build, ms", p99(&full)),
        at_most("p50 of an incremental build, ms", quantile_ms(&incremental, 50), INCREMENTAL),
        told("p99 of an incremental build, ms", p99(&incremental)),
        at_most("resident for 250,000 requests, MB", resident as f64 / 1e6, RESIDENT),
    ])
}

fn scale(count: usize) -> f64 {
    count.max(25_000) as f64 / 25_000.0
}

fn encoded(fold: &mut Fold, timestamp: i64) -> usize {
    let roll_up = fold.build(timestamp);
    let mut frame = Vec::with_capacity(roll_up.encoded_len());
    roll_up.encode(&mut frame);
    frame.len()
}

/// What the cache and the ledger of an operator take of its memory at worst: in a relist, which
/// shows a whole new cache in place of the old one.
fn kept_in_memory() -> u64 {
    let base = memory::resident_bytes();
    let (projector, mut ledger) = (Projector::default(), Ledger::new(CLUSTER));
    // One at a time: what they are made of is not what an operator keeps.
    let listed = || {
        requests(workload::pods(MANY))
            .map(|object| (ObjectKey::of(&object), Arc::new(projector.project(&object))))
    };
    let mut cache = HashMap::new();
    for (key, after) in listed() {
        ledger.apply(&Change::Put { key: key.clone(), before: None, after: after.clone() });
        cache.insert(key, after);
    }
    let anew: HashMap<_, _> = black_box(listed().collect());
    let resident = memory::resident_bytes().saturating_sub(base);
    drop((cache, anew, ledger));
    resident
}
