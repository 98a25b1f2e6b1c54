//! What a shard kept is read to its end, however long that takes.

use std::{pin::Pin, time::Duration};

use bigfleet_wire::v1alpha1::{
    CycleSummary, DecisionRecord, ExplainNeedRequest, ExplainNeedResponse, GetMachineRequest,
    GetMachineResponse, ListMachinesRequest, ListMachinesResponse, ListSessionsRequest,
    ListSessionsResponse, WatchDecisionsRequest, WatchSummaryRequest, WhatIfRequest,
    WhatIfResponse,
    shard_observe_server::{ShardObserve, ShardObserveServer},
};
use futures_util::{Stream, StreamExt as _, stream};
use tokio::{net::TcpListener, time::sleep};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status, transport::Server};

use crate::rig::Ctl;

const FIRST: i64 = (7 << 40) + 1;
const LAST: i64 = FIRST + 3;

/// A shard with four records, which looks for each longer than a reader may take for silence.
struct Slow;

type Frames<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

fn unasked<T>() -> Result<Response<T>, Status> {
    Err(Status::unimplemented("nobody asks that here"))
}

#[tonic::async_trait]
impl ShardObserve for Slow {
    type WatchSummaryStream = Frames<CycleSummary>;
    type WatchDecisionsStream = Frames<DecisionRecord>;

    async fn watch_summary(
        &self,
        _: Request<WatchSummaryRequest>,
    ) -> Result<Response<Self::WatchSummaryStream>, Status> {
        let frame = CycleSummary { last_decision_sequence: LAST, ..CycleSummary::default() };
        let frames = stream::iter([Ok(frame)]).chain(stream::pending());
        Ok(Response::new(frames.boxed()))
    }

    async fn watch_decisions(
        &self,
        request: Request<WatchDecisionsRequest>,
    ) -> Result<Response<Self::WatchDecisionsStream>, Status> {
        let request = request.into_inner();
        let after = request.after_sequence;
        let record = |sequence: i64| DecisionRecord {
            sequence,
            kind: "Bootstrap".to_owned(),
            machine_id: format!("m-{}", sequence - FIRST),
            ..DecisionRecord::default()
        };
        let wanted = move |record: &DecisionRecord| {
            record.sequence > after
                && (request.machine_id.is_empty() || request.machine_id == record.machine_id)
        };
        let found = (FIRST..=LAST).map(record).map(move |record| wanted(&record).then_some(record));
        let slowly = stream::iter(found).filter_map(|found| async {
            sleep(Duration::from_millis(600)).await;
            found.map(Ok)
        });
        Ok(Response::new(slowly.chain(stream::pending()).boxed()))
    }

    async fn list_machines(
        &self,
        _: Request<ListMachinesRequest>,
    ) -> Result<Response<ListMachinesResponse>, Status> {
        unasked()
    }

    async fn get_machine(
        &self,
        _: Request<GetMachineRequest>,
    ) -> Result<Response<GetMachineResponse>, Status> {
        unasked()
    }

    async fn list_sessions(
        &self,
        _: Request<ListSessionsRequest>,
    ) -> Result<Response<ListSessionsResponse>, Status> {
        unasked()
    }

    async fn explain_need(
        &self,
        _: Request<ExplainNeedRequest>,
    ) -> Result<Response<ExplainNeedResponse>, Status> {
        unasked()
    }

    async fn what_if(&self, _: Request<WhatIfRequest>) -> Result<Response<WhatIfResponse>, Status> {
        unasked()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_is_not_the_end_of_a_log() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let server = Server::builder().add_service(ShardObserveServer::new(Slow));
    tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
    let ctl = Ctl::bare();
    for (flags, wanted) in [
        (&["--machine", "m-3"][..], &["m-3"][..]),
        (&["--machine", "m-4"], &[]),
        (&["--tail", "2"], &["m-2", "m-3"]),
        (&["--kind", "Bootstrap", "--tail", "1"], &["m-3"]),
        (&["--kind", "Delete"], &[]),
    ] {
        let args = [&["decisions", "--shard-addr", &addr, "-o", "json"], flags].concat();
        let told: serde_json::Value = serde_json::from_str(&ctl.run(&args).await.ok()).unwrap();
        let told = told.as_array().unwrap().iter().map(|row| row["machine"].as_str().unwrap());
        assert_eq!(told.collect::<Vec<_>>(), wanted, "{flags:?}");
    }
}
