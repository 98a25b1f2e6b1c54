//! The sums of one need, from which any addend can be taken back.

use std::{collections::BTreeMap, fmt::Write, sync::Arc};

use bigfleet_model::{Dimension, Quantity, quantity::Family};
use prost::bytes::Bytes;
use smallvec::SmallVec;

use super::{
    identity::NeedIdentity,
    message,
    vector::{Amount, Vector},
};

/// One need under construction.
#[derive(Debug)]
pub(super) struct Row {
    identity: Arc<NeedIdentity>,
    members: usize,
    sums: Sums,
    /// None when it changed since.
    encoded: Option<Bytes>,
}

impl Row {
    pub(super) fn new(identity: Arc<NeedIdentity>) -> Self {
        Self { identity, members: 0, sums: Sums::default(), encoded: None }
    }

    pub(super) const fn identity(&self) -> &Arc<NeedIdentity> {
        &self.identity
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.members == 0
    }

    pub(super) fn add(&mut self, unit: &Vector) {
        self.members += 1;
        unit.amounts().iter().for_each(|amount| self.sums.add(amount));
        self.encoded = None;
    }

    pub(super) fn remove(&mut self, unit: &Vector) {
        self.members = self.members.saturating_sub(1);
        unit.amounts().iter().for_each(|amount| self.sums.remove(amount));
        self.encoded = None;
    }

    pub(super) fn encoded(&mut self) -> Bytes {
        let Self { identity, sums, encoded, .. } = self;
        encoded.get_or_insert_with(|| message::need(identity, sums)).clone()
    }
}

/// Per resource name the exact sum and the largest addend, in name order.
#[derive(Debug, Default)]
pub(super) struct Sums(SmallVec<[Column; 2]>);

/// One resource.
#[derive(Debug)]
struct Column {
    name: &'static str,
    dimension: Dimension,
    nanos: i128,
    /// Addends that were not written with a binary suffix.
    decimals: usize,
    /// Every addend's value with how often it occurs: the largest may leave.
    values: BTreeMap<i128, usize>,
}

impl Column {
    /// Binary only if every addend was: so the order of addends does not show.
    const fn family(&self) -> Family {
        if self.decimals == 0 { Family::Binary } else { Family::Decimal }
    }
}

impl Sums {
    fn add(&mut self, amount: &Amount) {
        let at = self.0.iter().position(|column| column.dimension == amount.dimension);
        let at = at.unwrap_or_else(|| self.open(amount.dimension));
        let column = &mut self.0[at];
        // A unit fits 64-bit milli-units, so sums of any number of pods fit.
        column.nanos += amount.nanos;
        column.decimals += usize::from(!amount.binary);
        *column.values.entry(amount.nanos).or_default() += 1;
    }

    fn open(&mut self, dimension: Dimension) -> usize {
        let name = dimension.name();
        let at = self.0.partition_point(|column| column.name < name);
        let (nanos, decimals, values) = (0, 0, BTreeMap::new());
        self.0.insert(at, Column { name, dimension, nanos, decimals, values });
        at
    }

    fn remove(&mut self, amount: &Amount) {
        let at = self.0.iter().position(|column| column.dimension == amount.dimension);
        let Some(at) = at else { return };
        let column = &mut self.0[at];
        column.nanos -= amount.nanos;
        column.decimals -= usize::from(!amount.binary);
        if let Some(count) = column.values.get_mut(&amount.nanos) {
            *count -= 1;
            if *count == 0 {
                column.values.remove(&amount.nanos);
            }
        }
        if column.values.is_empty() {
            self.0.remove(at);
        }
    }

    /// Name and canonical text of each sum.
    pub(super) fn each_total(&self, mut take: impl FnMut(&str, &str)) {
        self.print(|column| column.nanos, &mut take);
    }

    /// Name and canonical text of each largest addend.
    pub(super) fn each_unit(&self, mut take: impl FnMut(&str, &str)) {
        let largest =
            |column: &Column| column.values.last_key_value().map_or(0, |(nanos, _)| *nanos);
        self.print(largest, &mut take);
    }

    fn print(&self, nanos: impl Fn(&Column) -> i128, take: &mut impl FnMut(&str, &str)) {
        let mut text = String::new();
        for column in &self.0 {
            text.clear();
            // Writing to a string cannot fail.
            let _ = write!(text, "{}", Quantity::from_nanos(nanos(column), column.family()));
            take(column.name, &text);
        }
    }
}
