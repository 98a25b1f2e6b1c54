//! Numbers that stand for rows of tables, and tables indexed by them.

use std::{
    marker::PhantomData,
    num::NonZeroU32,
    ops::{Index, IndexMut},
};

/// Number of a row. An option of it takes four bytes, too.
pub(crate) trait Handle: Copy {
    fn at(index: usize) -> Self;
    fn index(self) -> usize;
}

macro_rules! handles {
    ($($(#[$meta:meta])* $name:ident),* $(,)?) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub(crate) struct $name(NonZeroU32);

        impl Handle for $name {
            /// Tables stay below `u32::MAX` rows: a shard's ceiling is far lower.
            fn at(index: usize) -> Self {
                Self(NonZeroU32::MIN.saturating_add(index as u32))
            }

            fn index(self) -> usize {
                self.0.get() as usize - 1
            }
        }
    )*};
}

handles! {
    /// A machine.
    MachineIx,
    /// A cluster.
    ClusterIx,
    /// Machines alike in everything but id, binding, stamp and state.
    ClassIx,
    /// A stamp, by value.
    StampIx,
    /// (fingerprint, group), the identity of a need inside a cluster.
    KeyIx,
    /// (cluster, key): a need or fold, and the machines stamped for it.
    AccountIx,
    /// A profile, by fingerprint.
    ProfileIx,
    /// What a need can use: requirements, unit, and the domains it looks at.
    PoolIx,
    /// A topology key, or a tuple of them.
    TopologyIx,
    /// A value of a topology.
    DomainIx,
    /// Machines that differ only in id.
    RunIx,
    /// A need as sent, or a fold.
    PreparedIx,
    /// Gangs of one cluster that may fold into one need.
    GroupIx,
}

/// A table whose rows have numbers of one kind.
#[derive(Clone, Debug)]
pub(crate) struct Column<H, T> {
    rows: Vec<T>,
    kind: PhantomData<H>,
}

impl<H, T> Default for Column<H, T> {
    fn default() -> Self {
        Self { rows: Vec::new(), kind: PhantomData }
    }
}

impl<H: Handle, T> Column<H, T> {
    pub(crate) fn push(&mut self, row: T) -> H {
        self.rows.push(row);
        H::at(self.rows.len() - 1)
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (H, &T)> {
        self.rows.iter().enumerate().map(|(at, row)| (H::at(at), row))
    }

    pub(crate) fn handles(&self) -> impl DoubleEndedIterator<Item = H> + use<H, T> {
        (0..self.rows.len()).map(H::at)
    }

    pub(crate) fn rows_mut(&mut self) -> &mut [T] {
        &mut self.rows
    }
}

impl<H: Handle, T> Index<H> for Column<H, T> {
    type Output = T;

    fn index(&self, handle: H) -> &T {
        &self.rows[handle.index()]
    }
}

impl<H: Handle, T> IndexMut<H> for Column<H, T> {
    fn index_mut(&mut self, handle: H) -> &mut T {
        &mut self.rows[handle.index()]
    }
}
