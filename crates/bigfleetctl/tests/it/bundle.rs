//! `support-bundle`: complete, and without secrets.

use std::{collections::BTreeMap, fs, io::Read as _};

use bigfleet_net::tls::Security;
use bigfleet_wire::v1alpha1::{
    DomainAssignment, ListDomainAssignmentsResponse, ListProvidersResponse, ProviderEntry,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use crate::rig::{Ctl, Shard, leading};

/// What must not be found anywhere in the bundle.
const SECRETS: &[&str] = &[
    "hunter2",
    "s3cr3t-join",
    "AKIAIOSFODNN7EXAMPLE",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl",
    "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC",
    "IyEvYmluL2Jhc2gKZWNobyBqb2luIHRoZSBjbHVzdGVyIHdpdGggYSB0b2tlbiAxMjM0NTY3ODkw",
    "dXNlcjpwYXNzd29yZA",
];

fn planted() -> String {
    format!(
        "level=info msg=\"joined\" join_token={} password=\"{}\"\n\
         using key {} for the account\n\
         Authorization: Bearer {}\n\
         -----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n\
         blob {} of 60 bytes\n\
         proxy https://me:{}@proxy.example:3128/ auth: Basic {}\n\
         authorization=Basic {}\n\
         shard s-1 decided 4 actions in cycle 900\n",
        SECRETS[1],
        SECRETS[0],
        SECRETS[2],
        SECRETS[3],
        SECRETS[4],
        SECRETS[5],
        SECRETS[0],
        SECRETS[0],
        SECRETS[6],
    )
    .replace(&format!("auth: Basic {}", SECRETS[0]), &format!("credential={}", SECRETS[0]))
}

/// An HTTP server that says this to everybody.
async fn page(text: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 1024]).await;
            let answer = format!("HTTP/1.0 200 OK\r\n\r\n{text}");
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    addr
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_in_but_the_secrets() {
    let shard = Shard::start("s-1", Security::Plaintext).await;
    let coordinator = leading(&Security::Plaintext, &[("s-1", &shard.addr)]).await;
    coordinator.reply(ListDomainAssignmentsResponse {
        assignments: vec![DomainAssignment {
            topology_key: "zone".to_owned(),
            topology_value: "a".to_owned(),
            shard_id: "s-1".to_owned(),
        }],
        next_page_token: String::new(),
    });
    let address = format!("https://user:{}@p:9000", SECRETS[0]);
    coordinator.reply(ListProvidersResponse {
        providers: vec![ProviderEntry { name: "ec2".to_owned(), address, region: "eu".to_owned() }],
    });
    let metrics = page(format!("bigfleet_shard_cycles 9\n{}", planted())).await;
    let ctl = Ctl::to(&[coordinator.addr()]);
    fs::write(ctl.path("shard.log"), planted()).unwrap();
    let log = ctl.path("shard.log");
    let metrics = format!("s-1={metrics}");
    let args = [
        "support-bundle",
        "--file",
        "b.tar",
        "--log",
        log.to_str().unwrap(),
        "--metrics",
        &metrics,
    ];
    let done = ctl.run(&args).await;
    assert!(done.err.contains("logs/shard.log"), "{done:?}");
    done.ok();

    let file = ctl.path("b.tar");
    let mut archive = tar::Archive::new(fs::File::open(&file).unwrap());
    let mut files = BTreeMap::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        files.insert(entry.path().unwrap().to_str().unwrap().to_owned(), text);
    }
    for (name, holds) in [
        ("status.txt", "FLEET 6f2c.00000000"),
        ("status.json", "\"replicas\""),
        ("version.txt", "bigfleetctl "),
        ("config.yaml", "contexts"),
        ("connection.txt", "plaintext"),
        ("domains.txt", "zone=a s-1"),
        ("providers.txt", "ec2 https://[removed]@p:9000 eu"),
        ("metrics/shard-s-1.txt", "bigfleet_shard_cycles 9"),
        ("metrics/replica-node-1.txt.missing", "refused"),
        ("decisions/s-1.jsonl", ""),
        ("logs/shard.log", "shard s-1 decided 4 actions in cycle 900"),
    ] {
        let text = files.get(&format!("bigfleet-support/{name}"));
        let text = text.unwrap_or_else(|| panic!("{name} is not among {:?}", files.keys()));
        assert!(text.contains(holds), "{name}: {text}");
    }
    for (name, text) in &files {
        for secret in SECRETS {
            assert!(!text.contains(secret), "{secret} is in {name}: {text}");
        }
    }
    // Nothing is overwritten.
    ctl.run(&args).await.failed(1);
    shard.stop().await;
}
