//! Nobody who may only read changes anything, whatever is asked (experience chapter
//! §10.4): at a leader and at a follower.

use bigfleet_net::{grpc::connect, rule::Rule};
use bigfleet_wire::v1alpha1::{
    AssignDomainRequest, SnapshotSaveRequest, snapshot_save_chunk::Payload,
};

use crate::{
    fleet::{Fleet, REPLICAS, security},
    rig::corpus::{Corpus, refused},
    shards::Holder,
};

/// Of each method.
const REQUESTS: usize = 60;
const WORDS: &[&str] = &["s-1", "s-2", "zone", "1", "eu-1", "c-0", "aws", "p"];
/// What somebody who reads may call.
const READS: &[&str] = &[
    "ListShards",
    "ListDomainAssignments",
    "ListShardReports",
    "ListQuotas",
    "ListProviders",
    "ListTransfers",
    "RaftStatus",
];

/// The replicated state, as its leader exports it.
async fn state(fleet: &Fleet) -> Vec<u8> {
    let mut leader = fleet.client().replica(fleet.leader().await);
    let mut chunks = leader.snapshot_save(SnapshotSaveRequest {}).await.unwrap().into_inner();
    let mut state = Vec::new();
    while let Some(chunk) = chunks.message().await.unwrap() {
        if let Some(Payload::Data(bytes)) = chunk.payload {
            state.extend(bytes);
        }
    }
    state
}

#[tokio::test]
async fn nothing_that_a_reader_asks_changes_a_coordinator() {
    let seed = std::env::var("BIGFLEET_SEED").map_or(1, |seed| seed.parse().expect("a number"));
    println!("replay with BIGFLEET_SEED={seed}");
    let fleet = Fleet::open().await;
    for shard in ["s-1", "s-2"] {
        Holder::new(&fleet, shard).settle().await;
    }
    for zone in ["1", "eu-1"] {
        let request = AssignDomainRequest {
            topology_key: "zone".to_owned(),
            topology_value: zone.to_owned(),
            shard_id: "s-1".to_owned(),
        };
        let mut leader = fleet.client().replica(fleet.leader().await);
        leader.assign_domain(request).await.unwrap();
    }
    fleet.client().write("aws").await.unwrap();
    let before = state(&fleet).await;
    assert!(before.windows(4).any(|four| four == b"eu-1"), "there is something to change");

    let reader = fleet.pki.material(&["bigfleet://readonly"]).unwrap();
    for replica in 0..REPLICAS {
        let address = &fleet.places[replica].grpc;
        let channel = connect(address, &security(&reader), Rule::coordinators()).await.unwrap();
        let mut corpus = Corpus::new(&["Coordinator"], WORDS, seed + replica as u64);
        let answers = corpus.play(&channel, REQUESTS).await;
        println!("{answers:#?}");
        for (method, codes) in answers {
            let reads = READS.iter().any(|one| method.ends_with(&format!("/{one}")));
            assert!(reads || refused(&codes), "{method}: {codes:?}");
        }
    }
    assert_eq!(state(&fleet).await, before);
}
