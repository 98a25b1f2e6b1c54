//! Rows in which something is away for a while, and demand must not seem to shrink for it.

use std::{collections::BTreeSet, time::Duration};

use bigfleet_crds::keys;
use bigfleet_e2e::{
    wait::{PATIENCE, eventually, is_whole, sized, throughout},
    workload::Workload,
};
use bigfleet_net::{listen::ListenAddr, tls::Security};
use bigfleet_scripted::shard::{Heard, Shard};
use bigfleet_testkit::proxy::Way;
use bigfleet_wire::v1alpha1::{MachineState, shard_message::Payload as Down};
use k8s_openapi::{
    api::apps::v1::Deployment,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PostParams},
};

use crate::stage::{CLUSTER, Stage, milli_cpu, needs_of, of_row};

const HELD: &str = "bigfleet_operator_rollup_held";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_27_28_30_demand_outlives_what_is_away() {
    let Some(mut stage) = Stage::start_or_skip(&[]).await else { return };
    let _pod_controller = stage.pod_controller(&[]).await;
    row_30_the_definition_goes_and_comes_back(&stage).await;
    row_28_the_api_server_goes_ten_times(&mut stage).await;
    row_27_the_shard_is_away_while_pods_come_and_go(&mut stage).await;
}

async fn row_30_the_definition_goes_and_comes_back(stage: &Stage) {
    const PODS: i64 = 8;
    let cluster = &stage.cluster;
    cluster.namespace("row-30").await;
    cluster.create(&of_row("row-30", "web").replicas(8).deployment()).await;
    let all = |needs: &[_]| milli_cpu(needs) == PODS * 1000;
    stage.until_needs("row-30", "all of the demand", all).await;
    let before = stage.history("row-30").len();

    let definitions = Api::<CustomResourceDefinition>::all(cluster.client());
    let definition = bigfleet_crds::capacity_request_crd();
    let name = definition.name_any();
    definitions.delete(&name, &DeleteParams::default()).await.unwrap();
    eventually("roll-ups are held", || async { stage.operator.metric(HELD).await == Some(1.0) })
        .await;
    eventually("the definition is gone", || async {
        definitions.get_opt(&name).await.unwrap().is_none()
    })
    .await;
    definitions.create(&PostParams::default(), &definition).await.unwrap();
    eventually("roll-ups are sent again", || async {
        stage.operator.metric(HELD).await == Some(0.0)
    })
    .await;
    stage.until_needs("row-30", "all of the demand again", all).await;
    // Up to half may have gone before the server is asked why.
    let after = stage.history("row-30").split_off(before);
    assert!(after.iter().all(|milli| *milli >= PODS * 500), "demand seemed lost: {after:?}");
    cluster.delete::<Deployment>("row-30", "web").await;
    stage.until_needs("row-30", "no demand", <[_]>::is_empty).await;
}

async fn row_28_the_api_server_goes_ten_times(stage: &mut Stage) {
    let step = sized(4, 50);
    stage.cluster.namespace("row-28").await;
    stage.cluster.create(&of_row("row-28", "web").replicas(0).deployment()).await;
    for round in 1..=10 {
        stage.cluster.scale("row-28", "web", round * step).await;
        // The server itself twice; at other times the way to it, which is quicker.
        if is_whole() || round % 5 == 3 {
            let plane = stage.cluster.plane();
            tokio::task::block_in_place(|| plane.start_apiserver()).unwrap();
        } else {
            stage.proxy.set(Way::Cut);
            stage.proxy.set(Way::Open);
        }
        let all = i64::from(round * step) * 1000;
        let reached = move |needs: &[_]| milli_cpu(needs) == all;
        stage.until_needs("row-28", "demand of all pods", reached).await;
    }
    let history = stage.history("row-28");
    assert!(history.is_sorted(), "demand fell while pods only came: {history:?}");
    let requests = stage.requests("row-28").await;
    let owners: BTreeSet<&String> =
        requests.iter().filter_map(|request| request.labels().get(keys::OWNED_BY_POD)).collect();
    let pods = stage.cluster.pods("row-28", "web").await;
    assert_eq!((requests.len(), owners.len()), (pods.len(), pods.len()), "one request per pod");
    stage.cluster.delete::<Deployment>("row-28", "web").await;
}

async fn row_27_the_shard_is_away_while_pods_come_and_go(stage: &mut Stage) {
    let cluster = &stage.cluster;
    cluster.namespace("row-27").await;
    let mut frame = Shard::node(CLUSTER, "m-27", MachineState::Configured);
    frame.labels.insert("example.com/row".to_owned(), "row-27".to_owned());
    stage.shard.send(Down::NodeStateUpdate(frame)).await.unwrap();
    cluster.create(&of_row("row-27", "stays").replicas(3).deployment()).await;
    cluster.until_running("row-27", "stays", 3).await;
    let uids = |pods: Vec<k8s_openapi::api::core::v1::Pod>| -> BTreeSet<_> {
        pods.iter().map(ResourceExt::uid).collect()
    };
    let before = uids(cluster.pods("row-27", "stays").await);

    // Gone, and nobody in its place.
    let addr: ListenAddr = stage.shard.addr().parse().unwrap();
    let elsewhere = Shard::start(&Security::Plaintext).await.unwrap();
    drop(std::mem::replace(&mut stage.shard, elsewhere));
    let cluster = &stage.cluster;
    let churn = |name: &str| -> Workload { of_row("row-27", name).request("cpu", "100") };
    // Five thousand pods in all, where sizes are the catalogue's.
    let (crowd, rest) = (sized(100, 1_660), 20);
    let and_three = |pods: u32| usize::try_from(pods + 3).unwrap();
    for name in ["one", "two", "three"] {
        cluster.create(&churn(name).replicas(crowd).deployment()).await;
        eventually("a request more for each", || async {
            stage.requests("row-27").await.len() == and_three(crowd)
        })
        .await;
        cluster.delete::<Deployment>("row-27", name).await;
        eventually("they are gone", || async { stage.requests("row-27").await.len() == 3 }).await;
    }
    cluster.create(&churn("last").replicas(rest).deployment()).await;
    eventually("those of the last", || async {
        stage.requests("row-27").await.len() == and_three(rest)
    })
    .await;
    throughout(Duration::from_secs(1), "nothing is evicted", || async {
        let nodes = cluster.nodes().await;
        let cordoned = nodes
            .iter()
            .any(|node| node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true));
        !cordoned && uids(cluster.pods("row-27", "stays").await) == before
    })
    .await;

    let mut listener = None;
    eventually("its port is free", || {
        let bound = std::net::TcpListener::bind(addr.to_string());
        let free = bound.is_ok();
        listener = bound.ok();
        async move { free }
    })
    .await;
    drop(listener);
    stage.shard = Shard::start_on(addr.bind().await.unwrap(), &Security::Plaintext).unwrap();
    let any = |heard: &Heard| heard.roll_ups().next().is_some();
    stage.shard.wait_for("a roll-up", any, PATIENCE).await.unwrap();
    let first = stage.shard.heard().roll_ups().next().map(|one| needs_of(one, "row-27")).unwrap();
    assert_eq!(milli_cpu(&first), 2_003_000, "the first roll-up is the whole truth");
    stage.cluster.delete::<Deployment>("row-27", "last").await;
}
