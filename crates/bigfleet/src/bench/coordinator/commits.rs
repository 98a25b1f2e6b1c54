//! Single commits by one client, by 64 and by 256.

use std::time::{Duration, Instant};

use bigfleet_wire::v1alpha1::{ProviderEntry, UpsertProviderRequest};
use tokio::task::JoinSet;

use super::{
    COMMITS, at_least,
    caller::{Caller, turned_away},
    quantiles, rate,
    replicas::Replicas,
    spaced, told,
};
use crate::{bench::quality::Grade, error::Error};

/// Each connection carries so many clients.
const PER_CONNECTION: usize = 32;

pub(super) async fn measure(
    replicas: &Replicas,
    time: Duration,
    grades: &mut Vec<Grade>,
) -> Result<(), Error> {
    replicas.settled().await?;
    let mut best = 0.0_f64;
    for (clients, name, latency) in [
        (1, "commits per second, 1 client", "its latency p50, p99, max, ms"),
        (64, "commits per second, 64 clients", "their latency p50, p99, max, ms"),
        (256, "commits per second, 256 clients", "their latency p50, p99, max, ms"),
    ] {
        let mut tasks = JoinSet::new();
        let mut caller = Caller::new(replicas)?;
        let began = Instant::now();
        for number in 0..clients {
            if number % PER_CONNECTION == 0 {
                caller = Caller::new(replicas)?;
            }
            tasks.spawn(commit(caller.clone(), number, began + time));
        }
        let mut samples = Vec::new();
        for done in tasks.join_all().await {
            samples.extend(done?);
        }
        let found = samples.len() as f64 / began.elapsed().as_secs_f64();
        best = best.max(found);
        grades.push(told(name, rate(found)));
        grades.push(told(latency, spaced(&quantiles(samples))));
    }
    grades.push(told("commits that had to look for a leader", turned_away().to_string()));
    grades.push(at_least("commits per second at best", best, COMMITS));
    Ok(())
}

async fn commit(mut caller: Caller, number: usize, until: Instant) -> Result<Vec<Duration>, Error> {
    let mut samples = Vec::new();
    while Instant::now() < until {
        // Few names, so that the state stays small.
        let name = format!("client-{number}-{}", samples.len() % 4);
        let address = format!("p-{}:1", samples.len());
        let provider = ProviderEntry { name, address, region: String::new() };
        let began = Instant::now();
        let request = UpsertProviderRequest { provider: Some(provider) };
        caller
            .call(|mut client| {
                let request = request.clone();
                async move { client.upsert_provider(request).await }
            })
            .await?;
        samples.push(began.elapsed());
    }
    Ok(samples)
}
