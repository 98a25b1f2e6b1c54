//! Blobs as the process has them: files are followed, and tokens minted by the leader alone.

use std::{fs, path::Path, sync::Arc, time::Duration};

use bigfleet_in_cluster::{Paced, budget::Budget, lease::Leadership, memory::Server};
use bigfleet_net::{flags::try_parse_from, shutdown::Shutdown};
use bigfleet_operator::{
    Metrics,
    blobs::Blobs,
    flags::OperatorFlags,
    session::{Lead, Render},
};
use bigfleet_wire::v1alpha1::BootstrapRequest;
use k8s_openapi::api::core::v1::Secret;
use prometheus_client::{encoding::text, registry::Registry};
use tokio::{sync::watch, task::JoinHandle, time::Instant};

struct Site {
    files: tempfile::TempDir,
    server: Server,
    metrics: Arc<Metrics>,
    blobs: Blobs,
    leadership: watch::Sender<Leadership>,
    stop: Shutdown,
    running: JoinHandle<()>,
}

impl Site {
    /// With a template, on standby.
    fn start(template: &str, more: &[&str]) -> Self {
        let files = tempfile::tempdir().unwrap();
        let file = |name: &str| files.path().join(name);
        fs::write(file("bootstrap.tmpl"), template).unwrap();
        fs::write(file("ca.crt"), "-----BEGIN CERTIFICATE-----\n").unwrap();
        let named = |flag: &str, path: &Path| format!("--{flag}={}", path.display());
        let mut args = vec![
            "bigfleet-operator".to_owned(),
            "--cluster-id=c-1".to_owned(),
            "--shard-addr=shard-0:7780".to_owned(),
            named("bootstrap-template-file", &file("bootstrap.tmpl")),
            named("bootstrap-ca-file", &file("ca.crt")),
        ];
        args.extend(more.iter().map(|flag| (*flag).to_owned()));
        let flags: OperatorFlags = try_parse_from(args).unwrap();
        let metrics = Arc::new(Metrics::default());
        let blobs = Blobs::open(&flags, &metrics).unwrap();
        let server = Server::new();
        server.serve::<Secret>();
        let paced = Paced::new(server.client(), Budget::new(0, 1));
        let (leadership, told) = watch::channel(Leadership::Standby);
        let stop = Shutdown::new();
        let running = tokio::spawn(blobs.clone().run(Lead::told(told), paced, stop.clone()));
        Self { files, server, metrics, blobs, leadership, stop, running }
    }

    fn rewrite(&self, template: &str) {
        fs::write(self.files.path().join("bootstrap.tmpl"), template).unwrap();
    }

    fn blob(&self) -> String {
        let response = self.blobs.render(&BootstrapRequest::default());
        assert_eq!(response.error, "");
        String::from_utf8(response.user_data).unwrap()
    }

    fn reloads(&self, outcome: &str) -> bool {
        let mut registry = Registry::default();
        self.metrics.register(&mut registry);
        let mut page = String::new();
        text::encode(&mut page, &registry).unwrap();
        let series = "bigfleet_operator_bootstrap_reloads_total";
        page.contains(&format!("{series}{{outcome=\"{outcome}\"}} 1\n"))
    }

    fn tokens(&self) -> usize {
        self.server.number_of::<Secret>()
    }

    async fn stop(self) {
        self.stop.request();
        self.running.await.unwrap();
        assert_eq!(self.server.number_of::<Secret>(), 0, "what nobody has is left behind");
    }
}

async fn within(limit: Duration, what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + limit;
    while !holds() {
        assert!(Instant::now() < deadline, "not within {limit:?}: {what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

const SOON: Duration = Duration::from_secs(15);

#[tokio::test(start_paused = true)]
async fn a_changed_template_is_taken_over_and_a_bad_one_is_counted() {
    let site = Site::start("one", &[]);
    assert_eq!(site.blob(), "one");
    site.rewrite("two");
    within(SOON, "the new one is in use", || site.blob() == "two").await;
    within(SOON, "it is counted", || site.reloads("success")).await;
    assert!(!site.reloads("error"));
    site.rewrite("{{ nothing }}");
    within(SOON, "the bad one is counted", || site.reloads("error")).await;
    assert_eq!(site.blob(), "two");
    site.stop().await;
}

#[tokio::test(start_paused = true)]
async fn only_the_leader_mints() {
    let more = ["--bootstrap-tokens=3", "--bootstrap-api-server=https://api:6443"];
    let site = Site::start("{{ .BootstrapToken }}", &more);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(site.tokens(), 0, "minted on standby");
    site.leadership.send_replace(Leadership::Leading);
    within(SOON, "the pool is full", || site.tokens() == 3).await;
    site.leadership.send_replace(Leadership::Standby);
    within(SOON, "what nobody has is deleted", || site.tokens() == 0).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(site.tokens(), 0, "minted on standby");
    site.leadership.send_replace(Leadership::Leading);
    within(SOON, "the pool is full again", || site.tokens() == 3).await;
    site.stop().await;
}
