//! `quality`: what the engine's choice costs an hour, against a lower bound, the
//! optimum, and an autoscaler that goes pod by pod. Supply is plentiful and all
//! of it must still be bought, so that every need can be judged by itself. Costs
//! are effective ones (engine chapter §2).

mod catalogue;
mod first_fit;
mod lp;
mod optimum;
mod trial;
mod world;

use super::measure::Run;
use catalogue::Prices;
use trial::{Afterwards, Bought};
use world::{Kind, Pods};

const FEW: Kind = Kind {
    types: 400,
    prices: Prices::BySeries,
    machines: (2, 8),
    pods: Pods::Replicas,
    gang: false,
};
const MANY: Kind = Kind { types: 60, machines: (60, 150), ..FEW };
const GANG: Kind = Kind { gang: true, ..FEW };
/// Harsher worlds than the graded ones, for information.
const MIXED: Kind = Kind { pods: Pods::Mixed, ..FEW };
const ALONE: Kind = Kind { prices: Prices::Alone, ..FEW };
const HARSH: Kind = Kind { prices: Prices::Alone, machines: (1, 6), pods: Pods::Mixed, ..FEW };

/// How many worlds of each; their seeds count up from 0.
pub(super) const WORLDS: u64 = 1_000;
const LARGE_WORLDS: u64 = 120;
const GANG_WORLDS: u64 = 200;
const LOOPS: u64 = 100;

/// One line of the table.
pub(super) struct Grade {
    pub(super) what: &'static str,
    pub(super) found: String,
    /// None where the figure is for information.
    pub(super) bar: Option<String>,
    pub(super) holds: bool,
}

fn grade(what: &'static str, found: f64, at_most: Option<f64>) -> Grade {
    Grade {
        what,
        found: format!("{found:.4}"),
        bar: at_most.map(|bar| format!("<= {bar:.2}")),
        holds: at_most.is_none_or(|bar| found <= bar),
    }
}

fn exactly(what: &'static str, found: f64, wanted: f64) -> Grade {
    let bar = Some(format!("= {wanted}"));
    Grade { what, found: format!("{found}"), bar, holds: found == wanted }
}

fn told(what: &'static str, found: String) -> Grade {
    Grade { what, found, bar: None, holds: true }
}

/// Ratios with the seeds of their worlds.
#[derive(Default)]
struct Ratios(Vec<(f64, u64)>);

impl Ratios {
    fn of(worlds: &[(u64, Bought)], against: impl Fn(&Bought) -> Option<f64>) -> Self {
        let ratio = |(seed, bought): &(u64, Bought)| Some((bought.cost / against(bought)?, *seed));
        let mut ratios: Vec<_> = worlds.iter().filter_map(ratio).collect();
        ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self(ratios)
    }

    fn mean(&self) -> f64 {
        self.0.iter().map(|(ratio, _)| ratio).sum::<f64>() / self.0.len().max(1) as f64
    }

    fn quantile(&self, percent: usize) -> f64 {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0.get(rank - 1).map_or(0.0, |(ratio, _)| *ratio)
    }

    /// Worlds in which we pay more.
    fn dearer(&self) -> usize {
        self.0.iter().filter(|(ratio, _)| *ratio > 1.0 + 1e-9).count()
    }

    /// The worst few, as `ratio (seed)`.
    fn worst(&self) -> String {
        let worst = self.0.iter().rev().take(3);
        let text: Vec<_> = worst.map(|(ratio, seed)| format!("{ratio:.3} (seed {seed})")).collect();
        text.join(", ")
    }
}

fn buy(run: &Run, what: &'static str, worlds: u64, kind: Kind, exact: bool) -> Vec<(u64, Bought)> {
    run.progress.expect(what, worlds);
    let one = |seed| {
        run.progress.step();
        Some((seed, trial::buy(seed, kind, exact)?))
    };
    (0..worlds).filter_map(one).collect()
}

pub(super) fn grades(run: &Run) -> Vec<Grade> {
    let few = buy(run, "few machines", WORLDS, FEW, true);
    let many = buy(run, "many machines", LARGE_WORLDS, MANY, false);
    let gangs = buy(run, "gangs", GANG_WORLDS, GANG, true);
    let mut unserved =
        WORLDS + LARGE_WORLDS + GANG_WORLDS - (few.len() + many.len() + gangs.len()) as u64;
    let mut grades = against_optimum(&few);
    grades.extend(against_bound(&many));
    grades.extend(against_first_fit(&few));
    grades.push(summary("gangs, of one rack or machine", &gangs));
    for (what, kind) in [
        ("pods of mixed sizes", MIXED),
        ("every price drawn alone", ALONE),
        ("both, 1 to 6 machines", HARSH),
    ] {
        let worlds = buy(run, what, WORLDS, kind, true);
        unserved += WORLDS - worlds.len() as u64;
        grades.push(summary(what, &worlds));
    }
    grades.push(exactly("needs left short", unserved as f64, 0.0));
    grades.extend(at_rest(run));
    grades
}

/// One line about worlds that have no bar.
fn summary(what: &'static str, worlds: &[(u64, Bought)]) -> Grade {
    let ratios = Ratios::of(worlds, |bought| bought.optimum);
    let [cheapest, densest] =
        [0, 1].map(|opening| Ratios::of(worlds, |bought| bought.first_fit[opening]).dearer());
    let (mean, p95) = (ratios.mean(), ratios.quantile(95));
    told(
        what,
        format!("mean {mean:.4}, p95 {p95:.4}; dearer than first fit in {cheapest} and {densest}"),
    )
}

fn against_optimum(few: &[(u64, Bought)]) -> Vec<Grade> {
    let ratios = Ratios::of(few, |bought| bought.optimum);
    let types = few.iter().map(|(_, bought)| bought.types);
    let (least, most) = types.fold((usize::MAX, 0), |(low, high), n| (low.min(n), high.max(n)));
    vec![
        told(
            "few machines: worlds (seeds 0 up), instance types",
            format!("{} of {least} to {most}", few.len()),
        ),
        told("few machines: optimum known", ratios.0.len().to_string()),
        grade("few machines: mean ratio to the optimum", ratios.mean(), Some(1.02)),
        grade("few machines: p95", ratios.quantile(95), Some(1.07)),
        told("few machines: worst", ratios.worst()),
        grade(
            "few machines: mean ratio to the lower bound",
            Ratios::of(few, |bought| Some(bought.lower_bound)).mean(),
            None,
        ),
    ]
}

fn against_bound(many: &[(u64, Bought)]) -> Vec<Grade> {
    let large = |bought: &Bought| (bought.machines >= 50).then_some(bought.lower_bound);
    let ratios = Ratios::of(many, large);
    vec![
        told("50 machines and more: worlds", ratios.0.len().to_string()),
        grade("50 machines and more: mean ratio to the lower bound", ratios.mean(), Some(1.03)),
        told("50 machines and more: worst", ratios.worst()),
    ]
}

fn against_first_fit(few: &[(u64, Bought)]) -> Vec<Grade> {
    let [cheapest, densest] =
        [0, 1].map(|opening| Ratios::of(few, |bought| bought.first_fit[opening]));
    vec![
        grade("first fit, cheapest machine: mean ratio", cheapest.mean(), None),
        exactly(
            "first fit, cheapest machine: worlds in which we are dearer",
            cheapest.dearer() as f64,
            0.0,
        ),
        told("first fit, cheapest machine: worst", cheapest.worst()),
        grade("first fit, least cost per pod: mean ratio", densest.mean(), None),
        told(
            "first fit, least cost per pod: worlds in which we are dearer",
            densest.dearer().to_string(),
        ),
        told("first fit, least cost per pod: worst", densest.worst()),
    ]
}

fn at_rest(run: &Run) -> Vec<Grade> {
    run.progress.expect("at rest", LOOPS);
    let mut all = Afterwards::default();
    for seed in 0..LOOPS {
        let kind = Kind { types: 20, machines: (2, 20), gang: seed % 4 == 3, ..FEW };
        let seen = trial::afterwards(seed, kind);
        all.restless += seen.restless;
        all.reclaimed += seen.reclaimed;
        all.rebought += seen.rebought;
        run.progress.step();
    }
    let gone = all.reclaimed.saturating_sub(all.rebought).max(1);
    vec![
        exactly("actions at constant demand after convergence", all.restless as f64, 0.0),
        told("machines reclaimed when demand halves", all.reclaimed.to_string()),
        exactly("reclaim amplification", all.reclaimed as f64 / gone as f64, 1.0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_choice_is_below_the_optimum_and_no_optimum_below_the_bound() {
        for seed in 0..60 {
            let kind = [FEW, HARSH][seed as usize % 2];
            let kind = Kind { types: 20, machines: (1, 4), ..kind };
            let bought = trial::buy(seed, kind, true).unwrap();
            let optimum = bought.optimum.unwrap();
            assert!(bought.cost >= optimum - 1e-9, "seed {seed}: {} {optimum}", bought.cost);
            assert!(optimum >= bought.lower_bound - 1e-9, "seed {seed}");
            let packed = bought.first_fit[0].unwrap();
            assert!(packed >= optimum - 1e-9, "seed {seed}: packing covers");
        }
    }

    #[test]
    fn a_grade_fails_above_its_bar() {
        assert!(grade("", 1.02, Some(1.02)).holds);
        assert!(!grade("", 1.0201, Some(1.02)).holds);
        assert!(!exactly("", 1.0, 0.0).holds);
    }
}
