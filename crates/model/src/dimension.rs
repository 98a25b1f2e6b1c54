//! Resource names, interned.
//!
//! One table per process: dimensions are few (`cpu`, `memory`, devices), live as
//! long as the process, and every component must agree on them. Numbers depend
//! on the order of arrival, so nothing visible may depend on them: whatever is
//! printed, hashed for the wire or compared for an order goes by name.

use std::{
    fmt,
    sync::{LazyLock, PoisonError, RwLock},
};

use hashbrown::HashMap;

/// A resource name of the process-wide table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Dimension(u16);

/// Why a name was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DimensionError {
    /// A resource has a name.
    #[error("empty resource name")]
    Empty,
    /// Longer than Kubernetes allows (253-byte prefix, `/`, 63-byte name).
    #[error("resource name longer than {MAX_NAME_BYTES} bytes")]
    TooLong,
    /// The table is full: some peer invents names.
    #[error("more than {MAX_DIMENSIONS} distinct resource names in this process")]
    TooMany,
}

/// Longest resource name that Kubernetes can produce.
pub const MAX_NAME_BYTES: usize = 317;

/// Names the table takes. They are never freed, so a peer that invents names
/// must meet an end.
pub const MAX_DIMENSIONS: usize = u16::MAX as usize + 1;

const WELL_KNOWN: [&str; 5] = ["cpu", "memory", "ephemeral-storage", "pods", "nvidia.com/gpu"];

struct Table {
    names: Vec<&'static str>,
    /// Seeded at random: names come from peers, who must not choose collisions.
    index: HashMap<&'static str, Dimension, foldhash::fast::RandomState>,
}

static TABLE: LazyLock<RwLock<Table>> = LazyLock::new(|| {
    let mut table = Table { names: Vec::new(), index: HashMap::default() };
    for name in WELL_KNOWN {
        table.push(name);
    }
    RwLock::new(table)
});

impl Table {
    fn push(&mut self, name: &'static str) -> Dimension {
        let dimension = Dimension(self.names.len() as u16);
        self.names.push(name);
        self.index.insert(name, dimension);
        dimension
    }
}

impl Dimension {
    /// `cpu`, in cores.
    pub const CPU: Self = Self(0);
    /// `memory`, in bytes.
    pub const MEMORY: Self = Self(1);
    /// `ephemeral-storage`, in bytes.
    pub const EPHEMERAL_STORAGE: Self = Self(2);
    /// `pods`.
    pub const PODS: Self = Self(3);

    /// The dimension of this name, new or known.
    pub fn intern(name: &str) -> Result<Self, DimensionError> {
        match name {
            "cpu" => return Ok(Self::CPU),
            "memory" => return Ok(Self::MEMORY),
            "" => return Err(DimensionError::Empty),
            _ if name.len() > MAX_NAME_BYTES => return Err(DimensionError::TooLong),
            _ => {}
        }
        // The table is only ever appended to, so a poisoned lock guards good data.
        let known = TABLE.read().unwrap_or_else(PoisonError::into_inner).index.get(name).copied();
        if let Some(dimension) = known {
            return Ok(dimension);
        }
        let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(dimension) = table.index.get(name) {
            return Ok(*dimension);
        }
        if table.names.len() >= MAX_DIMENSIONS {
            return Err(DimensionError::TooMany);
        }
        Ok(table.push(Box::leak(name.into())))
    }

    /// The resource name.
    pub fn name(self) -> &'static str {
        TABLE.read().unwrap_or_else(PoisonError::into_inner).names[usize::from(self.0)]
    }

    /// Dense number, for arrays indexed by dimension.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Counted in bytes, so that quantities of it read best with binary suffixes.
    pub fn is_bytes(self) -> bool {
        match self {
            Self::MEMORY | Self::EPHEMERAL_STORAGE => true,
            Self::CPU | Self::PODS => false,
            other => {
                let name = other.name();
                name == "storage" || name.starts_with("hugepages-")
            }
        }
    }
}

impl fmt::Debug for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_dimension_for_ever() {
        let gpu = Dimension::intern("example.com/gpu").unwrap();
        assert_eq!(Dimension::intern("example.com/gpu"), Ok(gpu));
        assert_eq!(gpu.name(), "example.com/gpu");
        assert_ne!(gpu, Dimension::intern("example.com/tpu").unwrap());
    }

    #[test]
    fn well_known_names_have_their_constants() {
        for (constant, name) in [
            (Dimension::CPU, "cpu"),
            (Dimension::MEMORY, "memory"),
            (Dimension::EPHEMERAL_STORAGE, "ephemeral-storage"),
            (Dimension::PODS, "pods"),
        ] {
            assert_eq!(Dimension::intern(name), Ok(constant));
            assert_eq!(constant.name(), name);
        }
    }

    #[test]
    fn names_that_no_cluster_can_send_are_refused() {
        assert_eq!(Dimension::intern(""), Err(DimensionError::Empty));
        let longest = "x".repeat(MAX_NAME_BYTES);
        assert!(Dimension::intern(&longest).is_ok());
        assert_eq!(Dimension::intern(&(longest + "x")), Err(DimensionError::TooLong));
    }
}
