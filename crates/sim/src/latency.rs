//! How long things take.

use bigfleet_model::MachineState;

use crate::random::Random;

/// A number of cycles, drawn evenly from a closed range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dwell {
    /// At least.
    pub least: u32,
    /// At most.
    pub most: u32,
}

impl Dwell {
    /// Always the same.
    pub const fn fixed(cycles: u32) -> Self {
        Self { least: cycles, most: cycles }
    }

    /// From a range.
    pub const fn between(least: u32, most: u32) -> Self {
        Self { least, most }
    }

    pub(crate) fn draw(self, random: &mut Random) -> u32 {
        let width = u64::from(self.most.saturating_sub(self.least)) + 1;
        self.least + u32::try_from(random.below(width)).unwrap_or(0)
    }
}

/// What happens to a bought machine once it exists. A shard does either (shard
/// chapter §7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterCreate {
    /// The worker saw it finish and goes on to configure it for the cluster it was
    /// bought for: Provision means "create, then configure" (engine chapter §3).
    Configure,
    /// The provider answered early and finished later: the machine is seen Idle
    /// while its second half, a Bootstrap for the same need, is pending.
    Rest,
}

/// How long things take. A dwell of 0 is over before the next cycle looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// From decision to the first visible effect.
    pub queue: Dwell,
    /// In Creating.
    pub create: Dwell,
    /// In Configuring.
    pub configure: Dwell,
    /// In Draining.
    pub drain: Dwell,
    /// In Deleting.
    pub delete: Dwell,
    /// Between create and configure.
    pub after_create: AfterCreate,
}

impl Latency {
    /// The same for every step.
    pub const fn all(dwell: Dwell) -> Self {
        Self {
            queue: dwell,
            create: dwell,
            configure: dwell,
            drain: dwell,
            delete: dwell,
            after_create: AfterCreate::Configure,
        }
    }

    pub(crate) const fn of(&self, state: MachineState) -> Dwell {
        match state {
            MachineState::Creating => self.create,
            MachineState::Configuring => self.configure,
            MachineState::Draining => self.drain,
            MachineState::Deleting => self.delete,
            _ => Dwell::fixed(0),
        }
    }
}
