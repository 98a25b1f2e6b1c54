//! Clients of the read services.

use bigfleet_net::{
    grpc::{connect, connect_tuned},
    message_limits,
    rule::Rule,
    tls::Security,
};
use bigfleet_scripted::cluster::Shape;
use bigfleet_wire::v1alpha1::{
    ExplainNeedRequest, InspectNeedsHeader, InspectNeedsRequest, NeedView,
    inspect_needs_response::Frame, shard_observe_client::ShardObserveClient,
    shard_read_client::ShardReadClient,
};
use prometheus_client::{encoding::text::encode, registry::Registry};
use tonic::{Status, transport::Channel};

use crate::rig::Rig;

pub(crate) type Observe = ShardObserveClient<Channel>;
pub(crate) type Read = ShardReadClient<Channel>;

impl Rig {
    pub(crate) async fn channel(&self, security: &Security) -> Channel {
        connect(&self.addr, security, Rule::any_certificate()).await.expect("a connection")
    }

    pub(crate) async fn observe(&self) -> Observe {
        message_limits!(ShardObserveClient::new(self.channel(&Security::Plaintext).await))
    }

    /// A client that lets next to nothing be under way to it.
    pub(crate) async fn narrow_observe(&self) -> Observe {
        let tune = |endpoint: tonic::transport::Endpoint| {
            endpoint.initial_stream_window_size(512).initial_connection_window_size(65_535)
        };
        let any = Rule::any_certificate();
        let channel = connect_tuned(&self.addr, &Security::Plaintext, any, tune).await;
        ShardObserveClient::new(channel.expect("a connection"))
    }

    pub(crate) async fn read(&self) -> Read {
        message_limits!(ShardReadClient::new(self.channel(&Security::Plaintext).await))
    }

    /// All needs, or those of a cluster.
    pub(crate) async fn needs(&self, cluster: &str) -> Vec<NeedView> {
        inspect(&mut self.read().await, cluster, 0).await.expect("an answer").1
    }

    /// The one need of a cluster.
    pub(crate) async fn need(&self, cluster: &str) -> NeedView {
        self.needs(cluster).await.pop().expect("there is one")
    }

    /// What `/metrics` would say.
    pub(crate) fn scrape(&self) -> String {
        let mut registry = Registry::default();
        self.metrics.register(&mut registry);
        let mut text = String::new();
        encode(&mut text, &registry).expect("strings take everything");
        text
    }

    /// One sample.
    pub(crate) fn sample(&self, series: &str) -> f64 {
        let text = self.scrape();
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{series} ")));
        line.map_or(0.0, |value| value.parse().expect("a number"))
    }
}

/// Asks for needs.
pub(crate) async fn inspect(
    read: &mut Read,
    cluster: &str,
    limit: i32,
) -> Result<(InspectNeedsHeader, Vec<NeedView>), Status> {
    let request = InspectNeedsRequest { cluster_id: cluster.to_owned(), limit };
    let mut frames = read.inspect_needs(request).await?.into_inner();
    let first = frames.message().await?.and_then(|frame| frame.frame);
    let Some(Frame::Header(header)) = first else { panic!("no header: {first:?}") };
    let mut needs = Vec::new();
    while let Some(frame) = frames.message().await? {
        let Some(Frame::Need(need)) = frame.frame else { panic!("no need: {frame:?}") };
        needs.push(need);
    }
    Ok((header, needs))
}

/// A question after the one need of a shape.
pub(crate) fn explain(cluster: &str, shape: &Shape) -> ExplainNeedRequest {
    ExplainNeedRequest {
        cluster_id: cluster.to_owned(),
        profile_fingerprint: shape.profile().fingerprint().to_string(),
        group: String::new(),
    }
}
