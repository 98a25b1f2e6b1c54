//! What the provider does not start with.

use tokio::process::Command;

use crate::rig::{Rig, sound};

async fn refused(rig: &Rig, edit: impl FnOnce(&mut Command) -> &mut Command) -> String {
    let mut command = rig.command(0);
    edit(&mut command);
    let status = command.status().await.unwrap();
    assert!(!status.success());
    std::fs::read_to_string(rig.log()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_endpoint_it_never_simulates() {
    let command = Command::new(env!("CARGO_BIN_EXE_bigfleet-provider-ec2")).output().await.unwrap();
    let said = String::from_utf8(command.stderr).unwrap();
    assert!(!command.status.success());
    assert!(said.contains("--ec2-endpoint: none given"), "{said}");
    assert!(said.contains("--use-fake-backend"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_credentials() {
    let rig = Rig::new(&sound()).await;
    let said = refused(&rig, |command| command.env_remove("AWS_SECRET_ACCESS_KEY")).await;
    assert!(said.contains("AWS_SECRET_ACCESS_KEY"), "{said}");
}

/// A type that nobody prices; pinned, it is served.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_price() {
    let mut rig = Rig::new(&sound()).await;
    rig.config.offerings.truncate(1);
    rig.config.offerings[0].instance_type = "x9.huge".into();
    rig.config.offerings[0].resources.insert("cpu".into(), "2".into());
    let said = refused(&rig, |command| command).await;
    assert!(said.contains("no price for on-demand x9.huge"), "{said}");
    let pinned = bigfleet_provider_ec2::config::Pinned { on_demand: Some(9.5), spot: None };
    rig.config.pinned_prices.insert("x9.huge".into(), pinned);
    rig.start().await;
    assert!(rig.list().await.iter().all(|machine| machine.price_per_hour == 9.5));
}

/// The stand-in checks signatures: a wrong key gets nothing done.
#[tokio::test(flavor = "multi_thread")]
async fn with_the_wrong_key() {
    let rig = Rig::new(&sound()).await;
    let said = refused(&rig, |command| command.env("AWS_SECRET_ACCESS_KEY", "wrong")).await;
    assert!(said.contains("AuthFailure") && !said.contains("wrong"), "{said}");
}
