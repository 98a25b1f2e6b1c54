//! Elections on tokio's paused clock.

use std::time::Duration;

use bigfleet_in_cluster::{
    Budget, Paced,
    lease::{self, Elector, Leadership, Settings},
    memory::{Fault, Server, Verb},
};
use bigfleet_net::shutdown::Shutdown;
use tokio::{task::JoinHandle, time::Instant};

struct Candidate {
    elector: Elector,
    shutdown: Shutdown,
    task: JoinHandle<()>,
}

impl Candidate {
    fn start(server: &Server, identity: &str) -> Self {
        let elector = Elector::new(Settings::new("bigfleet-operator", "bigfleet-system", identity));
        let shutdown = Shutdown::new();
        let task = tokio::spawn({
            let (elector, shutdown) = (elector.clone(), shutdown.clone());
            let paced = Paced::new(server.client(), Budget::new(50, 100));
            async move { elector.run(paced, shutdown).await }
        });
        Self { elector, shutdown, task }
    }

    async fn becomes(&self, wanted: Leadership) -> Duration {
        let start = Instant::now();
        let mut leadership = self.elector.leadership();
        let wait = leadership.wait_for(|leadership| *leadership == wanted);
        let became = tokio::time::timeout(Duration::from_secs(120), wait).await;
        assert!(became.is_ok(), "{} never {wanted:?}", self.elector.identity());
        start.elapsed()
    }

    fn is(&self) -> Leadership {
        *self.elector.leadership().borrow()
    }

    async fn stop(self) {
        self.shutdown.request();
        self.task.await.unwrap();
    }
}

async fn read(server: &Server) -> lease::Record {
    let paced = Paced::new(server.client(), Budget::new(0, 0));
    lease::read(&paced, "bigfleet-system", "bigfleet-operator").await.unwrap().unwrap()
}

#[tokio::test(start_paused = true)]
async fn of_two_one_leads_and_hands_over_when_it_stops() {
    let server = Server::new();
    let first = Candidate::start(&server, "first");
    first.becomes(Leadership::Leading).await;
    let second = Candidate::start(&server, "second");
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!((first.is(), second.is()), (Leadership::Leading, Leadership::Standby));
    assert!(first.elector.is_leading() && !second.elector.is_leading());
    first.stop().await;
    let waited = second.becomes(Leadership::Leading).await;
    assert!(waited <= Duration::from_secs(3), "a lease given back was waited for: {waited:?}");
    assert_eq!(read(&server).await.transitions, 1);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_dies_is_waited_for() {
    let server = Server::new();
    let first = Candidate::start(&server, "first");
    first.becomes(Leadership::Leading).await;
    let second = Candidate::start(&server, "second");
    tokio::time::sleep(Duration::from_secs(30)).await;
    first.task.abort();
    let waited = second.becomes(Leadership::Leading).await;
    assert!(waited >= Duration::from_secs(13), "{waited:?}");
    assert!(waited <= Duration::from_secs(18), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_makes_unsure_and_nobody_else_leader() {
    let server = Server::new();
    let first = Candidate::start(&server, "first");
    first.becomes(Leadership::Leading).await;
    let second = Candidate::start(&server, "second");
    tokio::time::sleep(Duration::from_secs(30)).await;
    server.away(true);
    let waited = first.becomes(Leadership::Unsure).await;
    assert!(waited >= Duration::from_secs(8), "{waited:?}");
    assert!(waited <= Duration::from_secs(15), "past the lease's own end: {waited:?}");
    assert!(!first.elector.is_leading());
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!((first.is(), second.is()), (Leadership::Unsure, Leadership::Standby));
    // Back again, one of them leads and the other knows.
    server.away(false);
    tokio::time::sleep(Duration::from_secs(20)).await;
    let standing = [first.is(), second.is()];
    assert!(
        standing == [Leadership::Leading, Leadership::Standby]
            || standing == [Leadership::Standby, Leadership::Leading],
        "{standing:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_partitioned_leader_yields_when_it_sees_another() {
    let server = Server::new();
    let first = Candidate::start(&server, "first");
    first.becomes(Leadership::Leading).await;
    // Only the writes of the first fail: it holds no token for them, say.
    server.inject(Fault::answer(403).on(Verb::Update, "leases"));
    first.becomes(Leadership::Unsure).await;
    server.heal();
    server.inject(Fault::latency(Duration::from_secs(3600)).on(Verb::Update, "leases").times(1));
    let second = Candidate::start(&server, "second");
    second.becomes(Leadership::Leading).await;
    first.becomes(Leadership::Standby).await;
    assert_eq!(read(&server).await.holder, "second");
}

#[tokio::test(start_paused = true)]
async fn a_hung_renewal_makes_unsure_before_the_lease_ends() {
    let server = Server::new();
    let first = Candidate::start(&server, "first");
    first.becomes(Leadership::Leading).await;
    server.inject(Fault::latency(Duration::from_secs(3600)).on(Verb::Update, "leases"));
    let waited = first.becomes(Leadership::Unsure).await;
    assert!(waited < Duration::from_secs(15), "{waited:?}");
    server.heal();
    first.becomes(Leadership::Leading).await;
}

#[tokio::test(start_paused = true)]
async fn an_annotation_is_written_at_once_and_survives_renewals() {
    let server = Server::new();
    let first = Candidate::start(&server, "first");
    first.becomes(Leadership::Leading).await;
    first.elector.annotate("bigfleet.lucy.sh/synced", "first");
    tokio::time::sleep(Duration::from_millis(100)).await;
    let synced = |record: lease::Record| record.annotations.get("bigfleet.lucy.sh/synced").cloned();
    assert_eq!(synced(read(&server).await).as_deref(), Some("first"));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(synced(read(&server).await).as_deref(), Some("first"));
    let writes = server.count(Verb::Update, "leases");
    first.elector.annotate("bigfleet.lucy.sh/synced", "first");
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(server.count(Verb::Update, "leases"), writes, "said twice, written once");
}

#[test]
fn every_life_has_its_own_name() {
    assert_ne!(lease::identity(), lease::identity());
}
