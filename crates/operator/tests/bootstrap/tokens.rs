//! Tokens: the rules, and the Secrets that stand for them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    sync::Arc,
    time::Duration,
};

use bigfleet_in_cluster::{
    Paced,
    budget::Budget,
    memory::{Fault, Server, Verb},
};
use bigfleet_net::shutdown::Shutdown;
use bigfleet_operator::bootstrap::{
    JoinSettings, Renderer, Settings,
    tokens::{Core, Pool, Token, mint},
};
use bigfleet_wire::v1alpha1::BootstrapRequest;
use k8s_openapi::api::core::v1::Secret;
use proptest::prelude::*;

const TTL: Duration = Duration::from_secs(600);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Mints what the plan asks for; the ids that it deletes.
fn follow(core: &mut Core, now: Duration) -> Vec<Arc<str>> {
    let plan = core.plan(now);
    for _ in 0..plan.mint {
        core.minted(Token::random(now).unwrap());
    }
    plan.delete
}

#[test]
fn fills_refreshes_and_deletes() {
    let mut core = Core::new(3, TTL);
    assert!(core.take(Duration::ZERO).is_none());
    assert!(follow(&mut core, Duration::ZERO).is_empty());
    assert_eq!(core.ready(Duration::ZERO), 3);
    let taken = core.take(seconds(10)).unwrap();
    assert!(follow(&mut core, seconds(10)).is_empty());
    assert_eq!(core.ready(seconds(10)), 3);

    // Two are half a ttl old: replaced, and deleted as nobody has them.
    let plan = core.plan(seconds(299));
    assert_eq!((plan.mint, plan.next), (0, Some(seconds(300))));
    assert!(follow(&mut core, seconds(300)).is_empty());
    let replaced = core.plan(seconds(300)).delete;
    assert_eq!(replaced.len(), 2);
    assert!(!replaced.contains(taken.id()));

    // The one that was handed out is deleted at the end of its life.
    assert!(core.plan(seconds(1_199)).delete.iter().all(|id| id != taken.id()));
    assert!(core.plan(seconds(1_200)).delete.contains(taken.id()));
}

#[test]
fn without_an_api_server_tokens_serve_until_they_would_not_outlive_a_blob() {
    let mut core = Core::new(2, TTL);
    follow(&mut core, Duration::ZERO);
    assert!(core.take(TTL).is_some());
    assert!(core.take(TTL + seconds(1)).is_none());
}

#[test]
fn failures_pause_longer_and_longer() {
    let mut core = Core::new(1, TTL);
    let mut now = Duration::ZERO;
    for pause in [1, 2, 4, 8, 16, 30, 30] {
        assert_eq!(core.plan(now).mint, 1);
        core.failed(now, None);
        let plan = core.plan(now);
        assert_eq!((plan.mint, plan.next), (0, Some(now + seconds(pause))));
        now += seconds(pause);
    }
    assert_eq!(core.plan(now).mint, 1);
    core.minted(Token::random(now).unwrap());
    core.take(now);
    assert_eq!(core.plan(now).mint, 1, "a success ends the pause");
}

#[test]
fn a_secret_that_may_stand_is_deleted() {
    let mut core = Core::new(1, TTL);
    core.plan(Duration::ZERO);
    let token = Token::random(Duration::ZERO).unwrap();
    core.failed(Duration::ZERO, Some(&token));
    assert_eq!(core.plan(seconds(30)).delete, [Arc::clone(token.id())]);
    core.not_deleted(seconds(30), Arc::clone(token.id()));
    assert_eq!(core.plan(seconds(59)).delete, []);
    assert_eq!(core.plan(seconds(60)).delete, [Arc::clone(token.id())]);
}

#[derive(Debug, Clone)]
enum Step {
    Take,
    TakeAndGiveBack,
    Wait(u64),
    Mint,
    Fail,
}

proptest! {
    /// Nothing is handed out twice, or too late; every Secret is deleted once, and
    /// never while a blob may still need it.
    #[test]
    fn every_token_has_one_life(
        size in 1_usize..6,
        steps in prop::collection::vec(
            prop_oneof![
                3 => Just(Step::Take),
                1 => Just(Step::TakeAndGiveBack),
                2 => (0_u64..400).prop_map(Step::Wait),
                3 => Just(Step::Mint),
                1 => Just(Step::Fail),
            ],
            0..80,
        ),
    ) {
        let mut core = Core::new(size, TTL);
        let (mut now, mut open) = (Duration::ZERO, 0);
        let mut standing: BTreeMap<Arc<str>, Duration> = BTreeMap::new();
        let mut handed: BTreeMap<Arc<str>, Duration> = BTreeMap::new();
        for step in steps.into_iter().chain([Step::Wait(5_000), Step::Wait(0)]) {
            match step {
                Step::Wait(for_seconds) => now += seconds(for_seconds),
                Step::Take | Step::TakeAndGiveBack => {
                    if let Some(token) = core.take(now) {
                        prop_assert!(now + TTL <= token.minted() + core.lifetime());
                        prop_assert!(standing.contains_key(token.id()));
                        prop_assert!(!handed.contains_key(token.id()), "handed out twice");
                        if matches!(step, Step::TakeAndGiveBack) {
                            core.give_back(token);
                        } else {
                            handed.insert(Arc::clone(token.id()), now);
                        }
                    }
                }
                Step::Mint if open > 0 => {
                    open -= 1;
                    let token = Token::random(now).unwrap();
                    standing.insert(Arc::clone(token.id()), now);
                    core.minted(token);
                }
                Step::Fail if open > 0 => {
                    open -= 1;
                    core.failed(now, None);
                }
                Step::Mint | Step::Fail => {}
            }
            let plan = core.plan(now);
            open += plan.mint;
            prop_assert!(open <= size);
            for id in plan.delete {
                prop_assert!(standing.remove(&id).is_some(), "deleted twice");
                if let Some(at) = handed.get(&id) {
                    prop_assert!(*at + TTL <= now, "deleted while its blob may be used");
                }
            }
            prop_assert!(core.ready(now) <= size);
        }
        prop_assert!(standing.is_empty(), "left behind: {standing:?}");
    }
}

struct Rig {
    server: Server,
    pool: Arc<Pool>,
    shutdown: Shutdown,
    minter: tokio::task::JoinHandle<()>,
}

impl Rig {
    fn start(size: usize) -> Self {
        let server = Server::new();
        server.serve::<Secret>();
        Self::on(server, size)
    }

    fn on(server: Server, size: usize) -> Self {
        Self::again(server, Arc::new(Pool::new(size, TTL)))
    }

    /// Another term with the same pool.
    fn again(server: Server, pool: Arc<Pool>) -> Self {
        let paced = Paced::new(server.client(), Budget::new(0, 1));
        let shutdown = Shutdown::new();
        let minter = tokio::spawn(mint::run(Arc::clone(&pool), paced, shutdown.clone()));
        Self { server, pool, shutdown, minter }
    }

    async fn wait(&self, what: &str, done: impl Fn(&Self) -> bool) {
        let deadline = tokio::time::Instant::now() + TTL * 10;
        while !done(self) {
            assert!(tokio::time::Instant::now() < deadline, "{what}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    fn names(&self) -> BTreeSet<String> {
        let secrets = self.server.all::<Secret>();
        secrets.into_iter().filter_map(|secret| secret.metadata.name).collect()
    }

    async fn stop(self) {
        self.shutdown.request();
        self.minter.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn secrets_are_what_kubernetes_asks_for() {
    let rig = Rig::start(2);
    rig.wait("filled", |rig| rig.pool.ready() == 2).await;
    let token = rig.pool.take().unwrap();
    let name = format!("bootstrap-token-{}", token.id());
    let secret = rig.server.get::<Secret>(Some("kube-system"), &name).expect("the Secret stands");
    assert_eq!(secret.type_.as_deref(), Some("bootstrap.kubernetes.io/token"));
    let data = secret.string_data.unwrap();
    assert_eq!(data["token-id"], **token.id());
    assert_eq!(data["token-secret"], token.secret());
    assert_eq!(data["usage-bootstrap-authentication"], "true");
    let expires: jiff::Timestamp = data["expiration"].parse().unwrap();
    let left = expires.as_second() - jiff::Timestamp::now().as_second();
    assert!((1_100..=1_200).contains(&left), "{left}");

    rig.wait("refilled", |rig| rig.pool.ready() == 2).await;
    rig.stop().await;
}

#[tokio::test(start_paused = true)]
async fn tokens_are_replaced_expire_and_leave() {
    let rig = Rig::start(2);
    rig.wait("filled", |rig| rig.pool.ready() == 2).await;
    let taken = format!("bootstrap-token-{}", rig.pool.take().unwrap().id());
    rig.wait("refilled", |rig| rig.names().len() == 3).await;
    let first = rig.names();
    rig.wait("the unused are replaced", |rig| {
        rig.names().intersection(&first).eq([&taken]) && rig.pool.ready() == 2
    })
    .await;
    rig.wait("the used one expires", |rig| !rig.names().contains(&taken)).await;
    let server = rig.server.clone();
    rig.stop().await;
    assert!(server.all::<Secret>().is_empty(), "nobody has what is left");
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_fails_is_tried_again() {
    let server = Server::new();
    server.serve::<Secret>();
    server.inject(Fault::answer(403).on(Verb::Create, "secrets").times(5));
    let rig = Rig::on(server, 3);
    rig.wait("filled", |rig| rig.pool.ready() == 3).await;
    assert_eq!(rig.names().len(), 3);
    rig.stop().await;
}

/// Who loses the lease while the server hangs and gets it back later must not believe for ever
/// that those tokens are on their way.
#[tokio::test(start_paused = true)]
async fn a_term_that_ends_while_tokens_are_minted_leaves_the_next_one_a_full_pool() {
    for hangs in [seconds(2), seconds(20)] {
        let server = Server::new();
        server.serve::<Secret>();
        server.inject(Fault::latency(hangs).on(Verb::Create, "secrets").times(3));
        let rig = Rig::on(server, 3);
        let calls = |rig: &Rig| rig.server.count(Verb::Create, "secrets");
        rig.wait("under way", |rig| calls(rig) == 3).await;
        let (server, pool) = (rig.server.clone(), rig.pool.clone());
        rig.stop().await;
        if hangs == seconds(2) {
            assert!(server.all::<Secret>().is_empty(), "nobody has what was made");
        }
        let rig = Rig::again(server, pool);
        rig.wait("filled", |rig| rig.pool.ready() == 3).await;
        rig.stop().await;
    }
}

/// An API server that hangs holds no answer up: tokens that are ready are handed
/// out, and without one the answer is an error, at once.
#[tokio::test(start_paused = true)]
async fn operator_inv_07_answers_never_wait_for_the_api_server() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let rig = Rig::start(2);
    rig.wait("filled", |rig| rig.pool.ready() == 2).await;
    rig.server.inject(Fault::latency(seconds(1_000_000)));
    let settings = Settings {
        cluster_id: "c".into(),
        template_file: Some(file("bootstrap.tmpl", "token={{ .BootstrapToken }}")),
        ttl: TTL,
        join: Some(JoinSettings {
            api_server: "api:6443".into(),
            ca_file: file("ca.crt", "-----BEGIN CERTIFICATE-----\n"),
            pool: Arc::clone(&rig.pool),
        }),
    };
    let renderer = Renderer::open(settings, Arc::new(())).unwrap();
    let before = (tokio::time::Instant::now(), rig.server.count(Verb::Create, "secrets"));
    let answers: Vec<_> = (0..300).map(|_| renderer.render(&BootstrapRequest::default())).collect();
    // Rendering is no future: it could not wait if it wanted to, and no call was made.
    let after = (tokio::time::Instant::now(), rig.server.count(Verb::Create, "secrets"));
    assert_eq!(before, after);
    let blobs: BTreeSet<_> = answers
        .iter()
        .filter(|answer| answer.error.is_empty())
        .map(|answer| &answer.user_data)
        .collect();
    assert_eq!(blobs.len(), 2, "two tokens were ready, and each went out once");
    assert_eq!(
        answers.iter().filter(|answer| answer.error.contains("no bootstrap token")).count(),
        298
    );
}
