//! Amounts by resource name: `max` and `+` per resource, missing is zero.

use std::{collections::BTreeMap, mem};

use bigfleet_crds::Quantity as Text;
use bigfleet_model::{Quantity, QuantitySum};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;

/// How much of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Amount {
    /// A number.
    Known(Quantity),
    /// Text that the API server took and that does not fit our numbers. It goes into the
    /// CapacityRequest as it is: the operator skips that one request and tells its user, where
    /// a made-up number would count in everybody's sum.
    Unreadable(Box<str>),
}

impl Amount {
    /// Nothing.
    pub const ZERO: Self = Self::Known(Quantity::ZERO);

    fn read(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::Unreadable(text.into()), Self::Known)
    }

    fn is_zero(&self) -> bool {
        matches!(self, Self::Known(quantity) if quantity.nanos() == 0)
    }

    fn plus(self, other: Self) -> Self {
        self.combine(other, |a, b| [a, b].into_iter().collect::<QuantitySum>().total())
    }

    fn max(self, other: Self) -> Self {
        self.combine(other, |a, b| if b > a { b } else { a })
    }

    fn combine(self, other: Self, of: impl Fn(Quantity, Quantity) -> Quantity) -> Self {
        match (self, other) {
            (Self::Known(a), Self::Known(b)) => Self::Known(of(a, b)),
            (Self::Known(_), unreadable) | (unreadable, _) => unreadable,
        }
    }

    fn text(&self) -> Text {
        match self {
            Self::Known(quantity) => quantity.to_string().into(),
            Self::Unreadable(text) => (&**text).into(),
        }
    }
}

/// Amounts by resource name, sorted; there are only a handful.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Amounts(Vec<(Box<str>, Amount)>);

impl Amounts {
    pub(super) fn read(written: Option<&BTreeMap<String, Written>>) -> Self {
        let read =
            |(name, text): (&String, &Written)| (name.as_str().into(), Amount::read(&text.0));
        Self(written.into_iter().flatten().map(read).collect())
    }

    /// Of one resource, zero if missing.
    #[must_use]
    pub fn get(&self, name: &str) -> Amount {
        self.place(name).map_or(Amount::ZERO, |at| self.0[at].1.clone())
    }

    /// `self + other`.
    pub fn add(&mut self, other: Self) {
        self.merge(other, Amount::plus);
    }

    /// The greater of both, per resource.
    pub fn max(&mut self, other: Self) {
        self.merge(other, Amount::max);
    }

    pub(super) fn set(&mut self, name: &str, amount: Amount) {
        match self.place(name) {
            Ok(at) => self.0[at].1 = amount,
            Err(at) => self.0.insert(at, (name.into(), amount)),
        }
    }

    fn merge(&mut self, other: Self, of: impl Fn(Amount, Amount) -> Amount) {
        for (name, amount) in other.0 {
            match self.place(&name) {
                Ok(at) => {
                    let mine = mem::replace(&mut self.0[at].1, Amount::ZERO);
                    self.0[at].1 = of(mine, amount);
                }
                Err(at) => self.0.insert(at, (name, amount)),
            }
        }
    }

    fn place(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| (**known).cmp(name))
    }

    /// As a CapacityRequest carries them: what is zero is left out, so that a pod that requests
    /// nothing has `{}`.
    #[must_use]
    pub fn texts(&self) -> BTreeMap<String, Text> {
        let present = self.0.iter().filter(|(_, amount)| !amount.is_zero());
        present.map(|(name, amount)| (String::from(&**name), amount.text())).collect()
    }

    /// One of `name` more.
    pub fn count(&mut self, name: &str) {
        let one =
            Amount::Known(Quantity::from_millis(1000, bigfleet_model::quantity::Family::Decimal));
        self.add(Self(vec![(name.into(), one)]));
    }
}
