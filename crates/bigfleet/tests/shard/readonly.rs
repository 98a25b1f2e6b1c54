//! Nobody who may only read changes anything, whatever is asked (experience chapter
//! §10.4): at a shard and at its provider.

use bigfleet_net::{grpc::connect, rule::Rule, tls::Security};
use bigfleet_scripted::{
    cluster::{Cluster, Shape},
    member::Member,
    operator::{Operator, OperatorOptions},
};
use bigfleet_testkit::pki::Pki;
use bigfleet_wire::v1alpha1::{
    ActuationState, GetActuationRequest, Machine, shard_admin_client::ShardAdminClient,
};

use crate::{
    mtls::{CLUSTER, PROVIDER, SHARD, args, flags, security},
    process::PATIENCE,
    rig::corpus::{Corpus, refused},
    site::{SMALL, STEP, Site},
};

/// Of each method.
const REQUESTS: usize = 60;
const AT_SHARD: &[&str] = &["Shard", "ShardAdmin", "ShardRead", "ShardObserve"];
const AT_PROVIDER: &[&str] = &["CapacityProvider"];
/// What nobody who only reads may call.
const MUTATES: &[&str] = &["Session", "SetActuation", "Create", "Configure", "Drain", "Delete"];
const WORDS: &[&str] = &["own", "s-1", "sim-metal-0", "zone", "epyc", "cpu", "sim"];

/// All that a request could have changed.
#[derive(Debug, PartialEq)]
struct State {
    machines: Vec<Machine>,
    actuation: ActuationState,
    decisions: usize,
}

async fn state(site: &Site, admin: &Security) -> State {
    let channel = connect(&site.shard, admin, Rule::any_shard()).await.unwrap();
    let asked = ShardAdminClient::new(channel).get_actuation(GetActuationRequest {}).await;
    State {
        machines: site.provider_client(admin).list().await.expect("the provider lives"),
        actuation: asked.unwrap().into_inner(),
        decisions: crate::judge::records(&site.audit_log()).len(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_reader_asks_changes_a_shard_or_a_provider() {
    let seed = std::env::var("BIGFLEET_SEED").map_or(1, |seed| seed.parse().expect("a number"));
    println!("replay with BIGFLEET_SEED={seed}");
    let pki = Pki::new().unwrap();
    let site = Site::new();
    let material = |identity: &str| pki.material(&[identity]).unwrap();
    let [own, others, cluster, admin, reader] =
        [SHARD, PROVIDER, CLUSTER, "bigfleet://admin", "bigfleet://readonly"].map(material);
    let _provider = site.boot_provider(&args(&flags(&others), SMALL)).await;
    let demands = format!("--provider-identity={PROVIDER}");
    let _shard = site.boot_shard(&args(&flags(&own), &[&demands])).await;
    let mut demand = Cluster::new("own", 0);
    demand.deploy(&Shape::new(4_000, 8 << 30), 4);
    let operator = Operator::new(&site.shard, &security(&cluster), OperatorOptions::new("own"));
    let member = Member::start(operator, demand, STEP);
    let served = |now: &bigfleet_scripted::member::Standing| now.demand_met && now.machines == 2;
    member.wait_for("two machines", served, PATIENCE).await.unwrap();
    let admin = security(&admin);
    let before = state(&site, &admin).await;

    let reader = security(&reader);
    for (address, services) in [(&site.shard, AT_SHARD), (&site.provider, AT_PROVIDER)] {
        let channel = connect(address, &reader, Rule::any_certificate()).await.unwrap();
        let answers = Corpus::new(services, WORDS, seed).play(&channel, REQUESTS).await;
        println!("{answers:#?}");
        for (method, codes) in answers {
            let mutates = MUTATES.iter().any(|one| method.ends_with(&format!("/{one}")));
            assert!(!mutates || refused(&codes), "{method}: {codes:?}");
        }
    }
    assert_eq!(state(&site, &admin).await, before);
    assert!(served(&member.standing()), "{:?}", member.standing());
}
