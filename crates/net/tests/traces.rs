//! Spans reach a collector. The subscriber is the process's, so this has a
//! process of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::time::Duration;

use bigfleet_net::{
    flags::{DiagnosticFlags, LogFlags, LogFormat},
    telemetry::Telemetry,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
    trace_service_server::{TraceService, TraceServiceServer},
};
use tokio::{net::TcpListener, sync::mpsc};
use tonic::{Request, Response, Status, transport::Server};

struct Collector(mpsc::UnboundedSender<ExportTraceServiceRequest>);

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.0.send(request.into_inner()).unwrap();
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

/// One thread only: the flush must not wait for a runtime that it blocks.
#[tokio::test]
async fn spans_are_exported_and_flushed_at_the_end() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let otlp_endpoint = format!("http://{}", listener.local_addr().unwrap());
    let (sender, mut received) = mpsc::unbounded_channel();
    let incoming = tokio_stream::wrappers::TcpListenerStream::new(listener);
    tokio::spawn(
        Server::builder()
            .add_service(TraceServiceServer::new(Collector(sender)))
            .serve_with_incoming(incoming),
    );

    let log = LogFlags { log_level: "off".parse().unwrap(), log_format: LogFormat::Text };
    let refused = |otlp_endpoint: &str| {
        let otlp_endpoint = otlp_endpoint.to_owned();
        let flags = DiagnosticFlags { otlp_endpoint, ..Default::default() };
        Telemetry::init("test", &log, &flags).map(|_| ()).unwrap_err().to_string()
    };
    assert!(refused("https://collector:4317").contains("write it as http://"));
    assert!(refused("collector:4317").contains("write it as http://"));

    let flags = DiagnosticFlags { otlp_endpoint, ..Default::default() };
    let telemetry = Telemetry::init("bigfleet-test", &log, &flags).unwrap();
    tracing::info_span!(target: "bigfleet_test", "a-span", machine = "m-1").in_scope(|| {});
    tracing::info_span!(target: "h2", "foreign-span").in_scope(|| {});
    let flushed = tokio::time::timeout(Duration::from_secs(30), telemetry.flush()).await;
    flushed.expect("the flush ends");

    let request = received.try_recv().expect("the flush waits for the collector");
    let resource = request.resource_spans[0].resource.as_ref().unwrap();
    let service = resource.attributes.iter().find(|one| one.key == "service.name").unwrap();
    assert!(format!("{:?}", service.value).contains("bigfleet-test"));
    let spans: Vec<_> = request
        .resource_spans
        .iter()
        .flat_map(|resource| &resource.scope_spans)
        .flat_map(|scope| &scope.spans)
        .collect();
    assert_eq!(spans.len(), 1, "{spans:?}");
    assert_eq!(spans[0].name, "a-span");
    assert!(spans[0].attributes.iter().any(|one| one.key == "machine"));
}
