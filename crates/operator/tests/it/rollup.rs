//! Roll-ups of random histories.

use std::{collections::BTreeMap, sync::Arc};

use bigfleet_crds::CapacityRequest;
use bigfleet_in_cluster::{Change, ObjectKey};
use bigfleet_model::{Operator, Quantity, QuantitySum, gate};
use bigfleet_operator::rollup::{Ledger, Projector, Request, RollUp};
use bigfleet_scripted::random::Random;
use bigfleet_wire::v1alpha1::{ClusterCapacityNeeds, OperatorMessage, operator_message::Payload};
use prost::Message;
use serde_json::{Value, json};

const CLUSTER: &str = "c-1";

fn seeds() -> Vec<u64> {
    match std::env::var("BIGFLEET_SEED") {
        Ok(seed) => vec![seed.parse().expect("a number")],
        Err(_) => (1..=40).collect(),
    }
}

/// Profiles and groups that all differ. The namespace is part of a group.
fn palette() -> Vec<(&'static str, Value)> {
    let rack = json!({"topologyKey": "rack", "labelSelector": {"matchLabels": {"app": "a"}}});
    let zone = json!([{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]);
    let soft =
        json!([{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}]);
    vec![
        // A soft wish changes nothing.
        ("team-a", json!({"priority": 0, "topologySpread": soft})),
        ("team-a", json!({"priority": 1})),
        ("team-b", json!({"priority": 1, "interruptionPenalty": "500m"})),
        ("team-b", json!({"priority": 1, "reclamationPenalty": "500m"})),
        ("team-a", json!({"priority": 1, "coLocation": rack})),
        ("team-b", json!({"priority": 1, "coLocation": rack})),
        ("team-a", json!({"priority": 1, "topologySpread": zone})),
        (
            "team-a",
            json!({"priority": 1, "requirements": [
                {"key": "k", "operator": "In", "values": ["b", "a"]}, {"key": "j", "operator": "Exists"},
            ]}),
        ),
    ]
}

const AMOUNTS: [&str; 12] =
    ["0", "1", "500m", "1500m", "1Gi", "1.5Gi", "1Ki", "1024", "3e3", "7n", "100M", "0Gi"];

#[derive(Clone)]
struct Spec {
    /// Which of the palette; none if it cannot be translated.
    kind: Option<usize>,
    resources: BTreeMap<&'static str, &'static str>,
    daemonset: bool,
}

fn draw(random: &mut Random, daemonsets_only: bool) -> Spec {
    let mut resources = BTreeMap::new();
    for name in ["cpu", "memory", "example.com/gpu"] {
        if random.per_mille(700) {
            resources.insert(name, AMOUNTS[random.below(AMOUNTS.len() as u64) as usize]);
        }
    }
    Spec {
        kind: (!random.per_mille(60)).then(|| random.below(palette().len() as u64) as usize),
        resources,
        daemonset: daemonsets_only || random.per_mille(300),
    }
}

fn object(name: &str, spec: &Spec, version: u64) -> (ObjectKey, CapacityRequest) {
    let (namespace, mut full) = match spec.kind {
        Some(kind) => palette().swap_remove(kind),
        None => ("team-a", json!({"priority": 0, "interruptionPenalty": "much"})),
    };
    full["resources"] = json!(spec.resources);
    let labels =
        if spec.daemonset { json!({"bigfleet.lucy.sh/daemonset": "true"}) } else { json!({}) };
    let object = serde_json::from_value(json!({
        "apiVersion": "bigfleet.lucy.sh/v1alpha1", "kind": "CapacityRequest",
        "metadata": {
            "name": name, "namespace": namespace, "uid": format!("uid-{name}"),
            "resourceVersion": version.to_string(), "generation": version, "labels": labels,
        },
        "spec": full,
    }));
    (ObjectKey::namespaced(namespace, name), object.unwrap())
}

/// A cache that tells its steps.
struct World {
    projector: Projector,
    ledger: Ledger,
    known: BTreeMap<ObjectKey, (Spec, Arc<Request>)>,
    version: u64,
}

impl World {
    fn new() -> Self {
        let ledger = Ledger::new(CLUSTER);
        Self { projector: Projector::default(), ledger, known: BTreeMap::new(), version: 0 }
    }

    fn put(&mut self, name: &str, spec: &Spec) {
        self.version += 1;
        let (key, object) = object(name, spec, self.version);
        // One object of that name, whatever namespace it had before.
        let others: Vec<ObjectKey> =
            self.known.keys().filter(|one| *one.name == *name && **one != key).cloned().collect();
        others.iter().for_each(|other| self.remove(other));
        let after = Arc::new(self.projector.project(&object));
        let before = self.known.insert(key.clone(), (spec.clone(), after.clone()));
        let before = before.map(|(_, before)| before);
        self.ledger.apply(&Change::Put { key, before, after });
    }

    fn remove(&mut self, key: &ObjectKey) {
        if let Some((_, before)) = self.known.remove(key) {
            self.ledger.apply(&Change::Gone { key: key.clone(), before });
        }
    }

    /// From scratch, in another order, by another process.
    fn afresh(&self, random: &mut Random) -> Ledger {
        let projector = Projector::default();
        let mut changes: Vec<Change<Request>> = self
            .known
            .iter()
            .map(|(key, (spec, request))| {
                let (_, object) = object(&key.name, spec, request.version);
                let after = Arc::new(projector.project(&object));
                Change::Put { key: key.clone(), before: None, after }
            })
            .collect();
        for at in (1..changes.len()).rev() {
            changes.swap(at, random.below(at as u64 + 1) as usize);
        }
        let mut ledger = Ledger::new(CLUSTER);
        ledger.apply(&Change::Swapped(changes));
        ledger
    }
}

fn bytes(roll_up: &RollUp) -> Vec<u8> {
    let mut bytes = Vec::new();
    roll_up.encode(&mut bytes);
    assert_eq!(bytes.len(), roll_up.encoded_len());
    bytes
}

fn decode(bytes: &[u8]) -> ClusterCapacityNeeds {
    let message = OperatorMessage::decode(bytes).unwrap();
    // Ours by hand, and what the generated code would write.
    assert_eq!(message.encode_to_vec(), bytes);
    match message.payload {
        Some(Payload::Rollup(needs)) => needs,
        other => panic!("no roll-up: {other:?}"),
    }
}

fn history(seed: u64, mut check: impl FnMut(&mut World, &mut Random)) {
    println!("BIGFLEET_SEED={seed}");
    let mut random = Random::new(seed);
    let mut world = World::new();
    world.ledger.apply(&Change::Swapped(Vec::new()));
    let daemonsets_only = seed.is_multiple_of(8);
    for _ in 0..120 {
        let name = format!("cr-{}", random.below(25));
        if random.per_mille(350) {
            let keys: Vec<ObjectKey> =
                world.known.keys().filter(|key| *key.name == *name).cloned().collect();
            keys.iter().for_each(|key| world.remove(key));
        } else {
            let spec = draw(&mut random, daemonsets_only);
            world.put(&name, &spec);
        }
        check(&mut world, &mut random);
    }
}

#[test]
fn operator_inv_01_any_history_and_any_permutation_give_the_same_bytes() {
    for seed in seeds() {
        history(seed, |world, random| {
            let incremental = bytes(&world.ledger.build(7));
            let afresh = bytes(&world.afresh(random).build(7));
            assert_eq!(incremental, afresh);
        });
    }
}

#[test]
fn operator_inv_02_aggregates_are_exact_sums_and_units_the_largest() {
    let mut binary = 0;
    for seed in seeds() {
        history(seed, |world, _| {
            let needs = decode(&bytes(&world.ledger.build(7)));
            assert_eq!((needs.cluster_id.as_str(), needs.timestamp_unix_nanos), (CLUSTER, 7));
            gate::demand::roll_up(&CLUSTER.into(), needs.clone()).expect("a shard takes it");
            let (sums, units) = expected(world);
            let total = |of: &BTreeMap<(usize, &str), Quantity>| -> Vec<String> {
                of.iter()
                    .filter(|(_, q)| q.nanos() > 0)
                    .map(|((_, n), q)| format!("{n} {q}"))
                    .collect()
            };
            let sent =
                |of: fn(&bigfleet_wire::v1alpha1::CapacityNeed) -> &BTreeMap<String, String>| {
                    let entries = needs.needs.iter().flat_map(move |need| of(need).iter());
                    let mut texts: Vec<String> =
                        entries.map(|(name, text)| format!("{name} {text}")).collect();
                    texts.sort();
                    texts
                };
            let sorted = |mut texts: Vec<String>| {
                texts.sort();
                texts
            };
            assert_eq!(sent(|need| &need.aggregate_resources), sorted(total(&sums)));
            assert_eq!(sent(|need| &need.min_unit), sorted(total(&units)));
            binary +=
                sent(|need| &need.aggregate_resources).iter().filter(|t| t.ends_with('i')).count();
        });
    }
    assert!(binary > 0, "no sum was printed with a binary suffix");
}

type Vectors = BTreeMap<(usize, &'static str), Quantity>;

/// By kind and name, from the specs alone.
fn expected(world: &World) -> (Vectors, Vectors) {
    let all = || world.known.values().map(|(spec, _)| spec);
    if all().all(|spec| spec.daemonset) {
        return Default::default();
    }
    let mut addends: BTreeMap<(usize, &'static str), Vec<Quantity>> = BTreeMap::new();
    for spec in all() {
        let Some(kind) = spec.kind else { continue };
        for (name, text) in &spec.resources {
            addends.entry((kind, name)).or_default().push(text.parse().unwrap());
        }
    }
    let sum = |all: &Vec<Quantity>| all.iter().copied().collect::<QuantitySum>().total();
    let sums: Vectors = addends.iter().map(|(key, all)| (*key, sum(all))).collect();
    let unit = |key, all: &Vec<Quantity>| {
        let largest = all.iter().max().unwrap().nanos();
        Quantity::from_nanos(largest, sums.get(key).unwrap().family())
    };
    let units = addends.iter().map(|(key, all)| (*key, unit(key, all))).collect();
    (sums, units)
}

#[test]
fn operator_inv_03_needs_are_told_apart_by_profile_and_group_alone() {
    for seed in seeds() {
        history(seed, |world, _| {
            let needs = decode(&bytes(&world.ledger.build(7)));
            let plain = world.known.values().any(|(spec, _)| !spec.daemonset);
            let mut kinds: Vec<usize> =
                world.known.values().filter_map(|(spec, _)| spec.kind).filter(|_| plain).collect();
            kinds.sort_unstable();
            kinds.dedup();
            assert_eq!(needs.needs.len(), kinds.len(), "one need for each kind of demand");
            let identities: Vec<(String, String)> = needs
                .needs
                .iter()
                .map(|need| {
                    let same =
                        need.requirements.iter().filter(|r| r.operator == Operator::Same.to_wire());
                    assert_eq!(same.count(), usize::from(!need.group.is_empty()));
                    let need = gate::demand::need(&CLUSTER.into(), 0, need.clone()).unwrap();
                    (need.profile.fingerprint().to_string(), need.group.to_string())
                })
                .collect();
            assert!(identities.is_sorted_by(|a, b| a < b), "in identity order: {identities:?}");
        });
    }
}

#[test]
fn only_daemonsets_left_is_no_demand() {
    let mut world = World::new();
    let spec = |daemonset| Spec { kind: Some(1), resources: [("cpu", "1")].into(), daemonset };
    world.put("a", &spec(true));
    assert_eq!(decode(&bytes(&world.ledger.build(1))).needs.len(), 0);
    assert!(world.ledger.candidates().is_empty(), "what is not sent is not acknowledged");
    world.put("b", &spec(false));
    let both = decode(&bytes(&world.ledger.build(2)));
    assert_eq!(both.needs[0].aggregate_resources["cpu"], "2");
    assert_eq!(world.ledger.candidates().len(), 2);
    // One that is not understood keeps them: nobody knows what it would ask for.
    world.put("b", &Spec { kind: None, ..spec(false) });
    assert_eq!(decode(&bytes(&world.ledger.build(3))).needs.len(), 1);
}

#[test]
fn what_cannot_be_translated_is_told_once_per_generation_and_not_acknowledged() {
    let mut world = World::new();
    let bad = Spec { kind: None, resources: BTreeMap::new(), daemonset: false };
    world.put("a", &bad);
    assert_eq!(world.ledger.take_news().len(), 1);
    assert_eq!((world.ledger.misfits().count(), world.ledger.candidates().len()), (1, 0));
    // Another version of the same generation is no news.
    let key = world.known.keys().next().unwrap().clone();
    let before = world.known[&key].1.clone();
    let after = Arc::new(Request { version: 99, ..(*before).clone() });
    world.ledger.apply(&Change::Put { key, before: Some(before), after: after.clone() });
    assert!(world.ledger.take_news().is_empty());
    let key = world.known.keys().next().unwrap().clone();
    world.known.insert(key, (bad.clone(), after));
    world.put("a", &bad);
    assert_eq!(world.ledger.take_news().len(), 1, "a new generation");
    // Nobody takes them on a standby: one is enough of each, and none of what is mended.
    world.put("a", &bad);
    world.put("a", &bad);
    world.put("b", &bad);
    assert_eq!(world.ledger.take_news().len(), 2);
    world.put("b", &bad);
    world.put("b", &Spec { kind: Some(1), ..bad.clone() });
    assert!(world.ledger.take_news().is_empty());
    let b = world.known.keys().find(|key| *key.name == *"b").unwrap().clone();
    world.remove(&b);
    world.put("a", &Spec { kind: Some(1), ..bad });
    assert!(world.ledger.take_news().is_empty());
    assert_eq!((world.ledger.misfits().count(), world.ledger.candidates().len()), (0, 1));
}
