//! Scale: a large fleet, a soak, and figures.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use futures_util::future::try_join_all;

use super::{
    concurrency::created_at_once,
    list::{ids, unique},
};
use crate::{
    case::{Binding, Case, Listing, State},
    catalogue::rows,
    ensure,
    outcome::{Outcome, Stop},
    quantile::{figures, quantile},
    shape,
};

rows! { Scale:
    "SC-01" "a full List holds the fleet, in shape" [Scale] [] M sc_01;
    "SC-02" "a delta holds exactly twenty changes" [Scale] [Rev] M sc_02;
    "SC-03" "pages of 500 repeat nothing and, continued, hold the fleet" [Scale] [Rev] M sc_03;
    "SC-04" "eight machines churn and are clean at each rest" [Scale] [] M sc_04;
    "SC-05" "creating and deleting keeps the fleet's size" [Scale] [Slot] M sc_05;
    "SC-06" "p99 of Get and Create is 250 ms, of List 2 s" [Scale] [] M sc_06;
    "SC-07" "one full List takes 3 s" [Scale] [] M sc_07;
    "SC-08" "sixteen Creates at once have distinct ids" [Scale] [Slot] M sc_08;
    "SC-09" "idle machines rest under a soak" [Scale] [] M sc_09;
}

async fn sc_01(t: Case) -> Outcome {
    let list = t.list(Listing::default()).await?;
    let (count, due) = (unique(&list)?.len() as u64, t.options().scale_seed);
    if t.options().scale_seed > count {
        return Err(Stop::Short(format!(
            "List holds {count} machines, the lane needs {due}; give --target-cmd with {{seed}}, \
             or a smaller --scale-seed"
        )));
    }
    for machine in &list.machines {
        shape::identity(machine)?;
        shape::cost(machine)?;
        shape::spot(machine)?;
        shape::fits_state(machine)?;
        shape::resources(machine)?;
        ensure!(!machine.zone.is_empty(), "{:?} has no zone", machine.id);
    }
    Ok(())
}

async fn sc_02(t: Case) -> Outcome {
    let machines = t.idles(20).await?;
    // The last change before the cursor is none of them.
    t.idle().await?;
    t.calm().await?;
    let cursor = t.head().await?;
    let bind = machines.iter().map(|m| t.configure_and_wait(m, Binding::to(t.cluster("a"))));
    try_join_all(bind).await?;
    let delta = ids(&t.list(Listing::default().since(&cursor)).await?.machines);
    let due: BTreeSet<_> = machines.into_iter().collect();
    let (missing, extra) = (due.difference(&delta).count(), delta.difference(&due).count());
    ensure!(missing + extra == 0, "the delta of 20 changes misses {missing} and adds {extra}");
    Ok(())
}

async fn sc_03(t: Case) -> Outcome {
    const PAGE: i32 = 500;
    // Order of change and of name must differ.
    t.idles(8).await?;
    let fleet = unique(&t.list(Listing::default()).await?)?;
    let (mut cursor, mut seen) = (Vec::new(), BTreeSet::new());
    loop {
        let page = t.list(Listing::default().since(&cursor).max(PAGE)).await?;
        let page_ids = unique(&page)?;
        ensure!(page_ids.len() <= PAGE as usize, "a page of {PAGE} holds {}", page_ids.len());
        ensure!(page_ids.is_disjoint(&seen), "a page repeats a machine");
        if page_ids.is_empty() {
            break;
        }
        seen.extend(page_ids);
        cursor = page.revision;
        ensure!(!cursor.is_empty(), "a cut page has no revision");
    }
    if t.gates().page {
        ensure!(seen == fleet, "the pages hold {} of {} machines", seen.len(), fleet.len());
    }
    Ok(())
}

async fn sc_04(t: Case) -> Outcome {
    let machines = t.idles(8).await?;
    let end = Instant::now() + t.options().soak;
    let churn = async |m: &String| {
        let mut cycles = 0_u32;
        while Instant::now() < end || cycles == 0 {
            let metadata = [(format!("cycle-{cycles}"), "x".to_owned())].into();
            let binding = Binding::to(t.cluster("a")).with(metadata);
            t.configure_and_wait(m, binding).await?;
            t.drain_and_wait(m, 0).await?;
            t.clean_idle(m).await?;
            cycles += 1;
        }
        Ok(cycles)
    };
    let cycles: Vec<u32> = try_join_all(machines.iter().map(churn)).await?;
    t.note(format!("{} Configure/Drain cycles of 8 machines", cycles.iter().sum::<u32>()));
    Ok(())
}

async fn sc_05(t: Case) -> Outcome {
    let machines = t.starts(8).await?;
    let before = t.fleet().await?;
    let slots = |fleet: &[crate::case::Machine]| {
        fleet.iter().filter(|machine| machine.state() == State::Speculative).count()
    };
    let end = Instant::now() + t.options().soak;
    let deletes = t.gates().del;
    let churn = async |m: &String| {
        let mut cycles = 0_u32;
        while Instant::now() < end || cycles == 0 {
            t.create_and_wait(m).await?;
            cycles += 1;
            if !deletes {
                break;
            }
            t.delete(m).await.accepted()?;
            t.settle(m, State::Speculative).await?;
        }
        Ok(cycles)
    };
    let cycles: Vec<u32> = try_join_all(machines.iter().map(churn)).await?;
    let after = t.fleet().await?;
    ensure!(
        ids(&after) == ids(&before) && after.len() == before.len(),
        "the fleet had {} machines and has {}",
        before.len(),
        after.len()
    );
    let due = if deletes { slots(&before) } else { slots(&before) - machines.len() };
    ensure!(slots(&after) == due, "the fleet has {} slots instead of {due}", slots(&after));
    t.note(format!("{} Create cycles of 8 machines", cycles.iter().sum::<u32>()));
    Ok(())
}

/// Times calls one after the other; a call far past its bound ends it.
async fn timed<F: Future<Output = Outcome>>(
    count: usize,
    bound: Duration,
    mut call: impl FnMut(usize) -> F,
) -> Outcome<Vec<Duration>> {
    let mut samples = Vec::with_capacity(count);
    for number in 0..count {
        let begun = Instant::now();
        call(number).await?;
        samples.push(begun.elapsed());
        if begun.elapsed() > bound * 8 {
            break;
        }
    }
    Ok(samples)
}

fn within(what: &str, samples: &[Duration], bound: Duration) -> Outcome {
    let p99 = quantile(samples, 0.99).unwrap_or_default();
    ensure!(p99 <= bound, "{what}: {}, bound {bound:?}", figures(samples));
    Ok(())
}

async fn sc_06(t: Case) -> Outcome {
    let (quick, slow) = (t.time(Duration::from_millis(250)), t.time(Duration::from_secs(2)));
    let machines = t.starts(60).await?;
    let gets = timed(machines.len(), quick, async |number: usize| {
        t.get(&machines[number]).await.map(|_| ())
    });
    let gets = gets.await?;
    let probes = timed(machines.len(), quick, async |number: usize| {
        t.probe(&machines[number], &t.me().next()).await.accepted().map(|_| ())
    });
    let probes = probes.await?;
    let lists = timed(120, slow, async |_| t.fleet().await.map(|_| ())).await?;
    let probe = if t.gates().slot { "Create" } else { "Configure" };
    for (what, samples) in [("Get", &gets), (probe, &probes), ("List", &lists)] {
        t.note(format!("{what}: {}", figures(samples)));
    }
    within("Get", &gets, quick)?;
    within(probe, &probes, quick)?;
    within("List", &lists, slow)
}

async fn sc_07(t: Case) -> Outcome {
    let bound = t.time(Duration::from_secs(3));
    let begun = Instant::now();
    let count = t.fleet().await?.len();
    let took = begun.elapsed();
    t.note(format!("one full List of {count} machines: {took:.1?}"));
    ensure!(took <= bound, "a full List of {count} machines took {took:.1?}, bound {bound:?}");
    Ok(())
}

async fn sc_08(t: Case) -> Outcome {
    created_at_once(&t, 16).await
}

async fn sc_09(t: Case) -> Outcome {
    let machines = t.idles(8).await?;
    let time = (t.options().soak / 4).clamp(Duration::from_millis(500), Duration::from_secs(3));
    let seen = try_join_all(machines.iter().map(|m| t.watch(m, time))).await?;
    seen.iter().try_for_each(|seen| seen.only(&[State::Idle]))
}
