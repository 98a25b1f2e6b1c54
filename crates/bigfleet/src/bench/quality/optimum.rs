//! The cheapest set of whole machines that covers a demand, by branch and bound.
//! Supply is plentiful, so that every need can be looked at by itself.

use super::lp::{Amounts, Offer, bound};

/// Nodes after which a world counts as too large.
const NODES: u32 = 400_000;

/// Least cost of covering `demand` with whole machines, if that is found to be
/// less than `known`, else `known`; none if the search grew too large.
pub(super) fn optimum(offers: &[Offer], demand: Amounts, known: f64) -> Option<f64> {
    let mut search = Search { offers: undominated(offers, demand), best: known, nodes: 0 };
    search.branch(demand, 0, 0.0).then_some(search.best)
}

/// Offers that bring nothing more than another for no less.
fn undominated(offers: &[Offer], demand: Amounts) -> Vec<Offer> {
    let clip = |offer: &Offer| Offer {
        brings: std::array::from_fn(|d| offer.brings[d].min(demand[d])),
        cost: offer.cost,
    };
    let mut sorted: Vec<Offer> = offers.iter().map(clip).collect();
    sorted.sort_by(|a, b| a.cost.total_cmp(&b.cost).then_with(|| b.brings.cmp(&a.brings)));
    let mut kept: Vec<Offer> = Vec::new();
    for offer in sorted {
        let covers = |other: &Offer| (0..3).all(|d| other.brings[d] >= offer.brings[d]);
        if !kept.iter().any(covers) {
            kept.push(offer);
        }
    }
    // Large machines first: fewer of them make a first cover.
    kept.reverse();
    kept
}

struct Search {
    offers: Vec<Offer>,
    best: f64,
    nodes: u32,
}

impl Search {
    /// Tries everything from offer `from` on. False once there is too much of it.
    fn branch(&mut self, missing: Amounts, from: usize, spent: f64) -> bool {
        if missing == [0; 3] {
            self.best = self.best.min(spent);
            return true;
        }
        self.nodes += 1;
        if self.nodes > NODES {
            return false;
        }
        let enough = self.best * (1.0 - 1e-9);
        if spent + bound(&self.offers[from..], missing) >= enough {
            return true;
        }
        for at in from..self.offers.len() {
            let offer = self.offers[at];
            let left: Amounts = std::array::from_fn(|d| missing[d].saturating_sub(offer.brings[d]));
            if left != missing && !self.branch(left, at, spent + offer.cost) {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::random::Random;

    /// By dynamic programming over everything that can be missing.
    fn exhaustive(offers: &[Offer], demand: [u64; 2]) -> f64 {
        let (cpus, memories) = (demand[0] as usize, demand[1] as usize);
        let mut least = vec![vec![f64::INFINITY; memories + 1]; cpus + 1];
        least[0][0] = 0.0;
        for cpu in 0..=cpus {
            for memory in 0..=memories {
                if (cpu, memory) == (0, 0) {
                    continue;
                }
                for offer in offers {
                    let before = least[cpu.saturating_sub(offer.brings[0] as usize)]
                        [memory.saturating_sub(offer.brings[1] as usize)];
                    least[cpu][memory] = least[cpu][memory].min(before + offer.cost);
                }
            }
        }
        least[cpus][memories]
    }

    #[test]
    fn a_dynamic_program_agrees() {
        for seed in 0..300 {
            let mut random = Random::new(seed);
            let mut offer = || Offer {
                brings: [random.within(1, 12) as u64, random.within(1, 12) as u64, 0],
                cost: random.within(5, 60) as f64,
            };
            let offers: Vec<Offer> = (0..6).map(|_| offer()).collect();
            let demand = [random.below(40) as u64, 1 + random.below(40) as u64];
            let found = optimum(&offers, [demand[0], demand[1], 0], f64::INFINITY);
            assert_eq!(found, Some(exhaustive(&offers, demand)), "seed {seed}");
        }
    }

    #[test]
    fn what_is_known_to_be_enough_is_kept() {
        let offers = [Offer { brings: [4, 4, 0], cost: 1.0 }];
        assert_eq!(optimum(&offers, [8, 0, 0], 2.0), Some(2.0));
        assert_eq!(optimum(&offers, [8, 0, 0], 1.5), Some(1.5), "no cover that cheap exists");
        assert_eq!(optimum(&[], [1, 0, 0], 9.0), Some(9.0));
    }
}
