//! Clouds made of a configuration.

use std::path::Path;

use crate::{Config, Controls, Error, Multiplex, Sim};

/// The clouds for a kit, and the handle on them.
#[derive(Debug)]
pub struct Fleet {
    /// To be given to the kit.
    pub cloud: Multiplex<Sim>,
    controls: Controls,
}

impl Fleet {
    /// With a directory hosts outlive the process; empty keeps them in memory.
    pub fn open(config: &Config, directory: &Path) -> Result<Self, Error> {
        config.check()?;
        let mut clouds = Vec::new();
        for cloud in &config.clouds {
            let sim = Sim::open(cloud.clone(), config.seed, directory)?;
            clouds.push((cloud.name.clone(), sim));
        }
        let worlds = clouds.iter().map(|(_, sim)| sim.world().clone()).collect();
        Ok(Self { cloud: Multiplex::new(clouds), controls: Controls::new(worlds) })
    }

    /// What an experimenter does to them.
    #[must_use]
    pub fn controls(&self) -> Controls {
        self.controls.clone()
    }
}
