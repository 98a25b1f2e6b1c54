//! `InspectNeeds` (§15, wire chapter §5).

use std::collections::BTreeMap;

use bigfleet_model::MachineState;
use bigfleet_provider::fake::{Fake, Seed};
use bigfleet_scripted::{cluster::Shape, operator::Bootstrap, random::Random};
use bigfleet_shard::Options;
use bigfleet_wire::v1alpha1::{
    CapacityNeed, InspectNeedsRequest, NeedView, UnmetDetail, UnmetReason,
};
use tonic::Code;

use crate::{
    readers::inspect,
    rig::{Rig, offer, pods, pods_of, slow},
};

const GI: i64 = 1 << 30;

#[tokio::test(start_paused = true)]
async fn before_the_first_cycle_everything_is_zero() {
    let rig = Rig::blind(Options::default(), Fake::new(slow()), 1).await;
    rig.pass(30).await;
    let (header, needs) = inspect(&mut rig.read().await, "", 0).await.expect("an answer");
    assert_eq!((header.cycle, header.computed_at_unix_nanos, header.total_needs), (0, 0, 0));
    assert!(needs.is_empty());
    rig.stop().await;
}

/// One machine, three needs: the first has it, the second waits for it, the third for
/// what there is not.
async fn contested() -> (Rig, Vec<bigfleet_scripted::operator::Operator>) {
    let fake = Fake::new(slow());
    fake.add_idle("m-1", &offer("big", "z1", 16)).expect("let in");
    let rig = Rig::over(Options::default(), fake, 1).await;
    let (a, b) = (rig.operator("a").await, rig.operator("b").await);
    let first = Shape::new(10_000, GI).priority(1000);
    a.roll_up(pods_of("a", 1, &first)).await.expect("accepted");
    rig.until("served", |rig| rig.count(MachineState::Configured) == 1).await;
    let mut needs = pods("b", 1, 10_000);
    needs.extend(pods_of("b", 1, &Shape::new(1000, GI).instance_types(&["none"])));
    b.roll_up(needs).await.expect("accepted");
    rig.pass(35).await;
    (rig, vec![a, b])
}

#[tokio::test(start_paused = true)]
async fn rows_tell_who_is_served_and_why_others_are_not() {
    let (rig, _operators) = contested().await;
    let (header, needs) = inspect(&mut rig.read().await, "", 0).await.expect("an answer");
    assert_eq!(header.total_needs, 3);
    assert!(header.cycle > 3 && header.computed_at_unix_nanos > 0);
    let told = |view: &NeedView| (view.cluster_id.clone(), view.satisfied, view.unmet_reason());
    assert_eq!(
        needs.iter().map(told).collect::<Vec<_>>(),
        [
            ("a".to_owned(), true, UnmetReason::Unspecified),
            ("b".to_owned(), false, UnmetReason::NoMatchingSupply),
            ("b".to_owned(), false, UnmetReason::PriorityStarved),
        ],
    );
    let [served, hopeless, starved] = &needs[..] else { unreachable!() };
    assert_eq!((served.claimed_machine_count, served.residual_deficit.is_none()), (1, true));
    assert!(served.matching_supply.is_none() && served.age_cycles_unmet == 0);
    assert_eq!(starved.residual_deficit.as_ref().expect("short").resources["cpu"], "10");
    assert!(starved.age_cycles_unmet >= 3, "{}", starved.age_cycles_unmet);
    let supply = starved.matching_supply.as_ref().expect("unmet");
    assert_eq!((supply.idle, supply.configured, supply.speculative), (0, 1, 0));
    let supply = hopeless.matching_supply.as_ref().expect("unmet");
    assert_eq!(
        (supply.idle, supply.configured, supply.speculative, supply.capped),
        (0, 0, 0, false)
    );
    assert!(
        needs.iter().all(|view| view.same_candidates.is_empty() && view.arrival_unix_nanos > 0)
    );
    // The counts are those that metrics give.
    for (reason, count) in [("priority_starved", 1.0), ("no_matching_supply", 1.0)] {
        let series = format!("bigfleet_shard_needs_unmet{{reason=\"{reason}\"}}");
        assert_eq!(rig.sample(&series), count, "{reason}");
    }
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_and_a_limit_narrow_the_answer() {
    let (rig, operators) = contested().await;
    let mut read = rig.read().await;
    let (header, needs) = inspect(&mut read, "b", 1).await.expect("an answer");
    assert_eq!((header.total_needs, needs.len()), (2, 1), "the header counts before the limit");
    assert_eq!(needs[0].cluster_id, "b");
    let (header, needs) = inspect(&mut read, "nobody", 0).await.expect("an answer");
    assert_eq!((header.total_needs, needs.len()), (0, 0));
    assert!(header.cycle > 0, "computed, and empty");
    operators[1].roll_up(vec![]).await.expect("accepted");
    rig.pass(2).await;
    let (header, needs) = inspect(&mut read, "", -1).await.expect("an answer");
    assert_eq!((header.total_needs, needs.len()), (1, 1), "what is withdrawn is gone");
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_gang_shows_its_domains() {
    let fake = Fake::new(slow());
    for (id, zone) in [("m-1", "z1"), ("m-2", "z1"), ("m-3", "z2")] {
        fake.add_idle(id, &offer("big", zone, 16)).expect("let in");
    }
    let rig = Rig::over(Options::default(), fake, 1).await;
    let operator = rig.operator("c").await;
    let gang = Shape::new(16_000, GI).same(bigfleet_model::machine::ZONE_LABEL);
    operator.roll_up(pods_of("c", 2, &gang)).await.expect("accepted");
    rig.pass(60).await;
    let view = rig.need("c").await;
    assert!(view.satisfied && view.same_satisfiable, "{view:?}");
    assert_eq!((view.same_domain.as_str(), view.claimed_machine_count), ("z1", 2));
    let candidates = view.same_candidates.iter();
    let candidates: Vec<_> =
        candidates.map(|one| (&*one.domain, one.coverage_per_mille, one.satisfiable)).collect();
    assert_eq!(candidates, [("z1", 1000, true), ("z2", 500, false)]);
    rig.stop().await;
}

/// Looks once a second until a text goes with the detail.
async fn detail_of(rig: &Rig, cluster: &str) -> (UnmetDetail, String) {
    for _ in 0..120 {
        let view = rig.needs(cluster).await.pop().unwrap_or_default();
        if !view.detail_text.is_empty() {
            return (view.unmet_detail(), view.detail_text);
        }
        rig.pass(1).await;
    }
    panic!("never a text: {:?}", rig.need(cluster).await);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_and_a_failing_provider_are_told_in_their_own_words() {
    let seed = Seed { speculative: 5, ..Seed::default() };
    let rig = Rig::start(Options::default(), slow(), &seed).await;
    let operator = rig.operator("c").await;
    operator.on_bootstrap(|_| Bootstrap::Refuse("no template for this shape".to_owned()));
    operator.roll_up(pods("c", 1, 1000)).await.expect("accepted");
    let (detail, text) = detail_of(&rig, "c").await;
    assert_eq!(detail, UnmetDetail::BootstrapRefused);
    assert_eq!(text, "no template for this shape");
    rig.stop().await;

    let rig = Rig::start(Options::default(), slow(), &seed).await;
    rig.knobs().broken.extend((0..5).map(|at| format!("spec-{at}").into()));
    let operator = rig.operator("c").await;
    operator.roll_up(pods("c", 1, 1000)).await.expect("accepted");
    let (detail, text) = detail_of(&rig, "c").await;
    assert_eq!(detail, UnmetDetail::ProviderFailing);
    assert!(text.contains("out of order"), "{text}");
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn without_a_session_nothing_is_bought_and_the_row_says_so() {
    let fake = Fake::new(slow());
    let rig = Rig::over(Options::default(), fake.clone(), 1).await;
    let mut operator = rig.operator("c").await;
    operator.roll_up(pods("c", 1, 1000)).await.expect("accepted");
    rig.pass(5).await;
    operator.abort().await;
    fake.add_speculative("m-1", &offer("big", "z1", 16)).expect("let in");
    rig.pass(60).await;
    let view = rig.need("c").await;
    assert_eq!((view.satisfied, view.unmet_detail()), (false, UnmetDetail::NoSession));
    assert_eq!(rig.count(MachineState::Speculative), 1);
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_ninth_reader_is_turned_away() {
    let rig = Rig::start(Options::default(), slow(), &Seed::default()).await;
    let operator = rig.operator("c").await;
    // More than the windows of a connection hold.
    let many = (0..4000).flat_map(|at| {
        pods_of("c", 1, &Shape::new(1000, GI).instance_types(&[&format!("type-{at:01000}")]))
    });
    operator.roll_up(many.collect()).await.expect("accepted");
    rig.pass(15).await;
    let mut readers = Vec::new();
    for _ in 0..8 {
        let mut read = rig.read().await;
        let all = InspectNeedsRequest::default();
        readers.push(read.inspect_needs(all).await.expect("a place").into_inner());
    }
    let ninth = inspect(&mut rig.read().await, "", 0).await;
    let refused = ninth.map(|(header, _)| header).expect_err("no place");
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    let series = "bigfleet_shard_observe_watchers{method=\"InspectNeeds\"}";
    assert_eq!(rig.sample(series), 8.0);
    readers.clear();
    rig.until("free places", |rig| rig.sample(series) == 0.0).await;
    let (header, needs) = inspect(&mut rig.read().await, "", 0).await.expect("a place");
    assert_eq!((header.total_needs, needs.len()), (4000, 4000));
    rig.stop().await;
}

/// Clusters that live: there is a row for every need that each of them sent last, no
/// other, and in the order of all.
#[tokio::test(start_paused = true)]
async fn rows_are_what_clusters_sent_last() {
    let parse = |text: String| text.parse().expect("BIGFLEET_SEED is a number");
    let seed = std::env::var("BIGFLEET_SEED").map_or(7, parse);
    println!("seed {seed}: replay with BIGFLEET_SEED={seed}");
    let mut random = Random::new(seed);
    let machines = Seed { idle: 20, speculative: 40, ..Seed::default() };
    let rig = Rig::start(Options::default(), slow(), &machines).await;
    let mut read = rig.read().await;
    let mut sent: BTreeMap<&str, Vec<CapacityNeed>> = BTreeMap::new();
    let names = ["a", "b", "c"];
    let mut operators = Vec::new();
    for name in names {
        operators.push(rig.operator(name).await);
    }
    for _ in 0..60 {
        let at = random.below(3) as usize;
        let needs: BTreeMap<String, CapacityNeed> = (0..random.below(6))
            .flat_map(|_| {
                let shape = Shape::new(1000 * (1 + random.below(3) as i64), GI)
                    .priority([0, 5, 1000][random.below(3) as usize])
                    .zones(&[["zone-a", "zone-b", "nowhere"][random.below(3) as usize]]);
                let fingerprint = shape.profile().fingerprint().to_string();
                pods_of(names[at], 1, &shape)
                    .into_iter()
                    .map(move |need| (fingerprint.clone(), need))
            })
            .collect();
        sent.insert(names[at], needs.values().cloned().collect());
        operators[at].roll_up(needs.into_values().collect()).await.expect("accepted");
        rig.pass(1 + random.below(15)).await;
        let (header, rows) = inspect(&mut read, "", 0).await.expect("an answer");
        assert_eq!(header.total_needs as usize, rows.len());
        let told = |cluster: &str| {
            let rows = rows.iter().filter(|row| row.cluster_id == cluster);
            rows.filter_map(|row| row.need.clone()).collect::<Vec<_>>()
        };
        let by_text = |mut needs: Vec<CapacityNeed>| {
            needs.sort_by_key(|need| format!("{need:?}"));
            needs
        };
        for (cluster, needs) in &sent {
            assert_eq!(by_text(told(cluster)), by_text(needs.clone()), "of {cluster}");
        }
        let place = |row: &NeedView| {
            let priority = row.need.as_ref().map_or(0, |need| need.priority);
            let text = (row.cluster_id.clone(), row.profile_fingerprint.clone());
            (std::cmp::Reverse(priority), row.arrival_unix_nanos, text)
        };
        assert!(rows.is_sorted_by_key(place));
        let unmet = rows.iter().filter(|row| !row.satisfied).count();
        let reasons = ["priority_starved", "no_matching_supply"];
        let gauge =
            |reason| rig.sample(&format!("bigfleet_shard_needs_unmet{{reason=\"{reason}\"}}"));
        let gauges: f64 = reasons.into_iter().map(gauge).sum();
        assert_eq!(gauges as usize, unmet, "counted as they come and go");
    }
    rig.stop().await;
}
