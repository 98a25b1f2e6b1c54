//! The least that covering can cost if machines could be bought in parts: a
//! linear program with few rows, solved in its dual by the simplex method.

/// Processors in thousandths, memory in MiB, accelerators.
pub(super) type Amounts = [u64; 3];

/// A machine that can be bought, as often as one likes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Offer {
    pub(super) brings: Amounts,
    /// Dollars per hour, positive and finite.
    pub(super) cost: f64,
}

const COLUMNS: usize = 3;
const EPSILON: f64 = 1e-9;

/// `max Σ y` under `Σ shares · y ≤ cost` for every offer, `y ≥ 0`, as a
/// dictionary: every row is a variable in terms of the columns.
struct Dictionary {
    rows: Vec<([f64; COLUMNS], f64)>,
    objective: [f64; COLUMNS],
    value: f64,
    /// Numbers of the variables, for the rule that keeps it from cycling.
    row_names: Vec<usize>,
    column_names: [usize; COLUMNS],
}

impl Dictionary {
    fn pivot(&mut self, row: usize, column: usize) {
        let (mut shares, mut bound) = self.rows[row];
        let inverse = 1.0 / shares[column];
        bound *= inverse;
        shares[column] = 1.0;
        for share in &mut shares {
            *share *= inverse;
        }
        for (at, (other, rest)) in self.rows.iter_mut().enumerate() {
            if at != row {
                *rest -= eliminate(other, &shares, column) * bound;
            }
        }
        self.value += eliminate(&mut self.objective, &shares, column) * bound;
        self.rows[row] = (shares, bound);
        std::mem::swap(&mut self.row_names[row], &mut self.column_names[column]);
    }

    /// Bland's rule: the first variable that helps, and of the tightest rows the
    /// first.
    fn next(&self) -> Option<(usize, usize)> {
        let helps = (0..COLUMNS).filter(|&column| self.objective[column] > EPSILON);
        let column = helps.min_by_key(|&column| self.column_names[column])?;
        let mut tightest: Option<(f64, usize)> = None;
        for (row, (shares, bound)) in self.rows.iter().enumerate() {
            if shares[column] <= EPSILON {
                continue;
            }
            let ratio = bound / shares[column];
            let closer = tightest.is_none_or(|(least, at)| {
                ratio < least || (ratio == least && self.row_names[row] < self.row_names[at])
            });
            if closer {
                tightest = Some((ratio, row));
            }
        }
        tightest.map(|(_, row)| (row, column))
    }
}

/// Takes `by` out of a row so that its entry in `column` becomes the new
/// variable's; returns what that entry was.
fn eliminate(row: &mut [f64; COLUMNS], by: &[f64; COLUMNS], column: usize) -> f64 {
    let factor = row[column];
    row[column] = 0.0;
    for (entry, by) in row.iter_mut().zip(by) {
        *entry -= factor * by;
    }
    factor
}

/// Least cost of covering `demand` with parts of machines; infinite if no offer
/// brings something that is asked for. A machine counts for no more than is
/// asked for, which loses no cover by whole machines and gives a better bound.
pub(super) fn bound(offers: &[Offer], demand: Amounts) -> f64 {
    let asked = |d: usize| demand[d] > 0;
    for d in (0..COLUMNS).filter(|&d| asked(d)) {
        if offers.iter().all(|offer| offer.brings[d] == 0) {
            return f64::INFINITY;
        }
    }
    let share = |offer: &Offer, d: usize| {
        if asked(d) { offer.brings[d].min(demand[d]) as f64 / demand[d] as f64 } else { 0.0 }
    };
    let row = |offer: &Offer| (std::array::from_fn(|d| share(offer, d)), offer.cost);
    let mut dictionary = Dictionary {
        rows: offers.iter().map(row).collect(),
        objective: std::array::from_fn(|d| f64::from(u8::from(asked(d)))),
        value: 0.0,
        row_names: (COLUMNS..COLUMNS + offers.len()).collect(),
        column_names: std::array::from_fn(|column| column),
    };
    while let Some((row, column)) = dictionary.next() {
        dictionary.pivot(row, column);
    }
    dictionary.value
}

#[cfg(test)]
mod tests {
    use microlp::{ComparisonOp, OptimizationDirection, Problem, SolveOutcome};

    use super::*;
    use crate::bench::random::Random;

    fn offer(cpu: u64, memory: u64, cost: f64) -> Offer {
        Offer { brings: [cpu, memory, 0], cost }
    }

    #[test]
    fn the_cheapest_per_unit_covers_one_dimension() {
        let offers = [offer(4, 0, 1.0), offer(16, 0, 3.0)];
        assert!((bound(&offers, [160, 0, 0]) - 30.0).abs() < 1e-9);
    }

    #[test]
    fn two_kinds_are_mixed_where_that_is_cheaper() {
        let offers = [offer(10, 1, 1.0), offer(1, 10, 1.0), offer(5, 5, 2.0)];
        assert!((bound(&offers, [110, 110, 0]) - 20.0).abs() < 1e-9);
    }

    #[test]
    fn what_nobody_offers_costs_without_limit() {
        assert_eq!(bound(&[offer(4, 4, 1.0)], [1, 1, 1]), f64::INFINITY);
        assert_eq!(bound(&[], [0, 0, 0]), 0.0);
    }

    #[test]
    fn a_solver_agrees() {
        for seed in 0..300 {
            let mut random = Random::new(seed);
            let mut amounts = |most| std::array::from_fn(|_| random.below(most) as u64);
            let offers: Vec<Offer> = (0..30)
                .map(|_| Offer { brings: amounts(100), cost: amounts(99)[0] as f64 + 1.0 })
                .collect();
            let demand: Amounts = amounts(1_000);
            let mut problem = Problem::new(OptimizationDirection::Minimize);
            let buys: Vec<_> = offers
                .iter()
                .map(|offer| problem.add_var(offer.cost, (0.0, f64::INFINITY)))
                .collect();
            for (d, asked) in demand.into_iter().enumerate() {
                let brought = |(buy, offer): (&microlp::Variable, &Offer)| {
                    (*buy, offer.brings[d].min(asked) as f64)
                };
                let row: Vec<_> = buys.iter().zip(&offers).map(brought).collect();
                problem.add_constraint(row, ComparisonOp::Ge, asked as f64);
            }
            let SolveOutcome::Solution(solution) = problem.solve().unwrap() else {
                panic!("seed {seed}: interrupted")
            };
            let solved = solution.objective();
            let ours = bound(&offers, demand);
            assert!((ours - solved).abs() < 1e-6 * solved.max(1.0), "{seed}: {ours} {solved}");
        }
    }
}
