//! One provider slow and failing for two minutes.

use std::{collections::BTreeSet, time::Duration};

use bigfleet_provider_sim::{Freeze, Selector};
use bigfleet_wire::v1alpha1::{CapacityType, Machine, MachineState, UnmetDetail};
use tokio::time::Instant;

use super::{
    A, B, BATCH, PRODUCTION, all_run,
    backoff::{REFUSALS, Refused},
};
use crate::{
    cluster::workload::MOST,
    scenario::{
        baseline::level,
        record::Phase::{Act, Check},
        stage::{Played, Stage, now},
        view::{View, is_rented},
    },
    supply::SITES,
};

const BACKOFF: &str = "refused calls are repeated after pauses that grow";
const TOLD: &str = "what is short says that the provider fails";
const KEPT: &str = "no machine lost";
const ONCE: &str = "no double buy";
const RECOVERS: &str = "recovers by itself";
pub(crate) const CLAIMS: &[&str] = &[BACKOFF, TOLD, KEPT, ONCE, RECOVERS];

/// As the chapter has it, for who watches; a headless run has seen enough after a few seconds.
const GUIDED: Duration = Duration::from_secs(120);
const HEADLESS: Duration = Duration::from_secs(12);
/// Machines whose purchase is refused; all others of the cloud hang.
const REFUSED: usize = 2;
/// What is rented in the end of all but these: one bought twice would be one of them.
const SPARE: usize = 1;
/// Past what any purchase takes of a cloud that answers.
const SLOW: Duration = Duration::from_secs(3);

pub(crate) async fn play(stage: &Stage<'_>) -> Played {
    let shard = stage.fleet.clusters[A].shard;
    let site = &SITES[shard];
    let cloud = site.cheap_cloud();
    let length = if stage.guided { GUIDED } else { HEADLESS };
    let units = site.general() - site.committed() - SPARE;
    let production = level(A, PRODUCTION) + level(B, PRODUCTION);
    let of_b = (site.committed() + units) as u32 - production - MOST;
    let before = configured(&stage.view(), shard);
    let total = stage.view().machines(shard).count();
    stage.guard(KEPT, move |view, _| {
        let lost: Vec<String> = before.difference(&configured(view, shard)).cloned().collect();
        let known = view.machines(shard).count();
        (!lost.is_empty() || known != total).then(|| format!("{known} known, lost {lost:?}"))
    });
    stage.guard(ONCE, move |view, _| {
        let bought = standing(view, shard).len();
        (bought > units).then(|| format!("{bought} at once for {units} units"))
    });
    let (all, refused) = machines(&stage.view(), shard, cloud);
    let text = format!("cloud {cloud} hangs for {} s, and refuses some calls", length.as_secs());
    stage.step(Act, &text);
    let begun = Instant::now();
    let slow = Selector { machines: all, ..Selector::default() };
    stage.fleet.supplies[shard].controls.freeze(&slow, Freeze::default())?;
    stage.fleet.supplies[shard].closed.to(refused.clone());
    stage.step(Act, "batch demand rises to all that there is but one");
    stage.mark();
    stage.demand(A, BATCH, MOST);
    stage.demand(B, BATCH, of_b);
    stage.step(Check, "purchases there wait, time out or are refused");
    let mut seen = Seen::new(cloud, shard, &refused);
    stage
        .until_within(length + Duration::from_secs(90), &mut |view| {
            seen.look(stage, view);
            match seen.missing() {
                Some(missing) => Err(missing),
                None if begun.elapsed() < length => Err(seen.told()),
                None => Ok(()),
            }
        })
        .await?;
    stage.claim(TOLD, true, "PROVIDER_FAILING");
    stage.step(Act, &format!("cloud {cloud} works again"));
    stage.fleet.supplies[shard].closed.to([]);
    stage.fleet.thaw(shard, &slow)?;
    let works = Instant::now();
    stage.step(Check, "all pods run in the end");
    let patience = length + Duration::from_secs(90);
    stage
        .until_within(patience, &mut |view| {
            seen.look(stage, view);
            all_run(view).and_then(|()| view.resting())
        })
        .await?;
    let bought = standing(&stage.view(), shard).len();
    stage.claim(ONCE, bought == units, format!("{bought} rented for {units} units"));
    stage.relieve(ONCE, format!("{bought} rented for {units} units, at no time more"));
    let detail = format!("{:.0} s after the cloud does", works.elapsed().as_secs_f64());
    // What was refused and is not bought again by now would be left alone for longer at the next
    // brown-out: a shard counts on until a purchase succeeds.
    stage.step(Check, "what was refused is bought, too");
    stage.demand(B, BATCH, of_b + SPARE as u32);
    stage
        .until_within(patience, &mut |view| {
            seen.look(stage, view);
            match refused.difference(&standing(view, shard)).next() {
                Some(id) => Err(format!("{id} is not bought yet")),
                None => Ok(()),
            }
        })
        .await?;
    stage.claim(RECOVERS, true, detail);
    let (holds, pauses) = seen.refused.judge();
    let detail = format!("{}; {pauses}", seen.told());
    stage.claim(BACKOFF, holds, detail);
    stage.relieve(KEPT, format!("{total} machines, every one that worked still works"));
    Ok(())
}

/// What was seen of a cloud that fails.
struct Seen<'a> {
    cloud: &'a str,
    shard: usize,
    hung: BTreeSet<String>,
    failed: BTreeSet<String>,
    refused: Refused,
    /// A need was short because of it, and said so.
    short: bool,
}

impl<'a> Seen<'a> {
    fn new(cloud: &'a str, shard: usize, refused: &BTreeSet<String>) -> Self {
        Self {
            cloud,
            shard,
            hung: BTreeSet::new(),
            failed: BTreeSet::new(),
            refused: Refused::new(refused),
            short: false,
        }
    }

    fn look(&mut self, stage: &Stage<'_>, view: &View) {
        let seen = &view.shards[self.shard];
        self.refused.look(seen, &stage.decisions());
        let failing = |detail| detail == UnmetDetail::ProviderFailing;
        self.short |= view.unmet().into_iter().any(|need| failing(need.unmet_detail()));
        for it in &seen.machines {
            let Some(machine) = it.machine.as_ref().filter(|it| is_of(it, self.cloud)) else {
                continue;
            };
            let since = now().saturating_sub(it.since_unix_nanos / 1_000_000).max(0) as u64;
            match machine.state() {
                MachineState::Failed if !machine.last_error.is_empty() => {
                    self.failed.insert(machine.id.clone());
                }
                MachineState::Creating if Duration::from_millis(since) > SLOW => {
                    self.hung.insert(machine.id.clone());
                }
                _ => {}
            }
        }
    }

    fn missing(&self) -> Option<String> {
        let refusals = self.refused.refusals();
        let enough = refusals >= REFUSALS && !self.hung.is_empty() && !self.failed.is_empty();
        (!enough || !self.short).then(|| format!("{}, {refusals} refusals", self.told()))
    }

    fn told(&self) -> String {
        format!("{} hung, {} timed out", self.hung.len(), self.failed.len())
    }
}

/// All machines of a cloud, and those of them whose purchase is to be refused: spot, which is
/// cheapest and tried first whenever it may be.
fn machines(view: &View, shard: usize, cloud: &str) -> (Vec<String>, BTreeSet<String>) {
    let all: Vec<&Machine> = view.machines(shard).filter(|it| is_of(it, cloud)).collect();
    let spot = all.iter().filter(|it| it.capacity_type() == CapacityType::Spot);
    let refused = spot.take(REFUSED).map(|it| it.id.clone()).collect();
    (all.iter().map(|it| it.id.clone()).collect(), refused)
}

fn is_of(machine: &Machine, cloud: &str) -> bool {
    machine.id.split('-').next() == Some(cloud)
}

fn configured(view: &View, shard: usize) -> BTreeSet<String> {
    let working = view.general(shard, MachineState::Configured);
    working.into_iter().map(|machine| machine.id.clone()).collect()
}

/// Rented machines that there are, and that are or were meant to work.
fn standing(view: &View, shard: usize) -> BTreeSet<String> {
    use MachineState::{Configured, Configuring, Draining, Idle};
    let here = |it: &&Machine| {
        is_rented(it) && matches!(it.state(), Idle | Configuring | Configured | Draining)
    };
    view.machines(shard).filter(here).map(|machine| machine.id.clone()).collect()
}
