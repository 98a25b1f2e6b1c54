//! `doctor` finds what is planted, and names the fix.

use std::fs;

use bigfleet_crds::{available_capacity_crd, capacity_request_crd, upcoming_node_crd};
use bigfleet_net::{grpc::GrpcServer, readiness::Readiness, shutdown::Shutdown, tls::Security};
use bigfleet_testkit::pki::{LOOPBACK, Material, Pki};
use bigfleet_wire::v1alpha1::{
    ConfigureRequest, CreateRequest, DeleteRequest, DrainRequest, ListFilter,
    ListProvidersResponse, ListQuotasResponse, ListShardReportsResponse, ListShardsResponse,
    Machine, MachineList, MachineRef, ProviderEntry, QuotaAllocation, ShardRegistryEntry,
    ShardReportSnapshot, ShardSummary, TransitionAck,
    capacity_provider_server::{CapacityProvider, CapacityProviderServer},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use crate::rig::{Ctl, Done, SECOND, Shard, lead, leader_status, leading, mtls, now};

/// What it found of one check.
fn found(done: &Done, verdict: &str, check: &str, words: &str, fix: &str) {
    let lines: Vec<&str> = done.out.lines().collect();
    let start = format!("{verdict:<7}  {check}  ");
    let hit = lines.windows(2).any(|pair| {
        pair[0].starts_with(&start)
            && pair[0].contains(words)
            && pair[1].contains("fix: ")
            && pair[1].contains(fix)
    });
    assert!(
        hit,
        "no {verdict} of {check} with {words:?} and the fix {fix:?}:\n{}{}",
        done.out, done.err
    );
    assert_eq!(done.code, i32::from(verdict == "FAULT" || done.out.contains("FAULT")), "{done:?}");
}

fn faults(done: &Done) -> usize {
    done.out.lines().filter(|line| line.starts_with("FAULT")).count()
}

/// An HTTP server; the answer to a path, else 404.
async fn serving(pages: Vec<(String, String)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let pages = pages.clone();
            tokio::spawn(async move {
                let mut request = vec![0; 8192];
                let Ok(read) = stream.read(&mut request).await else { return };
                let request = String::from_utf8_lossy(&request[..read]).into_owned();
                let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
                let page = pages.iter().find(|(at, _)| path.starts_with(at.as_str()));
                let (status, body) = page.map_or(("404 Not Found", "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"reason\":\"NotFound\",\"code\":404}"), |(_, body)| ("200 OK", body));
                let answer = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                );
                let _ = stream.write_all(answer.as_bytes()).await;
            });
        }
    });
    addr
}

fn metrics(version: &str) -> (String, String) {
    let text = format!("bigfleet_build_info{{version=\"{version}\"}} 1\nbigfleet_tls_enabled 1\n");
    ("/metrics".to_owned(), text)
}

/// A sound fleet under mTLS of one replica and one shard.
struct Sound {
    pki: Pki,
    coordinator: bigfleet_scripted::coordinator::Coordinator,
    shard: Shard,
    metrics: String,
}

impl Sound {
    async fn new() -> Self {
        let pki = Pki::new().unwrap();
        let shard = mtls(&pki.material(&["bigfleet://shard/s-1"]).unwrap());
        let shard = Shard::start("s-1", shard).await;
        let replica = mtls(&pki.material(&["bigfleet://coordinator/node-1"]).unwrap());
        let coordinator = leading(&replica, &[("s-1", &shard.addr)]).await;
        coordinator.reply(ListProvidersResponse::default());
        let metrics = serving(vec![metrics(env!("CARGO_PKG_VERSION"))]).await;
        Self { pki, coordinator, shard, metrics }
    }

    fn ctl(&self) -> Ctl {
        self.ctl_with(&self.pki.material(&["bigfleet://admin"]).unwrap())
    }

    fn ctl_with(&self, material: &Material) -> Ctl {
        let ctl = Ctl::to(&[self.coordinator.addr()]);
        // The certificate must outlive the helper that made it.
        let kept = ctl.path("tls");
        fs::create_dir_all(&kept).unwrap();
        for (from, name) in
            [(material.cert(), "tls.crt"), (material.key(), "tls.key"), (material.ca(), "ca.crt")]
        {
            fs::copy(from, kept.join(name)).unwrap();
        }
        ctl
    }

    async fn doctor(&self, ctl: &Ctl, more: &[&str]) -> Done {
        let files = ["tls.crt", "tls.key", "ca.crt"]
            .map(|name| ctl.path("tls").join(name).display().to_string());
        let metrics = format!("s-1={0},node-1={0}", self.metrics);
        let mut args =
            vec!["doctor", "--tls-cert", &files[0], "--tls-key", &files[1], "--tls-ca", &files[2]];
        if !more.contains(&"--metrics") {
            args.extend(["--metrics", &metrics]);
        }
        args.extend(more);
        ctl.run(&args).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sound_fleet_has_no_faults() {
    let sound = Sound::new().await;
    let done = sound.doctor(&sound.ctl(), &[]).await;
    assert_eq!((done.code, faults(&done)), (0, 0), "{done:?}");
    for line in [
        "ok       identity",
        "ok       replica",
        "ok       leader",
        "ok       clock",
        "ok       shard  s-1",
        "ok       version  s-1",
    ] {
        assert!(done.out.contains(line), "{line}: {done:?}");
    }
    let json = sound.doctor(&sound.ctl(), &["-o", "json"]).await;
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json[0]["verdict"], "ok");
    sound.shard.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_our_own_certificate() {
    let sound = Sound::new().await;
    // 1: expired. 2: two identities. 3: an identity that opens nothing. 4: another's key.
    let expired = sound.pki.issue_expired(&["bigfleet://admin"], LOOPBACK).unwrap();
    let expired = Material::write(&expired, &sound.pki.ca_pem()).unwrap();
    let done = sound.doctor(&sound.ctl_with(&expired), &[]).await;
    found(&done, "FAULT", "expiry", "expired at", "issue it anew");
    let two = sound.pki.material(&["bigfleet://admin", "bigfleet://readonly"]).unwrap();
    let done = sound.doctor(&sound.ctl_with(&two), &[]).await;
    found(&done, "FAULT", "identity", "2 bigfleet:// URI SANs", "one bigfleet URI SAN");
    let cluster = sound.pki.material(&["bigfleet://cluster/c"]).unwrap();
    let done = sound.doctor(&sound.ctl_with(&cluster), &[]).await;
    found(&done, "FAULT", "identity", "opens no admin", "bigfleet://admin");
    let ctl = sound.ctl();
    let other = sound.pki.material(&["bigfleet://admin"]).unwrap();
    fs::copy(other.key(), ctl.path("tls/tls.key")).unwrap();
    let done = sound.doctor(&ctl, &[]).await;
    found(&done, "FAULT", "certificate", "tls.", "issue certificate, key and CA bundle anew");
    // 5: another CA.
    let foreign = Pki::new().unwrap().material(&["bigfleet://admin"]).unwrap();
    let done = sound.doctor(&sound.ctl_with(&foreign), &[]).await;
    found(&done, "FAULT", "replica", "", "trust one CA");
    sound.shard.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_the_coordinator() {
    let sound = Sound::new().await;
    let ctl = sound.ctl();
    // 6: nothing listens.
    let both = format!("{},127.0.0.1:1", sound.coordinator.addr());
    let files = ["tls.crt", "tls.key", "ca.crt"]
        .map(|name| ctl.path("tls").join(name).display().to_string());
    let ours = Ctl::to(&[&both]);
    let done = ours
        .run(&["doctor", "--tls-cert", &files[0], "--tls-key", &files[1], "--tls-ca", &files[2]])
        .await;
    found(&done, "FAULT", "replica", "127.0.0.1:1", "start the replica");
    // 7: nobody leads.
    let mut status = leader_status("node-1");
    status.role = "follower".to_owned();
    sound.coordinator.reply(status);
    let done = sound.doctor(&ctl, &[]).await;
    found(&done, "FAULT", "leader", "no replica that answers leads", "majority of the voters");
    // 8: superseded.
    let mut status = leader_status("node-1");
    status.phase = 3;
    sound.coordinator.reply(status);
    let done = sound.doctor(&ctl, &[]).await;
    found(&done, "FAULT", "replica", "superseded", "empty its volume");
    // 9: a clock.
    sound.coordinator.reply(leader_status("node-1"));
    sound.coordinator.set_date("Sun, 06 Nov 1994 08:49:37 GMT");
    let done = sound.doctor(&ctl, &[]).await;
    found(&done, "FAULT", "clock", "behind ours", "time server");
    // 10: an impostor.
    let impostor = mtls(&sound.pki.material(&["bigfleet://cluster/c"]).unwrap());
    let impostor = leading(&impostor, &[]).await;
    let ours = Ctl::to(&[impostor.addr()]);
    let done = ours
        .run(&["doctor", "--tls-cert", &files[0], "--tls-key", &files[1], "--tls-ca", &files[2]])
        .await;
    found(&done, "FAULT", "replica", "bigfleet://cluster/c", "bigfleet://coordinator/<node_id>");
    sound.shard.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_shards() {
    let sound = Sound::new().await;
    let ctl = sound.ctl();
    // 11: gone. 12: at another's address.
    lead(
        &sound.coordinator,
        &[("s-1", &sound.shard.addr), ("s-2", "127.0.0.1:1"), ("s-3", &sound.shard.addr)],
    );
    let done = sound.doctor(&ctl, &[]).await;
    found(&done, "FAULT", "shard", "s-2: 127.0.0.1:1", "start the shard");
    found(&done, "FAULT", "shard", "s-3: ", "its own bigfleet://shard/<shard_id>");
    // 13: silent. 14: without an address.
    let entry = |id: &str, address: &str, heartbeat| ShardRegistryEntry {
        shard_id: id.to_owned(),
        address: address.to_owned(),
        registered_at_unix_ns: SECOND,
        last_heartbeat_unix_ns: heartbeat,
    };
    let shards =
        vec![entry("s-1", &sound.shard.addr, now() - 90 * SECOND), entry("s-4", "", now())];
    sound.coordinator.reply(ListShardsResponse { shards, leading_ms: 0 });
    let done = sound.doctor(&ctl, &[]).await;
    found(&done, "FAULT", "heartbeat", "s-1: its last report is", "remove-shard");
    found(&done, "FAULT", "shard", "s-4: it registered without an address", "--advertise-addr");
    // 15: another version. 16: plaintext somewhere.
    lead(&sound.coordinator, &[("s-1", &sound.shard.addr)]);
    let old = "bigfleet_build_info{version=\"0.0.1\"} 1\nbigfleet_tls_enabled 0\n";
    let old = serving(vec![("/metrics".to_owned(), old.to_owned())]).await;
    let done = sound.doctor(&ctl, &["--metrics", &format!("s-1={old}")]).await;
    found(&done, "FAULT", "version", "it runs 0.0.1", "finish the upgrade");
    found(&done, "FAULT", "transport", "plaintext", "--require-tls");
    sound.shard.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_providers() {
    let coordinator = leading(&Security::Plaintext, &[]).await;
    let provider = |address: &str| ListProvidersResponse {
        providers: vec![ProviderEntry {
            name: "p".to_owned(),
            address: address.to_owned(),
            region: String::new(),
        }],
    };
    let ctl = Ctl::to(&[coordinator.addr()]);
    // 17: gone. 18: no provider. 19: one that breaks the contract.
    coordinator.reply(provider("127.0.0.1:1"));
    found(&ctl.run(&["doctor"]).await, "FAULT", "provider", "127.0.0.1:1", "start the provider");
    coordinator.reply(provider(coordinator.addr()));
    found(
        &ctl.run(&["doctor"]).await,
        "FAULT",
        "provider",
        "UNIMPLEMENTED",
        "does not know this call",
    );
    coordinator.reply(provider(&broken_provider().await));
    let done = ctl.run(&["doctor"]).await;
    for words in
        ["Get of \"\" answers Ok", "Get of \"bigfleetctl-doctor", "price", "foreign cursor"]
    {
        found(&done, "FAULT", "provider", words, "bigfleet-conformance");
    }
}

/// A share reaches only shards that dial the very address of its provider.
#[tokio::test(flavor = "multi_thread")]
async fn faults_of_quotas() {
    let coordinator = leading(&Security::Plaintext, &[]).await;
    let provider = |name: &str, address: &str| ProviderEntry {
        name: name.to_owned(),
        address: address.to_owned(),
        region: String::new(),
    };
    coordinator.reply(ListProvidersResponse { providers: vec![provider("p", "127.0.0.1:1")] });
    let quota = |provider: &str| QuotaAllocation {
        provider: provider.to_owned(),
        region: "eu".to_owned(),
        per_shard: [("s-1".to_owned(), 4)].into(),
    };
    coordinator.reply(ListQuotasResponse { allocations: vec![quota("p"), quota("q")] });
    let reports = |address: &str| ListShardReportsResponse {
        reports: vec![ShardReportSnapshot {
            summary: Some(ShardSummary {
                provider_address: address.to_owned(),
                ..ShardSummary::default()
            }),
            ..ShardReportSnapshot::default()
        }],
    };
    let ctl = Ctl::to(&[coordinator.addr()]);
    // 20: of a provider that is not registered. 21: at an address that no shard dials.
    coordinator.reply(reports("localhost:1"));
    let done = ctl.run(&["doctor"]).await;
    found(&done, "FAULT", "quota", "q eu: no provider q is registered", "upsert-provider --name q");
    let told = "no shard dials 127.0.0.1:1, by which p is registered";
    found(&done, "FAULT", "quota", told, "upsert-provider --name p");
    coordinator.reply(reports("127.0.0.1:1"));
    let done = ctl.run(&["doctor"]).await;
    assert!(done.out.contains("ok       quota  p eu: shards dial 127.0.0.1:1"), "{}", done.out);
}

/// A provider that knows every machine, sells one at a loss, and trips over cursors.
struct Broken;

type Answered<T> = Result<tonic::Response<T>, tonic::Status>;

#[tonic::async_trait]
impl CapacityProvider for Broken {
    async fn create(&self, _: tonic::Request<CreateRequest>) -> Answered<TransitionAck> {
        Ok(tonic::Response::new(Default::default()))
    }

    async fn configure(&self, _: tonic::Request<ConfigureRequest>) -> Answered<TransitionAck> {
        Ok(tonic::Response::new(Default::default()))
    }

    async fn drain(&self, _: tonic::Request<DrainRequest>) -> Answered<TransitionAck> {
        Ok(tonic::Response::new(Default::default()))
    }

    async fn delete(&self, _: tonic::Request<DeleteRequest>) -> Answered<TransitionAck> {
        Ok(tonic::Response::new(Default::default()))
    }

    async fn get(&self, _: tonic::Request<MachineRef>) -> Answered<Machine> {
        Ok(tonic::Response::new(Default::default()))
    }

    async fn list(&self, request: tonic::Request<ListFilter>) -> Answered<MachineList> {
        if !request.get_ref().since_revision.is_empty() {
            return Err(tonic::Status::invalid_argument("what a cursor"));
        }
        let machine = Machine {
            id: "m-1".to_owned(),
            state: 1,
            instance_type: "t".to_owned(),
            capacity_type: 3,
            price_per_hour: -1.0,
            ..Default::default()
        };
        Ok(tonic::Response::new(MachineList { machines: vec![machine], ..Default::default() }))
    }
}

async fn broken_provider() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    let server = GrpcServer::new(Security::Plaintext, Readiness::new("starting"));
    let server = server.add_service(CapacityProviderServer::new(Broken));
    tokio::spawn(server.serve(listener, Shutdown::new()));
    addr
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_clusters() {
    let coordinator = leading(&Security::Plaintext, &[]).await;
    coordinator.reply(ListProvidersResponse::default());
    let ctl = Ctl::to(&[coordinator.addr()]);
    let at = |name: &str| format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
    let json = |crd: &k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition| {
        (at(crd.metadata.name.as_deref().unwrap()), serde_json::to_string(crd).unwrap())
    };
    let sound = [capacity_request_crd(), available_capacity_crd(), upcoming_node_crd()];
    let whole = serving(sound.iter().map(json).collect()).await;
    let mut older = upcoming_node_crd();
    older.spec.versions[0].name = "v1alpha0".to_owned();
    let partly = serving(vec![json(&sound[0]), json(&older)]).await;
    let kubeconfig = format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- {{name: a, cluster: {{server: 'http://{whole}'}}}}\n\
         - {{name: b, cluster: {{server: 'http://{partly}'}}}}\n- {{name: c, cluster: {{server: 'http://127.0.0.1:1'}}}}\n\
         users:\n- {{name: u, user: {{}}}}\ncontexts:\n- {{name: good, context: {{cluster: a, user: u}}}}\n\
         - {{name: bad, context: {{cluster: b, user: u}}}}\n- {{name: gone, context: {{cluster: c, user: u}}}}\n"
    );
    fs::write(ctl.path("kubeconfig"), kubeconfig).unwrap();
    let file = ctl.path("kubeconfig");
    let done = ctl.run(&["doctor", "--kubeconfig", file.to_str().unwrap()]).await;
    assert_eq!(done.out.matches("ok       crds  good: ").count(), 3, "{done:?}");
    found(
        &done,
        "FAULT",
        "crds",
        "bad: availablecapacities.bigfleet.lucy.sh: it is not installed",
        "kubectl apply",
    );
    found(&done, "FAULT", "crds", "v1alpha1 is not served, only v1alpha0", "kubectl apply");
    found(&done, "FAULT", "crds", "gone: ", "API server reachable");
    let one =
        ctl.run(&["doctor", "--kubeconfig", file.to_str().unwrap(), "--cluster", "good"]).await;
    assert_eq!(faults(&one), 0, "{one:?}");
}

#[tokio::test]
async fn a_broken_configuration_is_found() {
    let ctl = Ctl::bare();
    fs::create_dir_all(ctl.path(".config/bigfleet")).unwrap();
    fs::write(ctl.path(".config/bigfleet/config.yaml"), "contexts: {}\nfoo: 1\n").unwrap();
    found(&ctl.run(&["doctor"]).await, "FAULT", "configuration", "foo", "correct the line");
    let ctl = Ctl::bare();
    let done = ctl.run(&["doctor", "--tls-cert", "x"]).await;
    found(&done, "FAULT", "certificate", "--tls-key", "give --tls-cert, --tls-key and --tls-ca");
}
