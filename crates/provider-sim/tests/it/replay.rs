//! A seed replays: what happens to a machine follows from the seed and its own history.

use bigfleet_provider_kit::{Cloud, CloudError};
use bigfleet_provider_sim::Sim;
use tokio::time::{Duration, Instant};

use crate::fleets::{config, machine, op, open};

const MORE: &str = "    latency: cloud
    price_walk: {interval: 1m, sigma: 0.05}
    mishaps: {create_error_rate: 0.4}
";

/// Creates and destroys each of these twenty times; how long each took and whether it
/// worked.
async fn story(sim: &Sim, ids: &[&str]) -> Vec<(String, Duration, bool)> {
    let mut told = Vec::new();
    for round in 0..20 {
        for id in ids {
            let machine = machine(sim, id).await;
            let begun = Instant::now();
            let created = sim.create(&op(&format!("op-{id}-{round}")), &machine).await;
            told.push(((*id).to_owned(), begun.elapsed(), created.is_ok()));
            match sim.destroy(&op(&format!("op-{id}-{round}-d")), &machine).await {
                Ok(()) | Err(CloudError::Gone(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
    told
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_tells_the_same_story() {
    let cloud = &config(MORE).clouds[0];
    let ids = ["a-od-000", "a-od-001", "a-spot-000"];
    let first = story(&open(cloud, 7), &ids).await;
    assert_eq!(first, story(&open(cloud, 7), &ids).await);
    assert_ne!(first, story(&open(cloud, 8), &ids).await);
    let worked = first.iter().filter(|step| step.2).count();
    assert!((20..=52).contains(&worked), "{worked} of 60 at an error rate of 0.4");
}

#[tokio::test(start_paused = true)]
async fn others_do_not_change_the_story_of_a_machine() {
    let cloud = &config(MORE).clouds[0];
    let alone = story(&open(cloud, 7), &["a-od-001"]).await;
    let mut among = story(&open(cloud, 7), &["a-spot-001", "a-od-001", "a-od-003"]).await;
    among.retain(|(id, ..)| id == "a-od-001");
    assert_eq!(alone, among);
}
