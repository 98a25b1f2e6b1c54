//! The provider of `--provider-addr ""`: the fake, for tests and first steps.

use std::time::Duration;

use bigfleet_model::gate::inventory::Rejected;
use bigfleet_net::Error as NetError;
use bigfleet_provider::fake::{Fake, FakeOptions, PerKind, Seed};

use crate::flags::{SeedFlags, ShardFlags};

/// Why there is no fake.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A machine of the catalogue did not pass the gate.
    #[error("the machines to start with: {0}")]
    Seed(#[from] Rejected),
    /// The catalogue has no such choice.
    #[error("--archetypes: {0:?} is not known; leave it empty for the fake's own machines")]
    Archetypes(String),
    /// Machines come in whole.
    #[error("--seed-density-multiplier: {0} is no whole number above 0")]
    Density(f64),
}

/// A fake with what the flags ask for.
pub(crate) fn fake(flags: &ShardFlags) -> Result<Fake, Error> {
    let asked = &flags.seed;
    if !asked.archetypes.is_empty() {
        return Err(Error::Archetypes(asked.archetypes.clone()));
    }
    let density = asked.seed_density_multiplier;
    if density < 1.0 || density.fract() != 0.0 {
        return Err(Error::Density(density));
    }
    // Like a quick cloud: nothing is done at once.
    let latency = PerKind {
        create: Duration::from_secs(3),
        configure: Duration::from_secs(2),
        drain: Duration::from_secs(2),
        delete: Duration::from_secs(2),
    };
    let fake = Fake::new(FakeOptions {
        latency,
        failure_rate: asked.failure_rate_per_sec,
        ..FakeOptions::default()
    });
    fake.seed(&Seed {
        idle: asked.seed_machines,
        speculative: asked.seed_speculative,
        spot: asked.seed_spot,
        configured_per_cluster: asked.seed_configured_per_cluster,
        clusters: asked.seed_cluster_total,
        stride: asked.seed_cluster_stride.max(1),
        shard: ordinal(&flags.id),
        density: density as u64,
        ..Seed::default()
    })?;
    Ok(fake)
}

/// The number at the end of a shard's id.
fn ordinal(id: &str) -> usize {
    let digits = id.len() - id.trim_end_matches(|digit: char| digit.is_ascii_digit()).len();
    id[id.len() - digits..].parse().unwrap_or(0)
}

/// The fake's time, and its shortage when that is due.
pub(crate) async fn live(fake: Fake, seed: SeedFlags) -> Result<(), NetError> {
    let shortage = async {
        if seed.speculative_shed_at_seconds == 0 {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(Duration::from_secs(seed.speculative_shed_at_seconds)).await;
        let shed = fake.shed_speculative(1.0 - seed.speculative_shed_multiplier);
        tracing::warn!(machines = shed, "the fake has shed speculative machines");
        std::future::pending::<()>().await;
    };
    tokio::join!(fake.run(), shortage);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_numbered_by_the_end_of_its_id() {
        for (id, number) in [("shard-0", 0), ("eu-west-12", 12), ("alone", 0), ("7", 7)] {
            assert_eq!(ordinal(id), number, "{id}");
        }
    }
}
