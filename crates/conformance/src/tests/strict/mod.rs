//! Strict: the rules beyond the plain contract.

pub(super) mod fault;

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use tonic::Code;

use super::list::ids;
use crate::{
    case::{Binding, Case, Listing, Machine, State},
    catalogue::rows,
    ensure,
    kill::Harness,
    outcome::{Outcome, Stop},
    quantile::{figures, quantile},
    random::Random,
    shard::{Shard, Token},
};

rows! { Strict:
    "ST-01" "Configure to another cluster is ALREADY_EXISTS" [Strict] [] M st_01;
    "ST-02" "an empty cluster or a half token is INVALID_ARGUMENT" [Strict] [] M st_02;
    "ST-03" "pages miss nothing while another client mutates" [Strict] [Page] M st_03;
    "ST-04" "a cursor of another store or ahead of head gives a full list" [Strict] [Rev] M st_04;
    "ST-05" "killed in transition, an operation resumes with one host" [Strict] [Dur Slot Del] M st_05;
    "ST-06" "200 random kills forget nothing that was acknowledged" [Strict] [Dur Slot Del] M st_06;
}

async fn st_01(t: Case) -> Outcome {
    let m = t.configured().await?;
    let other = Binding::to(t.cluster("b"));
    t.configure(&m, other).await.refused(&[Code::AlreadyExists])?;
    let bound = t.is_in(&m, State::Configured).await?;
    ensure!(bound.cluster == t.cluster("a"), "{m:?} is bound to {:?} now", bound.cluster);
    t.stays(&bound).await
}

async fn st_02(t: Case) -> Outcome {
    let m = t.idle().await?;
    let before = t.get(&m).await?;
    t.configure(&m, Binding::to("")).await.refused(&[Code::InvalidArgument])?;
    // Over mTLS no certificate names the empty shard.
    let due: &[Code] = if t.wire().credentials().is_tls() {
        &[Code::InvalidArgument, Code::PermissionDenied]
    } else {
        &[Code::InvalidArgument]
    };
    for (epoch, sequence) in [(5, 0), (0, 5)] {
        let half = Token { shard: "".into(), epoch, sequence };
        t.configure_as(&m, Binding::to(t.cluster("a")), &half).await.refused(due)?;
    }
    t.stays(&before).await
}

async fn st_03(t: Case) -> Outcome {
    const PAGE: i32 = 7;
    let busy = t.idles(6).await?;
    let reading = AtomicBool::new(true);
    let mutate = async {
        while reading.load(Ordering::Relaxed) {
            for m in &busy {
                t.configure_and_wait(m, Binding::to(t.cluster("a"))).await?;
                t.drain_and_wait(m, 0).await?;
            }
        }
        Outcome::Ok(())
    };
    let mut view: BTreeMap<String, Machine> = BTreeMap::new();
    let read = async {
        let mut cursor = Vec::new();
        loop {
            let page = t.list(Listing::default().since(&cursor).max(PAGE)).await?;
            ensure!(page.machines.len() <= PAGE as usize, "a page holds {}", page.machines.len());
            let last = page.machines.len() < PAGE as usize;
            cursor = page.revision;
            for machine in page.machines {
                view.insert(machine.id.clone(), machine);
            }
            if last {
                break;
            }
        }
        reading.store(false, Ordering::Relaxed);
        Ok(cursor)
    };
    let (read, mutated) = tokio::join!(read, mutate);
    mutated?;
    let mut cursor: Vec<u8> = read?;
    // What changed while the last page was on its way.
    loop {
        let page = t.list(Listing::default().since(&cursor).max(PAGE)).await?;
        cursor = page.revision;
        if page.machines.is_empty() {
            break;
        }
        view.extend(page.machines.into_iter().map(|machine| (machine.id.clone(), machine)));
    }
    for machine in t.fleet().await? {
        let copy = view.get(&machine.id);
        ensure!(copy.is_some(), "the pages never showed {:?}", machine.id);
        ensure!(copy == Some(&machine), "the last copy of {:?} is not current", machine.id);
    }
    Ok(())
}

/// `1.<store>.<revision>` with a revision that was never given.
fn ahead(cursor: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(cursor).ok()?;
    let (store, revision) = text.rsplit_once('.')?;
    let revision: u64 = revision.parse().ok()?;
    Some(format!("{store}.{}", revision + 1000).into_bytes())
}

async fn st_04(t: Case) -> Outcome {
    let is_full = async |t: &Case, cursor: &[u8], what: &str| {
        let all = ids(&t.fleet().await?);
        let list = ids(&t.list(Listing::default().since(cursor)).await?.machines);
        ensure!(list == all, "a cursor {what} gives {} of {} machines", list.len(), all.len());
        Outcome::Ok(())
    };
    let head = t.head().await?;
    if let Some(ahead) = ahead(&head) {
        is_full(&t, &ahead, "ahead of head").await?;
    }
    if t.gates().dur {
        let mut instance = t.boot(64, &[]).await?;
        let old = t.on(instance.wire());
        old.idles(8).await?;
        let cursor = old.head().await?;
        t.trace().note("wipe the store, boot again");
        instance.wipe().await.map_err(|error| Stop::Failed(error.to_string()))?;
        let new = t.on(instance.wire());
        is_full(&new, &cursor, "of a wiped store").await?;
    }
    Ok(())
}

/// Hosts that the cloud really holds, where the target tells.
fn hosts(machine: &Machine) -> Option<&str> {
    machine.labels.get("conformance.fault/hosts").map(String::as_str)
}

/// The cloud must hold so many hosts for the machine, when it has looked.
pub(super) async fn holds(t: &Case, m: &str, count: &str) -> Outcome {
    let told = |seen: &Machine| hosts(seen).is_none_or(|hosts| hosts == count);
    let (seen, _) = t.until(m, Duration::from_secs(8), told).await?;
    ensure!(told(&seen), "the cloud holds {:?} hosts for {m:?}, not {count}", hosts(&seen));
    Ok(())
}

async fn st_05(t: Case) -> Outcome {
    let mut instance = t.boot(64, &[]).await?;
    let mut t = t.on(instance.wire());
    let slow = t.gates().flt;
    let m = if slow { t.faulty("slow").await? } else { t.start().await? };

    let created = t.create(&m).await.accepted()?;
    t = t.reboot(&mut instance).await?;
    let again = t.create(&m).await.accepted()?;
    ensure!(again.id == created.id, "Create resumes as {:?}, not {:?}", again.id, created.id);
    t.settle(&m, State::Idle).await?;
    holds(&t, &m, "1").await?;

    t.configure_and_wait(&m, Binding::to(t.cluster("a"))).await?;
    let drained = t.drain(&m, 0).await.accepted()?;
    t = t.reboot(&mut instance).await?;
    let again = t.drain(&m, 0).await.accepted()?;
    ensure!(again.id == drained.id, "Drain resumes as {:?}, not {:?}", again.id, drained.id);
    t.settle(&m, State::Idle).await?;
    t.clean_idle(&m).await?;

    let deleted = t.delete(&m).await.accepted()?;
    t = t.reboot(&mut instance).await?;
    let again = t.delete(&m).await.accepted()?;
    ensure!(again.id == deleted.id, "Delete resumes as {:?}, not {:?}", again.id, deleted.id);
    t.settle(&m, State::Speculative).await?;
    holds(&t, &m, "0").await
}

async fn st_06(t: Case) -> Outcome {
    const KILLS: u32 = 200;
    let instance = t.boot(128, &[]).await?;
    let random = t.random(|random| Random::new(random.draw(), "ST-06"));
    let shard = Shard::new(t.shard().id());
    let mut harness = Harness::new(instance, random, shard, t.trace().clone());
    for _ in 0..KILLS {
        harness.round().await?;
    }
    let figures = harness.figures();
    t.note(format!(
        "{} kills, {} acknowledged calls found again, {} machines FAILED with a reason",
        figures.kills, figures.acknowledged, figures.failed
    ));
    Ok(())
}

/// ST-11, whose certificate names another shard than its calls.
async fn st_11(t: Case) -> Outcome {
    if !t.wire().credentials().is_tls() {
        return Err(Stop::Short(
            "plaintext has no identities; give --tls-ca, --tls-issuer-cert and --tls-issuer-key"
                .into(),
        ));
    }
    let m = t.idle().await?;
    let before = t.get(&m).await?;
    let (a, b) = (t.shard(), t.shard());
    let thief = t.on(&t.wire().held_by(a.id()));
    let due = &[Code::PermissionDenied];
    let binding = Binding::to(t.cluster("a"));
    thief.create_as(&m, &b.at(1, 1)).await.refused(due)?;
    thief.configure_as(&m, binding, &b.at(1, 2)).await.refused(due)?;
    thief.drain_as(&m, 0, &b.at(1, 3)).await.refused(due)?;
    thief.delete_as(&m, &b.at(1, 4)).await.refused(due)?;
    thief.get(&m).await?;
    t.stays(&before).await
}

async fn st_14(t: Case) -> Outcome {
    const GHOSTS: usize = 100_000;
    const PARALLEL: usize = 64;
    let (m, shard) = (t.start().await?, t.shard());
    t.probe(&m, &shard.at(5, 5)).await.accepted()?;
    let ghost = |number: usize| t.unknown(&number.to_string());
    // Off the record: a hundred thousand lines are no evidence.
    let quiet = t.wire().recording(crate::trace::Trace::default());
    let haunt = async |first: usize| {
        for number in (first..GHOSTS).step_by(PARALLEL) {
            let answer = quiet.create(&ghost(number), &shard.at(5, 5)).await;
            let code = answer.map_or_else(|status| status.code(), |_| Code::Ok);
            ensure!(code == Code::NotFound, "Create of an unknown machine answers {code:?}");
        }
        Outcome::Ok(())
    };
    for done in join_all((0..PARALLEL).map(haunt)).await {
        done?;
    }
    // The newest ghosts are remembered, the oldest forgotten: that is a bound.
    t.create_as(&ghost(GHOSTS - 1), &shard.at(1, 1)).await.fenced()?;
    t.create_as(&ghost(0), &shard.at(1, 1)).await.refused(&[Code::NotFound])?;
    t.probe(&m, &shard.at(5, 5)).await.fenced()
}

async fn st_15(t: Case) -> Outcome {
    const RATE: u32 = 1000;
    const WORKERS: u32 = 64;
    let bound = t.time(Duration::from_millis(250));
    let time = Duration::from_secs(30);
    // A fleet large enough that a store which walks it shows.
    let own = match t.options().scale_seed {
        0 => None,
        seed => match t.boot(seed, &[]).await {
            Ok(instance) => Some(instance),
            // A target that only has an address keeps the fleet it has.
            Err(Stop::Short(_)) => None,
            Err(failed) => return Err(failed),
        },
    };
    let t = own.as_ref().map_or_else(|| t.clone(), |instance| t.on(instance.wire()));
    let machines = t.idles(WORKERS as usize).await?;
    let quiet = t.wire().recording(crate::trace::Trace::default());
    let begun = Instant::now();
    let work = async |(number, m): (usize, &String)| {
        let shard = t.shard();
        let mut samples = Vec::new();
        let mut due = begun + time / RATE / WORKERS * number as u32;
        while begun.elapsed() < time {
            tokio::time::sleep_until(due.into()).await;
            // Repeated at its target: no transition, but a mark to store.
            let sent = Instant::now();
            let answer = quiet.create(m, &shard.next()).await;
            ensure!(answer.is_ok(), "a mutation under load answers {:?}", answer.err());
            samples.push(sent.elapsed());
            due += Duration::from_secs(1) * WORKERS / RATE;
        }
        Ok(samples)
    };
    let mut samples = Vec::new();
    for worker in join_all(machines.iter().enumerate().map(work)).await {
        samples.extend(worker?);
    }
    let rate = samples.len() as f64 / begun.elapsed().as_secs_f64();
    t.note(format!("{rate:.0} mutations/s, {}", figures(&samples)));
    let enough = rate >= f64::from(RATE) * 0.9;
    ensure!(enough, "{rate:.0} mutations/s, {RATE} were offered");
    let p99 = quantile(&samples, 0.99).unwrap_or_default();
    ensure!(p99 < bound, "p99 is {p99:.1?}, bound {bound:?}");
    Ok(())
}
