use super::{Family, Quantity};

/// An exact sum whose printed form does not depend on the order of its addends:
/// binary suffixes if every non-zero addend was binary, else decimal
/// (kubernetes chapter §3.3).
#[derive(Clone, Copy, Debug, Default)]
pub struct QuantitySum {
    nanos: i128,
    any_binary: bool,
    any_decimal: bool,
}

impl QuantitySum {
    /// Adds one quantity. Saturates at the ends of `i128`, a million times past
    /// the largest sum of valid requests.
    pub fn add(&mut self, quantity: Quantity) {
        if quantity.nanos == 0 {
            return;
        }
        self.nanos = self.nanos.saturating_add(quantity.nanos);
        match quantity.family {
            Family::Binary => self.any_binary = true,
            Family::Decimal => self.any_decimal = true,
        }
    }

    /// The sum so far.
    pub const fn total(&self) -> Quantity {
        let family =
            if self.any_binary && !self.any_decimal { Family::Binary } else { Family::Decimal };
        Quantity { nanos: self.nanos, family }
    }
}

impl FromIterator<Quantity> for QuantitySum {
    fn from_iter<I: IntoIterator<Item = Quantity>>(quantities: I) -> Self {
        let mut sum = Self::default();
        quantities.into_iter().for_each(|quantity| sum.add(quantity));
        sum
    }
}
