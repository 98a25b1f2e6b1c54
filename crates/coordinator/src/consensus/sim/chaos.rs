//! Random faults; every acknowledged write is linearisable and survives, and no term answers
//! after a higher one did.

use std::sync::{
    Mutex,
    atomic::{AtomicI64, Ordering},
};

use super::{linear::Op, *};

const KEYS: [&str; 3] = ["a", "b", "c"];

type History = Arc<Mutex<BTreeMap<&'static str, Vec<Op>>>>;

/// The highest term that acknowledged anything.
type Mark = Arc<AtomicI64>;

/// One client: writes and reads at random replicas, one call at a time.
async fn client(
    net: Net,
    size: usize,
    random: Entropy,
    number: u64,
    (history, mark): (History, Mark),
    end: Instant,
) {
    let mut value = number * 1_000_000;
    while Instant::now() < end {
        sleep(Duration::from_millis(20 + random.next() % 400)).await;
        let at = name(usize::try_from(random.next()).unwrap() % size);
        let key = KEYS[usize::try_from(random.next()).unwrap() % KEYS.len()];
        let Some(replica) = net.replica(&at) else { continue };
        let (called, before) = (Instant::now(), mark.load(Ordering::SeqCst));
        let (writes, mut returned);
        let seen = if !random.next().is_multiple_of(3) {
            value += 1;
            writes = true;
            let answer = replica.propose(&put(key, value), Duration::from_secs(2)).await;
            returned = match answer {
                Ok(_) => {
                    if let Leadership::Leader { term } = replica.leadership() {
                        assert!(term >= before, "I2: term {term} after {before}");
                        mark.fetch_max(term, Ordering::SeqCst);
                    }
                    Some(Instant::now())
                }
                Err(ProposeError::Unavailable | ProposeError::Deposed) => None,
                Err(_) => continue,
            };
            value
        } else {
            writes = false;
            returned = Some(Instant::now());
            let Some(seen) = get(&replica, key) else { continue };
            seen
        };
        // What a dead process told nobody heard.
        if net.replica(&at).is_none_or(|now| !Arc::ptr_eq(&now.shared, &replica.shared)) {
            if !writes {
                continue;
            }
            returned = None;
        }
        history.lock().unwrap().entry(key).or_default().push(Op {
            called,
            returned,
            value: seen,
            writes,
        });
    }
}

/// Parts, crashes, breaks and slows disks, loses and delays; at most a minority is down at
/// once.
async fn trouble(group: &mut Group, end: Instant) {
    while Instant::now() < end {
        let victim = usize::try_from(group.random.next()).unwrap() % group.size;
        let pause = Duration::from_millis(200 + group.random.next() % 2_500);
        let (disk, seed) = (group.disks[&name(victim)].clone(), group.random.next());
        match group.random.next() % 9 {
            0 => {
                group.net.isolate(&name(victim), (0..group.size).filter(|i| *i != victim).map(name))
            }
            1 => {
                let other = usize::try_from(group.random.next()).unwrap() % group.size;
                group.net.cut(&name(victim), &name(other));
            }
            2 => {
                group.crash(victim);
                sleep(pause / 2).await;
                group.start(victim).await.unwrap();
            }
            3 => {
                let after = group.random.next() % 60;
                let fault = match group.random.next() % 2 {
                    0 => crate::log::memory::Fault::Error,
                    _ => crate::log::memory::Fault::ShortWrite(7),
                };
                group.disks[&name(victim)].fail_after(after, fault);
            }
            4 => group.net.set(group.random.next() % 150, 2 + group.random.next() % 150),
            5 => {
                // Everybody at once: only the disks remain.
                (0..group.size).for_each(|ordinal| group.crash(ordinal));
                for ordinal in 0..group.size {
                    group.start(ordinal).await.unwrap();
                }
            }
            // One is slow for a while, or hangs at its next write.
            6 => disk.slow(Duration::from_millis(5), Duration::from_millis(800), seed),
            7 => {
                let hang = Duration::from_millis(1_000 + seed % 9_000);
                disk.slow(hang, hang, seed);
                sleep(pause / 2).await;
                fast(group);
            }
            _ => {
                group.net.heal();
                fast(group);
            }
        }
        sleep(pause).await;
        revive(group).await;
    }
    group.net.heal();
    fast(group);
}

fn fast(group: &Group) {
    group.disks.values().for_each(|disk| disk.slow(Duration::ZERO, Duration::ZERO, 0));
}

/// A process that cannot go on exits, and is started again on what its disk kept.
async fn revive(group: &mut Group) {
    for ordinal in 0..group.size {
        let dead = group.replica(ordinal).is_none_or(|one| one.fatal().borrow().is_some());
        if dead {
            group.crash(ordinal);
            group.start(ordinal).await.unwrap();
        }
    }
}

async fn storm(seed: u64, size: usize) -> History {
    let mut group = Group::stopped(seed, size);
    // Half of all seeds with writes that take no time, and fail at any of their steps.
    if seed.is_multiple_of(2) {
        fast(&group);
    }
    for ordinal in 0..size {
        // Clocks that differ by up to a fifth.
        group.clocks.insert(ordinal, 900 + u32::try_from(group.random.next() % 201).unwrap());
        group.start(ordinal).await.unwrap();
    }
    group.opened().await;
    let (history, mark) = (History::default(), Mark::default());
    let end = Instant::now() + Duration::from_secs(15);
    for number in 1..=4 {
        let random = Entropy::seeded(seed.wrapping_mul(31) + number);
        let seen = (history.clone(), mark.clone());
        tokio::spawn(client(group.net.clone(), size, random, number, seen, end));
    }
    trouble(&mut group, end).await;
    // Healed, the group serves again, and what it then says counts as well.
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        revive(&mut group).await;
        if let Some((_, leader)) = group.leader()
            && leader.propose(&put("last", 1), Duration::from_secs(2)).await.is_ok()
        {
            let mut history = history.lock().unwrap();
            let now = Instant::now();
            let finals = KEYS.map(|key| (key, get(&leader, key)));
            if finals.iter().all(|(_, value)| value.is_some()) {
                for (key, value) in finals {
                    let value = value.unwrap();
                    let op = Op { called: now, returned: Some(now), value, writes: false };
                    history.entry(key).or_default().push(op);
                }
                break;
            }
        }
        assert!(Instant::now() < deadline, "no leader after healing: {:#?}", group.statuses());
        sleep(Duration::from_millis(100)).await;
    }
    for (key, ops) in &*history.lock().unwrap() {
        assert!(linear::is_linearisable(ops), "register {key} is not linearisable: {ops:#?}");
    }
    // Everybody ends with the same state.
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        revive(&mut group).await;
        let payloads: Vec<_> = (0..size)
            .filter_map(|i| group.replica(i)?.peek(crate::state::State::to_payload))
            .collect();
        if payloads.len() == size && payloads.iter().all(|one| *one == payloads[0]) {
            return history;
        }
        assert!(Instant::now() < deadline, "replicas differ: {:#?}", group.statuses());
        sleep(Duration::from_millis(100)).await;
    }
}

#[test]
fn coordinator_inv_i2_i4_three_replicas_stay_linearisable_and_durable() {
    seeds(60)
        .into_iter()
        .for_each(|seed| run(seed, |seed| async move { drop(storm(seed, 3).await) }));
}

#[test]
fn coordinator_inv_i2_i4_five_replicas_stay_linearisable_and_durable() {
    seeds(20)
        .into_iter()
        .for_each(|seed| run(seed, |seed| async move { drop(storm(seed, 5).await) }));
}

/// A seed is worth something only if it says what happens.
#[test]
fn a_seed_tells_the_same_story_twice() {
    let told = || {
        let story = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&story);
        run(42, |seed| async move {
            let begun = Instant::now();
            for (key, ops) in &*storm(seed, 3).await.lock().unwrap() {
                let at = |time: Instant| time.duration_since(begun);
                let lines = ops.iter().map(|op| {
                    format!("{key} {} {:?} {:?}", op.value, at(op.called), op.returned.map(at))
                });
                told.lock().unwrap().extend(lines);
            }
        });
        // Whom the runtime wakes first at one instant is its own choice.
        let mut story = Arc::into_inner(story).unwrap().into_inner().unwrap();
        story.sort_unstable();
        story
    };
    let (first, second) = (told(), told());
    assert!(first.len() > 50, "{first:?}");
    assert_eq!(first, second);
}
