//! The standard catalogue of experience chapter §7.

use super::super::make::Size;

/// How replicas of one object must lie to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Together {
    /// Anywhere.
    Free,
    /// Hard zone spread, for so many objects in a hundred.
    Spread(usize),
    /// A gang in one rack, of so many replicas.
    Rack(usize, usize),
}

/// One row.
pub(super) struct Archetype {
    pub(super) name: &'static str,
    /// Workload objects in one cluster of the catalogue.
    pub(super) objects: usize,
    pub(super) pods_per_machine: u64,
    pub(super) priority: i32,
    /// Interruption and reclamation, in dollars.
    pub(super) penalties: (f64, f64),
    pub(super) together: Together,
    pub(super) unit: Size,
    /// Unit times pods per machine.
    pub(super) capacity: Size,
    pub(super) price: f64,
    /// Plain objects share so many profiles; gangs stay apart anyway.
    pub(super) profiles: usize,
}

/// Units and prices are ours. The burst-only row is for bursts and left out.
/// One cluster has all 24,586 objects: 4,050 gangs, and 550 plain needs because
/// objects of equal profile are summed; about 5,200 machines.
pub(super) const CATALOGUE: [Archetype; 9] = [
    Archetype {
        name: "tiny-stateless",
        objects: 16_073,
        pods_per_machine: 100,
        priority: 100,
        penalties: (32.0, 64.0),
        together: Together::Free,
        unit: &[("cpu", "100m"), ("memory", "256Mi")],
        capacity: &[("cpu", "10"), ("memory", "25600Mi")],
        price: 0.4,
        profiles: 300,
    },
    Archetype {
        name: "cpu-service",
        objects: 2_755,
        pods_per_machine: 100,
        priority: 1000,
        penalties: (1024.0, 8192.0),
        together: Together::Spread(75),
        unit: &[("cpu", "500m"), ("memory", "1Gi")],
        capacity: &[("cpu", "50"), ("memory", "100Gi")],
        price: 2.0,
        profiles: 120,
    },
    Archetype {
        name: "cpu-batch",
        objects: 1_378,
        pods_per_machine: 100,
        priority: 100,
        penalties: (64.0, 256.0),
        together: Together::Free,
        unit: &[("cpu", "500m"), ("memory", "512Mi")],
        capacity: &[("cpu", "50"), ("memory", "50Gi")],
        price: 1.8,
        profiles: 80,
    },
    Archetype {
        name: "memory-cache",
        objects: 2_000,
        pods_per_machine: 100,
        priority: 1000,
        penalties: (4096.0, 16_384.0),
        together: Together::Rack(3, 5),
        unit: &[("cpu", "200m"), ("memory", "4Gi")],
        capacity: &[("cpu", "20"), ("memory", "400Gi")],
        price: 2.5,
        profiles: 1,
    },
    Archetype {
        name: "stateful-db",
        objects: 2_000,
        pods_per_machine: 100,
        priority: 1000,
        penalties: (8192.0, 32_768.0),
        together: Together::Rack(3, 5),
        unit: &[("cpu", "500m"), ("memory", "4Gi")],
        capacity: &[("cpu", "50"), ("memory", "400Gi")],
        price: 3.0,
        profiles: 1,
    },
    Archetype {
        name: "gpu-inference",
        objects: 100,
        pods_per_machine: 8,
        priority: 1000,
        penalties: (4096.0, 8192.0),
        together: Together::Free,
        unit: &[("cpu", "8"), ("nvidia.com/gpu", "1")],
        capacity: &[("cpu", "64"), ("nvidia.com/gpu", "8")],
        price: 20.0,
        profiles: 20,
    },
    Archetype {
        name: "gpu-training-small",
        objects: 32,
        pods_per_machine: 1,
        priority: 1000,
        penalties: (16_384.0, 32_768.0),
        together: Together::Rack(2, 8),
        unit: &[("cpu", "96"), ("nvidia.com/gpu", "8")],
        capacity: &[("cpu", "96"), ("nvidia.com/gpu", "8")],
        price: 40.0,
        profiles: 1,
    },
    Archetype {
        name: "gpu-training-medium",
        objects: 18,
        pods_per_machine: 1,
        priority: 1000,
        penalties: (32_768.0, 65_536.0),
        together: Together::Rack(8, 16),
        unit: &[("cpu", "192"), ("nvidia.com/gpu", "8")],
        capacity: &[("cpu", "192"), ("nvidia.com/gpu", "8")],
        price: 60.0,
        profiles: 1,
    },
    Archetype {
        name: "critical-realtime",
        objects: 230,
        pods_per_machine: 100,
        priority: 1_000_000,
        penalties: (65_536.0, 65_536.0),
        together: Together::Spread(100),
        unit: &[("cpu", "400m"), ("memory", "1Gi")],
        capacity: &[("cpu", "40"), ("memory", "100Gi")],
        price: 2.2,
        profiles: 30,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::make::vector;

    #[test]
    fn a_machine_holds_the_pods_that_the_catalogue_says() {
        for archetype in &CATALOGUE {
            let pods = vector(archetype.unit).scale(archetype.pods_per_machine);
            let capacity = vector(archetype.capacity).scale(1);
            assert_eq!(pods, capacity, "{}", archetype.name);
        }
    }

    #[test]
    fn weights_are_those_of_the_catalogue() {
        assert_eq!(CATALOGUE.iter().map(|row| row.objects).sum::<usize>(), 24_586);
        let plain = CATALOGUE.iter().filter(|row| !matches!(row.together, Together::Rack(..)));
        assert_eq!(plain.map(|row| row.profiles).sum::<usize>(), 550);
    }
}
