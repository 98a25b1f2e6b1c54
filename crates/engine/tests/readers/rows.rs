//! Needs as sent.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_engine::{NeedKey, Outcome, Row};
use bigfleet_model::{Attributes, MachineState, Need, Totals};

use crate::{
    decided,
    plain::{Claim, Plain, capacity, in_order, units},
    seeds,
};

#[test]
fn inv_09_every_need_as_sent_has_exactly_one_row() {
    for seed in seeds() {
        let (input, engine, _) = decided(seed);
        let clusters: BTreeSet<_> = input.demand.iter().map(|need| &need.cluster).collect();
        for cluster in clusters {
            let mut sent: Vec<&Need> =
                input.demand.iter().filter(|need| need.cluster == *cluster).collect();
            in_order(&mut sent);
            let rows = engine.rows(cluster);
            let told: Vec<&Need> = rows.iter().map(|row| &row.need).collect();
            assert_eq!(told, sent, "seed {seed}, cluster {cluster}");
            for row in &rows {
                assert_eq!(engine.row(&NeedKey::of(&row.need)).as_ref(), Some(row), "seed {seed}");
            }
        }
    }
}

#[test]
fn a_row_of_an_unfolded_need_is_its_verdict() {
    for seed in seeds() {
        let (input, engine, output) = decided(seed);
        let plain = Plain { input: &input, output: &output };
        for need in &input.demand {
            let key = NeedKey::of(need);
            let Some(verdict) = plain.verdict(&key) else { continue };
            let row = engine.row(&key).unwrap();
            assert_eq!(row.verdict, *verdict, "seed {seed}");
            let number = output.verdicts.iter().position(|one| one == verdict).unwrap() as u32;
            let of_need = output.claims.iter().filter(|(_, claimant)| claimant.0 == number);
            let coming = of_need.filter(|(machine, _)| {
                plain.seen(plain.tracked(machine)).0 != MachineState::Configured
            });
            assert_eq!(row.coming as usize, coming.count(), "seed {seed}: {key:?}");
        }
    }
}

/// What the chapter says of one member of a fold.
fn assert_dealt(
    row: &Row,
    claim: Option<&Claim<'_>>,
    of_fold: &bigfleet_engine::Verdict,
    what: &str,
) {
    let verdict = &row.verdict;
    assert_eq!(verdict.satisfied, claim.is_some(), "{what}");
    assert_eq!(verdict.claimed, u32::from(claim.is_some()), "{what}");
    assert_eq!(verdict.satisfiable, claim.is_some(), "{what}");
    assert_eq!((verdict.folded, verdict.gang_age, verdict.parked), (0, 0, false), "{what}");
    let action = claim.and_then(|claim| claim.action);
    assert_eq!(verdict.bootstrap, u32::from(action == Some("Bootstrap")), "{what}");
    assert_eq!(verdict.provision, u32::from(action == Some("Provision")), "{what}");
    let Some(claim) = claim else {
        assert_eq!(verdict.deficit, row.need.aggregate, "{what}");
        assert_eq!((verdict.reason, verdict.detail), (of_fold.reason, of_fold.detail), "{what}");
        assert!(verdict.reason.is_some(), "{what}");
        assert_eq!((&verdict.domain, verdict.outcome), (&None, Outcome::Unsatisfied), "{what}");
        return;
    };
    assert_eq!(verdict.deficit, Totals::zero(), "{what}");
    assert_eq!((verdict.reason, verdict.detail), (None, None), "{what}");
    let class = &claim.tracked.machine.class;
    let domain: BTreeMap<String, String> = row
        .need
        .profile
        .same()
        .map(|same| (same.key.clone(), class.attribute(&same.key).unwrap().to_owned()))
        .collect();
    assert_eq!(verdict.domain, Some(domain), "{what}");
}

#[test]
fn inv_09_the_satisfied_rows_of_a_fold_are_its_places() {
    let mut short = 0;
    for seed in seeds() {
        let (input, engine, output) = decided(seed);
        let plain = Plain { input: &input, output: &output };
        for (fold, verdict) in output.verdicts.iter().enumerate() {
            if verdict.folded == 0 {
                continue;
            }
            let members = plain.members(fold);
            assert_eq!(members.len(), verdict.folded as usize, "seed {seed}");
            let claims = plain.claims(fold);
            let places = claims.iter().flat_map(|claim| {
                let units = units(&capacity(claim.tracked), &verdict.min_unit);
                std::iter::repeat_n(claim, units)
            });
            let mut places = places.map(Some).chain(std::iter::repeat(None));
            let mut satisfied = true;
            for member in members {
                let what = format!("seed {seed}, fold {fold}, {:?}", NeedKey::of(member));
                let row = engine.row(&NeedKey::of(member)).unwrap();
                assert_dealt(&row, places.next().unwrap(), verdict, &what);
                satisfied &= row.verdict.satisfied;
            }
            assert_eq!(satisfied, verdict.satisfied, "seed {seed}, fold {fold}");
            short += usize::from(!satisfied);
        }
    }
    assert!(short > 0, "no world left a fold short");
}
