//! Who may call, and whom a client believes.

use bigfleet_net::identity::Identity as PeerIdentity;
use bigfleet_provider::{
    Client, Error, FencedProvider, ListFilter, fake::FakeOptions, protocol::Kind,
};
use bigfleet_testkit::pki::Pki;
use tonic::Code;

use crate::rig::{attempt, fake, mtls, mutate, serve, soon};

#[tokio::test]
async fn a_shard_mutates_as_itself_only_and_any_certificate_reads() {
    let pki = Pki::new().unwrap();
    let fake = fake(FakeOptions::instant());
    let server = mtls(&pki.material(&["bigfleet://provider/p"]).unwrap());
    let addr = serve(fake.clone(), server).await.to_string();
    for (sans, code) in [
        (&["bigfleet://shard/a"][..], Code::Ok),
        (&["bigfleet://shard/b"], Code::PermissionDenied),
        (&["bigfleet://admin"], Code::PermissionDenied),
        (&["bigfleet://cluster/a"], Code::PermissionDenied),
        (&[], Code::PermissionDenied),
        (&["bigfleet://shard/a", "bigfleet://admin"], Code::PermissionDenied),
    ] {
        let security = mtls(&pki.material(sans).unwrap());
        let client = Client::dial(&addr, &security, None).unwrap();
        let call = attempt("a", 1, 1);
        let got = soon(mutate(&client, &call, Kind::Create, "spec-0")).await;
        assert_eq!(got.err().map_or(Code::Ok, |error| error.code()), code, "{sans:?}");
        // Not even unfenced: no certificate is that of nobody.
        let zero = attempt("", 0, 0);
        let error = soon(mutate(&client, &zero, Kind::Create, "spec-1")).await.unwrap_err();
        assert_eq!(error.code(), Code::PermissionDenied, "{sans:?}");
        soon(client.get(&"spec-0".into(), None)).await.unwrap();
        soon(client.list(&ListFilter::default(), None)).await.unwrap();
    }
    // A refused caller left no mark and touched nothing.
    let mutations = fake.calls().into_iter().filter(|call| call.token.is_some()).count();
    assert_eq!(mutations, 1);
}

#[tokio::test]
async fn a_provider_of_another_name_is_refused() {
    let pki = Pki::new().unwrap();
    let server = mtls(&pki.material(&["bigfleet://provider/ec2"]).unwrap());
    let addr = serve(fake(FakeOptions::default()), server).await.to_string();
    let security = mtls(&pki.material(&["bigfleet://shard/a"]).unwrap());
    let reach = async |identity: Option<&str>| {
        let identity = identity.map(|name| PeerIdentity::Provider(name.into()));
        let client = Client::dial(&addr, &security, identity).unwrap();
        soon(client.get(&"idle-0".into(), None)).await.map(|machine| machine.id.to_string())
    };
    assert_eq!(reach(None).await, Ok("idle-0".into()));
    assert_eq!(reach(Some("ec2")).await, Ok("idle-0".into()));
    let error = reach(Some("metal")).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    assert!(error.text().contains("bigfleet://provider/ec2"), "{error}");
}
