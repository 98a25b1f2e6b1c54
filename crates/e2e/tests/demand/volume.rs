//! Rows about much at once.

use std::time::Duration;

use bigfleet_crds::{CapacityRequest, CapacityRequestPhase, CapacityRequestSpec};
use bigfleet_e2e::wait::{PATIENCE, eventually, sized, within};
use bigfleet_scripted::shard::Heard;
use bigfleet_testkit::proxy::Way;
use bigfleet_wire::v1alpha1::{ClusterCapacityNeeds, operator_message::Payload as Up};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api,
    api::{DeleteParams, ListParams, PostParams},
};
use tokio::task::JoinSet;

use crate::stage::{Stage, milli_cpu, of_row};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_11_and_31_much_at_once_is_told_whole_and_in_time() {
    let Some(mut stage) = Stage::start_or_skip(&[]).await else { return };
    row_11_no_roll_up_before_the_list_is_complete(&mut stage).await;
    row_31_many_pods_do_not_delay_roll_ups(&mut stage).await;
}

async fn row_11_no_roll_up_before_the_list_is_complete(stage: &mut Stage) {
    let count = sized(3_000, 50_000);
    let api = Api::<CapacityRequest>::namespaced(stage.cluster.client(), "default");
    let mut writers = JoinSet::new();
    for writer in 0..10 {
        let api = api.clone();
        writers.spawn(async move {
            for index in (writer..count).step_by(10) {
                let spec = CapacityRequestSpec {
                    resources: [("cpu".to_owned(), "1".into())].into(),
                    ..CapacityRequestSpec::default()
                };
                let request = CapacityRequest::new(&format!("row-11-{index}"), spec);
                api.create(&PostParams::default(), &request).await.unwrap();
            }
        });
    }
    writers.join_all().await;
    stage.proxy.set(Way::Slow(Duration::from_millis(20)));
    let sessions = stage.shard.heard().sessions();
    stage.restart_operator(&[]).await;
    let first = |heard: &Heard| -> Option<ClusterCapacityNeeds> {
        let mut later = heard.frames.iter().filter(|(session, _)| *session > sessions);
        later.find_map(|(_, frame)| match frame {
            Up::Rollup(roll_up) => Some(roll_up.clone()),
            _ => None,
        })
    };
    let any = |heard: &Heard| first(heard).is_some();
    stage.shard.wait_for("a roll-up", any, 5 * PATIENCE).await.unwrap();
    let roll_up = first(&stage.shard.heard()).unwrap();
    assert_eq!(milli_cpu(&roll_up.needs), i64::from(count) * 1000, "the first one is whole");
    stage.proxy.set(Way::Open);
    // In as many calls as it takes: a server ends one that deletes for a minute.
    eventually("all requests are gone", || async {
        let deleted = api.delete_collection(&DeleteParams::default(), &ListParams::default()).await;
        deleted.is_ok()
    })
    .await;
}

async fn row_31_many_pods_do_not_delay_roll_ups(stage: &mut Stage) {
    const INTERVAL: i64 = 4;
    let pods = sized(600, 10_000);
    stage.restart_operator(&[&format!("--rollup-interval={INTERVAL}s")]).await;
    let _pod_controller = stage.pod_controller(&[]).await;
    stage.cluster.namespace("row-31").await;
    let before = stage.shard.heard().roll_ups().count();
    stage.cluster.create(&of_row("row-31", "web").replicas(pods).deployment()).await;
    let count = usize::try_from(pods).unwrap();
    within(2 * PATIENCE, "one acknowledged request for each pod", || async {
        let requests = stage.requests("row-31").await;
        requests.len() == count
            && requests.iter().all(|one| one.phase() == CapacityRequestPhase::Acknowledged)
    })
    .await;
    let needs = stage
        .until_needs("row-31", "all", |needs| milli_cpu(needs) == i64::from(pods) * 1000)
        .await;
    assert_eq!(needs.len(), 1, "one shape, one need");
    let stamps: Vec<i64> = {
        let heard = stage.shard.heard();
        heard.roll_ups().skip(before).map(|roll_up| roll_up.timestamp_unix_nanos).collect()
    };
    let longest = stamps.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
    assert!(longest <= INTERVAL * 1_500_000_000, "{longest} ns between two roll-ups");
    stage.cluster.delete::<Deployment>("row-31", "web").await;
}
