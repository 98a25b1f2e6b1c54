//! However a demo ends, nothing is left.

use std::net::TcpListener;

use bigfleet_testkit::process::until_or;
use serde_json::Value;

use crate::rig::{Demo, PATIENCE, processes};

/// Ports of a running demo.
fn ports(state: &Value) -> Vec<String> {
    let of = |kind: &str| state[kind].as_array().unwrap().clone();
    let nodes = of("coordinators").into_iter().chain(of("shards"));
    nodes.map(|node| node["address"].as_str().unwrap().to_owned()).collect()
}

fn are_free(ports: &[String]) {
    for port in ports {
        TcpListener::bind(port).unwrap_or_else(|error| panic!("{port}: {error}"));
    }
}

#[tokio::test]
async fn scenarios_pass_headless_with_a_table_and_leave_nothing() {
    let mut demo = Demo::start(&["--scenario=gang", "--headless", "--repeat=2"]);
    let ended = demo.ended().await;
    let printed = demo.printed();
    assert!(ended.success(), "{printed}{}", demo.process.tail());
    for part in ["1/2 gang: passed", "2/2 gang: passed", "one rack holds them all", "MiB resident"]
    {
        assert!(printed.contains(part), "{part:?} is not in\n{printed}");
    }
    assert_eq!(demo.process.log(), "", "a demo that goes well has nothing to complain of");
    demo.left_nothing().await;
}

#[tokio::test]
async fn an_interrupt_leaves_nothing() {
    let mut demo = Demo::start(&[]);
    let ports = ports(&demo.until_up().await);
    assert_eq!((ports.len(), processes(&demo.home()).len()), (5, 6), "and the keeper");
    demo.process.signal("INT").await;
    assert!(demo.process.ended().await.success(), "{}", demo.process.tail());
    demo.left_nothing().await;
    are_free(&ports);
    are_free(&[demo.addr.clone()]);
}

#[tokio::test]
async fn a_kill_leaves_nothing() {
    let mut demo = Demo::start(&[]);
    let ports = ports(&demo.until_up().await);
    demo.process.kill().await;
    demo.left_nothing().await;
    are_free(&ports);
}

#[tokio::test]
async fn an_end_before_the_beginning_leaves_nothing() {
    let mut demo = Demo::start(&[]);
    let home = demo.home();
    // The first child is there, the last is not.
    until_or(&|| "a child".to_owned(), PATIENCE, &mut async || {
        assert!(demo.process.is_running(), "{}", demo.process.tail());
        (!processes(&home).is_empty()).then_some(())
    })
    .await;
    demo.process.signal("TERM").await;
    assert!(demo.process.ended().await.success(), "{}", demo.process.tail());
    demo.left_nothing().await;
}

#[tokio::test]
async fn a_list_that_is_cut_short_has_failed() {
    let mut demo = Demo::start(&["--scenario=all", "--headless"]);
    until_or(&|| "it plays".to_owned(), PATIENCE, &mut async || {
        assert!(demo.process.is_running(), "{}", demo.process.tail());
        demo.printed().contains("ready in").then_some(())
    })
    .await;
    demo.process.signal("TERM").await;
    assert_eq!(demo.process.ended().await.code(), Some(1));
    let log = demo.process.log();
    assert!(log.contains("stopped after 0 of 15 runs"), "{log}");
    demo.left_nothing().await;
}

#[tokio::test]
async fn flags_that_must_not_be_are_refused() {
    for (args, problem) in [
        (vec!["--scenario=mov"], "--scenario: \"mov\" is none"),
        (vec!["--listen=0.0.0.0:8090"], "cannot be used multiple times"),
        (vec!["--tui"], "--tui: standard input and output are no terminal"),
        (vec!["--repeat=2"], "--headless"),
    ] {
        let mut demo = Demo::start(&args);
        assert_eq!(demo.process.ended().await.code(), Some(2), "{args:?}");
        assert!(demo.process.log().contains(problem), "{}", demo.process.log());
        demo.left_nothing().await;
    }
}

#[tokio::test]
async fn without_the_binaries_of_kubernetes_it_says_what_to_do() {
    let nowhere = [("KUBEBUILDER_ASSETS", ""), ("PATH", "")];
    let mut demo = Demo::start_with(&["--kubernetes"], &nowhere);
    assert_eq!(demo.process.ended().await.code(), Some(2));
    let log = demo.process.log();
    for part in ["--kubernetes: etcd, kube-apiserver, kube-scheduler not found", "leave the flag"] {
        assert!(log.contains(part), "{log}");
    }
    demo.left_nothing().await;
}
