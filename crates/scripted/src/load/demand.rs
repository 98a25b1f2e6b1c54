//! Roll-ups of a realistic shape, from little memory: profiles are shared by
//! all sessions, a session keeps one number per need.

use std::sync::Arc;

use bigfleet_model::{
    ClusterId, Group, Need, PenaltyBucket, Profile, Resources, machine::ZONE_LABEL,
};
use bigfleet_wire::v1alpha1::CapacityNeed;

use crate::{cluster::Shape, random::Random};

const GIB: i64 = 1 << 30;
const ZONES: [&str; 4] = ["zone-a", "zone-b", "zone-c", "zone-d"];
/// Each profile that a session leaves out is one by which sessions differ.
const SPARE_PROFILES: usize = 16;
const MAX_PODS: u64 = 200;

struct Template {
    profile: Arc<Profile>,
    group: Group,
    request: Resources,
}

/// All profiles that a load knows, in identity order.
pub(super) struct Catalogue(Vec<Template>);

impl Catalogue {
    pub(super) fn new(needs_per_roll_up: usize) -> Self {
        let mut templates: Vec<Template> =
            (0..needs_per_roll_up + SPARE_PROFILES).map(template).collect();
        templates.sort_by(|a, b| {
            let key = |one: &Template| (one.profile.fingerprint().clone(), one.group.clone());
            key(a).cmp(&key(b))
        });
        Self(templates)
    }
}

/// Every profile is different by its priority; every fourth asks for a zone,
/// every sixteenth is a gang.
fn template(number: usize) -> Template {
    let small = i64::try_from(number % 5).unwrap_or(0);
    let cpu = 250 << small;
    let memory = GIB << (small + i64::try_from(number % 3).unwrap_or(0));
    let shape = Shape::new(cpu, memory)
        .priority(i32::try_from(number).unwrap_or(i32::MAX))
        .penalties(PenaltyBucket::from_dollars(number as f64 % 9.0), PenaltyBucket::ZERO);
    let shape = match number % 16 {
        0 => shape.same(ZONE_LABEL),
        4 | 8 | 12 => shape.zones(&[ZONES[number / 4 % 4], ZONES[(number / 4 + 1) % 4]]),
        _ => shape,
    };
    Template {
        profile: shape.profile(),
        group: shape.group(&number.to_string()),
        request: shape.request().clone(),
    }
}

/// What one session asks for.
pub(super) struct Demand {
    /// Pods by template; 0 for one that this session does not use.
    pods: Box<[u16]>,
    random: Random,
}

impl Demand {
    pub(super) fn new(catalogue: &Catalogue, needs: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut pods = vec![0; catalogue.0.len()];
        let first = random.below(catalogue.0.len() as u64) as usize;
        let places = pods.len();
        for place in 0..needs {
            pods[(first + place) % places] = some_pods(&mut random);
        }
        Self { pods: pods.into(), random }
    }

    /// Changes so many of a thousand needs, then tells all of them.
    pub(super) fn next(
        &mut self,
        catalogue: &Catalogue,
        cluster: &ClusterId,
        churn_per_mille: u64,
    ) -> Vec<CapacityNeed> {
        let mut needs = Vec::new();
        for (template, pods) in catalogue.0.iter().zip(&mut self.pods) {
            if *pods == 0 {
                continue;
            }
            if self.random.per_mille(churn_per_mille) {
                *pods = some_pods(&mut self.random);
            }
            needs.push(CapacityNeed::from(&Need {
                cluster: cluster.clone(),
                profile: template.profile.clone(),
                group: template.group.clone(),
                aggregate: template.request.scale(u64::from(*pods)),
                min_unit: template.request.clone(),
                arrival: 0,
            }));
        }
        needs
    }
}

fn some_pods(random: &mut Random) -> u16 {
    1 + random.below(MAX_PODS) as u16
}

#[cfg(test)]
mod tests {
    use bigfleet_model::gate;
    use bigfleet_wire::v1alpha1::ClusterCapacityNeeds;

    use super::*;

    #[test]
    fn a_shard_would_take_every_roll_up_as_it_stands() {
        let catalogue = Catalogue::new(40);
        let cluster = ClusterId::from("c");
        for seed in 0..20 {
            let mut demand = Demand::new(&catalogue, 40, seed);
            let needs = demand.next(&catalogue, &cluster, 100);
            let message = ClusterCapacityNeeds { needs: needs.clone(), ..Default::default() };
            let taken = gate::demand::roll_up(&cluster, message).unwrap();
            let again: Vec<CapacityNeed> = taken.needs.iter().map(CapacityNeed::from).collect();
            assert_eq!(again, needs, "already merged, canonical and in identity order");
            assert_eq!(again.len(), 40);
        }
    }

    #[test]
    fn churn_changes_about_as_much_as_asked() {
        let catalogue = Catalogue::new(50);
        let cluster = ClusterId::from("c");
        for (churn, low, high) in [(0, 0, 0), (100, 300, 700), (1_000, 4_900, 5_000)] {
            let mut demand = Demand::new(&catalogue, 50, 3);
            let mut before = demand.next(&catalogue, &cluster, churn);
            let mut changed = 0;
            for _ in 0..100 {
                let now = demand.next(&catalogue, &cluster, churn);
                changed += before.iter().zip(&now).filter(|(a, b)| a != b).count();
                before = now;
            }
            assert!((low..=high).contains(&changed), "{churn}: {changed}");
        }
    }
}
