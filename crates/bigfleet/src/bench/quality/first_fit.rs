//! First-fit-decreasing, pod by pod, as an autoscaler without aggregates does it.

use super::lp::{Amounts, Offer};

/// How a pod that fits no machine chooses a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// The cheapest that holds it: the textbook's rule, and the graded one.
    Cheapest,
    /// The one with the least cost per pod of this size, as if more of them came.
    /// No autoscaler does so, but it is hard to beat where all pods are alike.
    Densest,
}

/// Cost per hour of the machines; none if some pod fits nowhere.
pub(super) fn first_fit(offers: &[Offer], pods: &[Amounts], opening: Opening) -> Option<f64> {
    let mut pods = pods.to_vec();
    pods.sort_unstable_by(|a, b| b.cmp(a));
    let mut open: Vec<Amounts> = Vec::new();
    let mut cost = 0.0;
    for pod in pods {
        let place = open.iter().position(|left| fits(left, &pod));
        let place = match place {
            Some(place) => place,
            None => {
                let score = |offer: &Offer| match opening {
                    Opening::Cheapest => offer.cost,
                    Opening::Densest => offer.cost / times(&offer.brings, &pod) as f64,
                };
                let holding = offers.iter().filter(|offer| fits(&offer.brings, &pod));
                let chosen = holding.min_by(|a, b| score(a).total_cmp(&score(b)))?;
                cost += chosen.cost;
                open.push(chosen.brings);
                open.len() - 1
            }
        };
        for (left, taken) in open[place].iter_mut().zip(pod) {
            *left -= taken;
        }
    }
    Some(cost)
}

fn fits(left: &Amounts, pod: &Amounts) -> bool {
    left.iter().zip(pod).all(|(left, pod)| left >= pod)
}

/// How many such pods a machine holds.
fn times(brings: &Amounts, pod: &Amounts) -> u64 {
    let asked = brings.iter().zip(pod).filter(|(_, pod)| **pod > 0);
    asked.map(|(brings, pod)| brings / pod).min().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_fill_machines_before_new_ones_are_opened() {
        let offers =
            [Offer { brings: [4, 4, 0], cost: 1.0 }, Offer { brings: [16, 16, 0], cost: 3.0 }];
        let pods = [[2, 2, 0]; 8];
        assert_eq!(first_fit(&offers, &pods, Opening::Cheapest), Some(4.0));
        assert_eq!(first_fit(&offers, &pods, Opening::Densest), Some(3.0));
        assert_eq!(first_fit(&offers, &[[32, 1, 0]], Opening::Cheapest), None);
    }
}
