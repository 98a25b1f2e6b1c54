//! Without a quorum a call is given up after five seconds. On a paused clock, without a
//! network.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bigfleet_coordinator::{metrics::Metrics, reports::LivenessLimits, service::Coordinator};
use bigfleet_net::{
    grpc::Deadline,
    peer::{Peer, Transport},
};
use bigfleet_wire::v1alpha1::{self as wire, coordinator_server::Coordinator as _};
use tokio::time::Instant;
use tonic::{Code, Request};

use crate::{
    rig::{assign, report},
    single::Single,
};

fn request<T>(message: T, deadline: Option<Duration>) -> Request<T> {
    let mut request = Request::new(message);
    let peer = Peer::new(([127, 0, 0, 1], 1).into(), Transport::Plaintext);
    request.extensions_mut().insert(peer);
    if let Some(deadline) = deadline {
        request.extensions_mut().insert(Deadline::at(Instant::now() + deadline));
    }
    request
}

#[tokio::test(start_paused = true)]
async fn five_seconds_or_the_callers_deadline() {
    let replica = Arc::new(Single::new());
    replica.stuck.store(true, Ordering::SeqCst);
    let metrics = Arc::new(Metrics::default());
    let service = Coordinator::new(replica, LivenessLimits::default(), metrics);
    for (deadline, wanted) in [(None, 5), (Some(2), 2), (Some(60), 5)] {
        let deadline = deadline.map(Duration::from_secs);
        let began = Instant::now();
        let status = service.assign_domain(request(assign("1", "a"), deadline)).await.unwrap_err();
        assert_eq!(status.code(), Code::Unavailable, "{status:?}");
        assert_eq!(began.elapsed().as_secs(), wanted);
        let began = Instant::now();
        let list = request(wire::ListShardsRequest {}, deadline);
        assert_eq!(service.list_shards(list).await.unwrap_err().code(), Code::Unavailable);
        assert_eq!(began.elapsed().as_secs(), wanted);
    }
    let status = service.report_shard(request(report("a", 1), None)).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
}
