//! The roll-up quarantine (shard chapter §10): demand that all but vanishes is
//! believed only when it is said three times in a row.

use bigfleet_model::{Need, Totals};

/// Fewer rows, or fewer Configured machines, are not worth a hold.
const WORTH_GUARDING: usize = 10;

/// So many in a row are held; the next is believed.
const HELD_IN_A_ROW: u32 = 2;

/// What a roll-up asks for as a whole.
#[derive(Clone, Debug, Default)]
pub(super) struct Size {
    pub(super) rows: usize,
    totals: Totals,
}

impl Size {
    pub(super) fn of(needs: &[Need]) -> Self {
        let mut totals = Totals::zero();
        for need in needs {
            totals.add_assign(&need.aggregate);
        }
        Self { rows: needs.len(), totals }
    }

    /// Less than a tenth of the rows.
    fn lost_rows(&self, baseline: &Self) -> bool {
        baseline.rows >= WORTH_GUARDING
            && is_under_a_tenth(self.rows as i128, baseline.rows as i128)
    }

    /// Less than a tenth of every resource.
    fn lost_resources(&self, baseline: &Self) -> bool {
        !baseline.totals.is_zero()
            && baseline
                .totals
                .iter()
                .all(|(dimension, before)| is_under_a_tenth(self.totals.get(dimension), before))
    }
}

fn is_under_a_tenth(now: i128, before: i128) -> bool {
    now.checked_mul(10).is_some_and(|tenfold| tenfold < before)
}

/// The memory of the guard for one cluster.
#[derive(Debug, Default)]
pub(super) struct Guard {
    /// Size of the last accepted roll-up; none before the first.
    baseline: Option<Size>,
    /// Held in a row.
    held: u32,
}

impl Guard {
    /// Whether to hold a roll-up of this size. If not, it is the new baseline.
    pub(super) fn holds(&mut self, size: Size, configured: usize, enabled: bool) -> bool {
        let bound = configured >= WORTH_GUARDING;
        let suspicious = match &self.baseline {
            None => size.rows == 0 && bound,
            Some(baseline) => size.lost_rows(baseline) || (bound && size.lost_resources(baseline)),
        };
        if enabled && suspicious && self.held < HELD_IN_A_ROW {
            self.held += 1;
            return true;
        }
        *self = Self { baseline: Some(size), held: 0 };
        false
    }

    /// How many were held in a row.
    pub(super) fn held(&self) -> u32 {
        self.held
    }

    /// Rows of the last accepted roll-up.
    pub(super) fn rows(&self) -> usize {
        self.baseline.as_ref().map_or(0, |size| size.rows)
    }
}
