//! What can be measured.

use super::{engine, gate, measure::Measurement};
use crate::error::Error;

/// A scenario by its name.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) measure: fn(&'static str, u32) -> Result<Vec<Measurement>, Error>,
}

/// All of them, in the order in which `all` runs them.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "gate-need",
        about: "1,000 needs, one by one, through the demand gate",
        measure: gate::needs,
    },
    Scenario {
        name: "gate-rollup-25k",
        about: "a roll-up of 25,000 needs through the demand gate, in identity order",
        measure: gate::ordered_roll_up,
    },
    Scenario {
        name: "gate-rollup-25k-unordered",
        about: "the same in no order",
        measure: gate::unordered_roll_up,
    },
    Scenario {
        name: "gate-machines-100k",
        about: "100,000 machines through the inventory gate",
        measure: gate::machines,
    },
    Scenario {
        name: "realistic-50k",
        about: "50,000 needs of 50 clusters meet 60,000 idle machines",
        measure: engine::realistic_50k,
    },
    Scenario {
        name: "late-5k",
        about: "160 large needs meet 5,000 bound machines and 13,000 more",
        measure: engine::late_5k,
    },
    Scenario {
        name: "phase3-high-demand",
        about: "500,000 bound machines, two thirds of them excess",
        measure: engine::phase3_high_demand,
    },
];

/// The scenarios of these names.
pub(super) fn choose(names: &[String]) -> Result<Vec<&'static Scenario>, Error> {
    if names == ["all"] {
        return Ok(SCENARIOS.iter().collect());
    }
    let find = |name: &String| {
        let found = SCENARIOS.iter().find(|scenario| scenario.name == name);
        found.ok_or_else(|| Error::UnknownScenario { name: name.clone() })
    };
    names.iter().map(find).collect()
}
