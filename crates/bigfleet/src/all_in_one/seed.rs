//! The machines of a laptop's fleet.

use std::{collections::BTreeMap, time::Duration};

use bigfleet_model::CapacityType;
use bigfleet_provider::fake::{Fake, FakeOptions, Offer, PerKind};

use super::flags::Seed;
use crate::error::Error;

/// Machines of each kind.
const EACH: usize = 8;

/// A fake that is slow enough for states to be seen.
pub(super) fn fake(seed: Seed) -> Result<Fake, Error> {
    let latency = PerKind {
        create: Duration::from_secs(3),
        configure: Duration::from_secs(2),
        drain: Duration::from_secs(2),
        delete: Duration::from_secs(1),
    };
    let fake = Fake::new(FakeOptions { latency, ..FakeOptions::default() });
    if seed == Seed::Dev {
        let gpu = offer("a3-highgpu-8g", CapacityType::BareMetal, 0.0, &[("nvidia.com/gpu", "8")]);
        let resources = &[("cpu", "2"), ("memory", "8Gi")];
        let cpu = offer("m6i.large", CapacityType::OnDemand, 0.10, resources);
        for number in 0..EACH {
            fake.add_idle(&format!("dev-gpu-{number}"), &gpu)?;
            fake.add_idle(&format!("dev-cpu-{number}"), &cpu)?;
        }
    }
    Ok(fake)
}

fn offer(
    instance_type: &str,
    capacity_type: CapacityType,
    price_per_hour: f64,
    resources: &[(&str, &str)],
) -> Offer {
    let text = |(name, amount): &(&str, &str)| ((*name).to_owned(), (*amount).to_owned());
    Offer {
        instance_type: instance_type.to_owned(),
        zone: "dev-zone-a".to_owned(),
        labels: BTreeMap::new(),
        resources: resources.iter().map(text).collect(),
        allocatable: BTreeMap::new(),
        capacity_type,
        price_per_hour,
        interruption_probability: 0.0,
    }
}

#[cfg(test)]
mod tests {
    use bigfleet_model::MachineState;

    use super::*;

    #[test]
    fn the_gate_takes_every_machine() {
        let fake = fake(Seed::Dev).unwrap();
        assert_eq!(fake.count(MachineState::Idle), 2 * EACH);
        assert!(fake.machine("dev-gpu-7").is_some() && fake.machine("dev-cpu-7").is_some());
        assert_eq!(super::fake(Seed::None).unwrap().count(MachineState::Idle), 0);
    }
}
