//! Replicas that are cut off from each other, both ways and one way. All the while
//! somebody writes at every replica, reads at every replica and reports to every
//! replica, and checks what any of them acknowledges.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use bigfleet_scripted::random::Random;
use bigfleet_wire::v1alpha1::{
    ListProvidersRequest, ProviderEntry, ShardReport, UpsertProviderRequest,
    coordinator_client::CoordinatorClient,
};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tonic::{Code, transport::Channel};

use crate::{
    client::Client,
    fleet::{Fleet, REPLICAS},
    named::{self, Named},
    rig::{
        links::{Links, Proxy},
        process::{get, until},
    },
};

/// A fleet whose every link can be cut.
struct Linked {
    named: Named,
    links: Links,
    _proxies: Vec<Proxy>,
}

/// Where `from` finds `to`.
fn host(from: usize, to: usize) -> String {
    format!("127.1.{}.{}", from + 1, to + 1)
}

impl Linked {
    async fn open() -> Self {
        let hosts = |replica| (0..REPLICAS).map(|from| host(from, replica)).collect();
        let mut named = Named::new(Fleet::new(), hosts);
        let links = Links::new(REPLICAS);
        let mut proxies = Vec::new();
        for from in 0..REPLICAS {
            for to in (0..REPLICAS).filter(|to| *to != from) {
                for port in &named.ports[..2] {
                    let at = |host: String| format!("{host}:{port}").parse().unwrap();
                    let proxy = links.proxy((from, to), at(host(from, to)), at(host(to, to)));
                    proxies.push(proxy.await);
                }
            }
        }
        for replica in 0..REPLICAS {
            named.start(replica, &host(replica, replica), |one| host(replica, one));
        }
        let linked = Self { named, links, _proxies: proxies };
        linked.until_whole().await;
        linked
    }

    fn client(&self) -> Client {
        self.named.client(|replica| host(replica, replica))
    }

    /// All three vote, and all three see one leader.
    async fn until_whole(&self) -> usize {
        let client = self.client();
        until("one leader that everybody sees", async || {
            let mut leaders = BTreeSet::new();
            for replica in 0..REPLICAS {
                let status = client.status(replica).await.ok()?;
                let whole = status.phase == 2 && status.voters.len() == REPLICAS;
                (whole && !status.leader_id.is_empty()).then_some(())?;
                leaders.insert(status.leader_id);
                let ready = get(&self.named.fleet.places[replica].http, "/readyz").await?;
                (ready.0 == 200).then_some(())?;
            }
            let leader = leaders.pop_first().filter(|_| leaders.is_empty())?;
            self.named.fleet.places.iter().position(|place| place.id == leader)
        })
        .await
    }

    /// Waits until somebody else acknowledges a write.
    async fn until_another_acknowledges(&self, old: usize) -> usize {
        let client = self.client();
        until("another leader", async || {
            for replica in (0..REPLICAS).filter(|one| *one != old) {
                if write(client.replica(replica), "another-leads").await == Ok(()) {
                    return Some(replica);
                }
            }
            None
        })
        .await
    }
}

/// How long a call may take before the caller gives it up, outcome unknown.
const CALL: Duration = Duration::from_secs(3);

async fn write(mut client: CoordinatorClient<Channel>, name: &str) -> Result<(), Code> {
    let provider =
        ProviderEntry { name: name.to_owned(), address: "p:1".to_owned(), region: String::new() };
    let request = UpsertProviderRequest { provider: Some(provider) };
    let called = timeout(CALL, client.upsert_provider(request)).await;
    called.map_or(Err(Code::DeadlineExceeded), |answer| answer.map(drop).map_err(|no| no.code()))
}

async fn read(mut client: CoordinatorClient<Channel>) -> Option<BTreeSet<String>> {
    let called = timeout(CALL, client.list_providers(ListProvidersRequest {})).await;
    let listed = called.ok()?.ok()?.into_inner();
    Some(listed.providers.into_iter().map(|provider| provider.name).collect())
}

/// Everything that anybody acknowledged.
#[derive(Default)]
struct Ledger {
    written: Mutex<BTreeSet<String>>,
    /// The highest term of an answered report.
    term: AtomicI64,
    reads: AtomicU64,
    reports: AtomicU64,
}

impl Ledger {
    fn written(&self) -> BTreeSet<String> {
        self.written.lock().unwrap().clone()
    }
}

/// Those who write, read and report, until they are stopped.
struct Witnesses {
    ledger: Arc<Ledger>,
    tasks: JoinSet<()>,
}

impl Witnesses {
    fn watch(linked: &Linked) -> Self {
        let ledger = Arc::<Ledger>::default();
        let mut tasks = JoinSet::new();
        let client = linked.client();
        let material = linked.named.fleet.pki.material(&["bigfleet://shard/w"]).unwrap();
        let hosts = |replica| format!("{}:{}", host(replica, replica), linked.named.ports[0]);
        let shard = Client::new((0..REPLICAS).map(hosts), &crate::fleet::security(&material));
        for replica in 0..REPLICAS {
            tasks.spawn(writing(client.replica(replica), replica, ledger.clone()));
            tasks.spawn(reading(client.replica(replica), ledger.clone()));
            tasks.spawn(reporting(shard.replica(replica), ledger.clone()));
        }
        Self { ledger, tasks }
    }

    /// Ends them; nothing that was acknowledged is lost.
    async fn judge(mut self, linked: &Linked) {
        self.tasks.abort_all();
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(error) = ended
                && error.is_panic()
            {
                std::panic::resume_unwind(error.into_panic());
            }
        }
        let (reads, reports) = (
            self.ledger.reads.load(Ordering::Relaxed),
            self.ledger.reports.load(Ordering::Relaxed),
        );
        let acknowledged = self.ledger.written();
        println!("{} writes, {reads} reads, {reports} reports", acknowledged.len());
        assert!(!acknowledged.is_empty() && reads > 0 && reports > 0);
        let client = linked.client();
        let kept = until("an answer", async || client.written().await.ok()).await;
        let kept: BTreeSet<String> = kept.into_iter().collect();
        let lost: Vec<&String> = acknowledged.difference(&kept).collect();
        assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    }
}

const BREATH: Duration = Duration::from_millis(30);

async fn writing(client: CoordinatorClient<Channel>, replica: usize, ledger: Arc<Ledger>) {
    for number in 0_u64.. {
        let name = format!("w{replica}-{number}");
        if write(client.clone(), &name).await.is_ok() {
            ledger.written.lock().unwrap().insert(name);
        }
        sleep(BREATH).await;
    }
}

/// Whoever answers knows everything that was acknowledged before it was asked: a
/// leader that was deposed would not.
async fn reading(client: CoordinatorClient<Channel>, ledger: Arc<Ledger>) {
    loop {
        let before = ledger.written();
        if let Some(known) = read(client.clone()).await {
            let unknown: Vec<&String> = before.difference(&known).collect();
            assert!(unknown.is_empty(), "a stale leader answered; it lacks {unknown:?}");
            ledger.reads.fetch_add(1, Ordering::Relaxed);
        }
        sleep(BREATH).await;
    }
}

/// Once one term has answered, no lower one does.
async fn reporting(mut client: CoordinatorClient<Channel>, ledger: Arc<Ledger>) {
    static CYCLE: AtomicI64 = AtomicI64::new(0);
    loop {
        let before = ledger.term.load(Ordering::SeqCst);
        let report = ShardReport {
            shard_id: "w".to_owned(),
            cycle: CYCLE.fetch_add(1, Ordering::SeqCst) + 1,
            shard_epoch: 1,
            instance: 7,
            ..ShardReport::default()
        };
        if let Ok(Ok(ack)) = timeout(CALL, client.report_shard(report)).await {
            let term = ack.into_inner().coordinator_term;
            assert!(term >= before, "term {term} answered after term {before} had");
            ledger.term.fetch_max(term, Ordering::SeqCst);
            ledger.reports.fetch_add(1, Ordering::Relaxed);
        }
        sleep(BREATH).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fault_leader_cut_off_from_its_peers_but_not_from_shards() {
    if !named::possible().await {
        return;
    }
    let linked = Linked::open().await;
    let witnesses = Witnesses::watch(&linked);
    let client = linked.client();
    // Alone, then unheard, then deaf: each time another leads.
    for cut in [Links::isolate, Links::mute, Links::deafen] {
        let old = linked.until_whole().await;
        let begun = Instant::now();
        cut(&linked.links, old);
        until("a leader that refuses", async || {
            let refused = write(client.replica(old), "at-the-old-one").await.err()?;
            matches!(refused, Code::FailedPrecondition | Code::Unavailable).then_some(())
        })
        .await;
        let refused = begun.elapsed();
        let new = linked.until_another_acknowledges(old).await;
        println!("refuses after {refused:?}, another leads after {:?}", begun.elapsed());
        assert_eq!(read(client.replica(old)).await, None, "it does not answer from its memory");
        let (old, new) = (client.status(old).await.unwrap(), client.status(new).await.unwrap());
        assert!(new.term > old.term || old.role != "leader", "{old:?} {new:?}");
        linked.links.heal();
    }
    linked.until_whole().await;
    witnesses.judge(&linked).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fault_follower_cut_off() {
    if !named::possible().await {
        return;
    }
    let linked = Linked::open().await;
    let client = linked.client();
    let leader = linked.until_whole().await;
    let term = client.status(leader).await.unwrap().term;
    let witnesses = Witnesses::watch(&linked);
    let follower = (leader + 1) % REPLICAS;
    for cut in [Links::isolate, Links::mute, Links::deafen] {
        cut(&linked.links, follower);
        if !std::ptr::fn_addr_eq(cut as fn(&Links, usize), Links::mute as fn(&Links, usize)) {
            until("a follower that misses its leader", async || {
                let status = client.status(follower).await.ok()?;
                status.leader_id.is_empty().then_some(())
            })
            .await;
        }
        for number in 0..5 {
            write(client.replica(leader), &format!("f-{number}")).await.unwrap();
        }
        linked.links.heal();
        assert_eq!(linked.until_whole().await, leader);
        let now = client.status(leader).await.unwrap().term;
        assert_eq!(now, term, "its return disturbs nobody");
    }
    witnesses.judge(&linked).await;
}

/// `BIGFLEET_PARTITIONS` says how many, `BIGFLEET_SEED` which.
#[tokio::test(flavor = "multi_thread")]
async fn fault_partitions_at_random() {
    if !named::possible().await {
        return;
    }
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let seed = number("BIGFLEET_SEED").unwrap_or_else(|| clock.subsec_nanos().into());
    println!("replay with BIGFLEET_SEED={seed}");
    let mut random = Random::new(seed);
    let linked = Linked::open().await;
    let witnesses = Witnesses::watch(&linked);
    for _ in 0..number("BIGFLEET_PARTITIONS").unwrap_or(8) {
        for from in 0..REPLICAS {
            for to in (0..REPLICAS).filter(|to| *to != from) {
                linked.links.set(from, to, random.below(3) == 0);
            }
        }
        // How long a partition lasts is part of the play.
        sleep(Duration::from_millis(200 + random.below(3_000))).await;
    }
    linked.links.heal();
    linked.until_whole().await;
    witnesses.judge(&linked).await;
}
