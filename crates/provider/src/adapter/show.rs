//! A record as readers see it.

use bigfleet_model::Machine;
use bigfleet_wire::v1alpha1 as wire;

#[cfg_attr(not(feature = "mutants"), allow(unused_mut))]
pub(super) fn machine(machine: &Machine) -> wire::Machine {
    let mut shown = wire::Machine::from(machine);
    #[cfg(feature = "mutants")]
    super::distort::distort(machine.state, &mut shown);
    shown
}
